import json

import numpy as np
import pytest

from attractor import load
from attractor.corpora import load_corpus
from attractor.files import load_tokens
from attractor.prompts import load_head, save_head
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures import (
    Convolution,
    Empirical,
    Gaussian,
    Mixture,
    Product,
    Rademacher,
    Sphere,
)
from attractor.support.errors import FileFormatError, InvalidInputError

FLAG = "divide_by_sqrt_head_dimension"
HEAD = {
    "W_Q": np.arange(6.0).reshape(2, 3) / 5,
    "W_K": np.array([[1.0, 0, 0.5], [0, -1, 0]]),
    "W_V": np.array([[0.0, 1, 2]]),
    FLAG: np.array(True),
}
COVARIANCE = np.array([[2.0, 0.5, 0], [0.5, 1, 0], [0, 0, 0]])
SAMPLES = np.random.default_rng(0).normal(size=(9, 3))


def test_matrices_become_a_head_divided_only_where_the_file_says_so(write, suffix):
    loaded = load(write(HEAD | {"covariance": COVARIANCE, "mean": np.ones(3)}, suffix))
    scores = HEAD["W_K"].T @ HEAD["W_Q"]
    np.testing.assert_allclose(loaded.head.score_matrix, scores / np.sqrt(2), rtol=1e-15)
    np.testing.assert_array_equal(loaded.head.value_matrix, HEAD["W_V"])
    np.testing.assert_array_equal(loaded.tokens.mean, np.ones(3))
    np.testing.assert_array_equal(loaded.tokens.covariance, COVARIANCE)
    assert loaded.queries is loaded.tokens
    undivided = load(write(HEAD | {"covariance": COVARIANCE, FLAG: np.array(False)}, suffix))
    np.testing.assert_allclose(undivided.head.score_matrix, scores, rtol=1e-15)
    np.testing.assert_array_equal(undivided.tokens.mean, np.zeros(3))


def test_samples_of_tokens_and_of_queries_of_another_dimension(write, suffix):
    given = HEAD | {"W_Q": np.ones((2, 4)), "tokens": SAMPLES, "queries": np.eye(4)}
    loaded = load_head(write(given, suffix))
    np.testing.assert_array_equal(loaded.tokens.points, SAMPLES)
    np.testing.assert_array_equal(loaded.queries.points, np.eye(4))
    del given["queries"]
    loaded = load_head(write(given | {"query_covariance": 2 * np.eye(4)}, suffix))
    np.testing.assert_array_equal(loaded.queries.covariance, 2 * np.eye(4))
    with pytest.raises(InvalidInputError, match=r"^queries: .*W_Q is for 4 numbers, W_K for 3"):
        load_head(write(given, suffix))


def test_a_covariance_in_single_precision_may_be_off_by_its_rounding(write):
    root = np.random.default_rng(1).normal(size=(3, 2)).astype(np.float32)
    loaded = load(write(HEAD | {"covariance": root @ root.T}))
    assert np.linalg.matrix_rank(loaded.tokens.covariance, tol=1e-5) == 2


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({FLAG: None}, f"{FLAG}: .*never guessed.*{FLAG}=True"),
        ({FLAG: np.array(1.0)}, f"{FLAG}: .*float64"),
        ({FLAG: np.array([True])}, rf"{FLAG}: its shape is \(1,\)"),
        ({"W_Q": None}, "W_Q: .*no such array"),
        ({"W_V": None}, "W_V: .*no such array"),
        ({"W_Q": np.ones((3, 3))}, "W_Q: it has 3 rows and W_K has 2"),
        ({"W_Q": np.ones(3)}, "W_Q: the shape"),
        ({"W_V": np.ones((1, 2))}, r"W_V: .*Give \(v, 3\)"),
        ({"W_K": np.full((2, 3), np.nan)}, "W_K: the entry at"),
        ({"covariance": None}, "tokens: .*neither"),
        ({"tokens": SAMPLES}, "covariance: it stands beside tokens"),
        ({"tokens": SAMPLES, "covariance": None, "mean": np.ones(3)}, "mean: .*beside tokens"),
        ({"tokens": SAMPLES[:7], "covariance": None}, "tokens: .*too few.*at least 8"),
        ({"tokens": np.ones((9, 2)), "covariance": None}, r"tokens: .*Give \(n, 3\)"),
        ({"covariance": -COVARIANCE}, "covariance: .*negative eigenvalue"),
        ({"covariance": np.triu(COVARIANCE)}, "covariance: .*not symmetric"),
        ({"covariance": np.eye(2)}, r"covariance: .*Give \(3, 3\)"),
        ({"mean": np.ones(2)}, r"mean: .*Give \(3,\)"),
        ({"queries": np.ones((1, 3))}, "queries: .*too few.*at least 2"),
        ({"queries": np.ones((2, 4))}, r"queries: .*Give \(n, 3\)"),
        ({"queries": SAMPLES, "query_covariance": np.eye(3)}, "query_covariance: .*beside queries"),
        ({"query_mean": np.ones(3)}, "query_covariance: .*query_mean without it"),
        ({"query_covariance": -np.eye(3)}, "query_covariance: .*negative eigenvalue"),
        ({"keys": np.ones(3)}, "keys: .*means nothing for a head"),
    ],
)
def test_what_does_not_fit_is_named(write, change, named):
    with pytest.raises(InvalidInputError, match=rf"^{named}"):
        load(write(HEAD | {"covariance": COVARIANCE} | change))


def test_nothing_is_unpickled_and_damage_is_told(tmp_path, write):
    np.savez(tmp_path / "a.npz", W_Q=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInputError, match="never loaded"):
        load_head(tmp_path / "a.npz")
    path = write(HEAD | {"covariance": COVARIANCE})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FileFormatError):
        load_head(path)


def test_each_reader_names_the_kind_it_found(write, make):
    head = write(HEAD | {"covariance": COVARIANCE})
    for reader in (load_tokens, load_corpus):
        with pytest.raises(InvalidInputError, match=r"^file: .*head.*attractor prompt-length"):
            reader(head)
    with pytest.raises(InvalidInputError, match=r"^file: .*token sequences.*attractor check"):
        load_head(write(make()))
    with pytest.raises(InvalidInputError, match=r"^file: .*a corpus.*attractor corpus"):
        load_head(write({"sentences": np.array([[0, 1]])}))
    with pytest.raises(InvalidInputError, match=r"^file: .*neither"):
        load_head(head.rename(head.with_suffix(".txt")))


@pytest.mark.parametrize("samples", [True, False])
def test_a_head_comes_back(tmp_path, suffix, samples):
    head = AttentionHead(np.arange(6.0).reshape(2, 3).T / 7, np.eye(3)[1:])
    tokens = Empirical(SAMPLES) if samples else Gaussian(np.ones(3), COVARIANCE)
    queries = Empirical(SAMPLES[:, :2]) if samples else Gaussian(np.zeros(2), np.eye(2))
    path = tmp_path / f"head{suffix}"
    save_head(path, head, tokens, queries)
    loaded = load(path)
    np.testing.assert_array_equal(loaded.head.score_matrix, head.score_matrix)
    np.testing.assert_array_equal(loaded.head.value_matrix, head.value_matrix)
    for law, kept in ((tokens, loaded.tokens), (queries, loaded.queries)):
        assert type(law) is type(kept)
        np.testing.assert_allclose(kept.covariance, law.covariance, rtol=1e-15)


def test_nothing_is_written_that_cannot_be_read(tmp_path):
    head, law = AttentionHead(np.eye(3), np.eye(3)), Gaussian.isotropic(3)
    for path, tokens, queries, named in (
        ("a.txt", law, law, "path"),
        ("a.npz", Sphere(3, 1.0), law, "tokens"),
        ("a.npz", law, Empirical(SAMPLES[None]), "queries"),
        ("a.npz", Mixture([1.0], [Rademacher(3)]), law, "tokens"),
        ("a.npz", Empirical(SAMPLES).with_noise(0.1).with_noise(1.0), law, "tokens"),
        ("a.npz", Product([Sphere(2, 1.0), Rademacher(1)]), law, "tokens"),
        ("a.npz", Gaussian.isotropic(2), law, "covariance"),
    ):
        with pytest.raises(InvalidInputError, match=rf"^{named}: "):
            save_head(tmp_path / path, head, tokens, queries)
    assert not list(tmp_path.iterdir())


BARE = HEAD | {"covariance": None}
SCALES = np.array([0.5, 2.0, 1.0])
MIXED = {
    "mixture_weights": np.array([1.0, 3]),
    "mixture_means": np.array([[0.0, 1, 2], [-1, 0, 1]]),
    "mixture_covariances": np.stack([np.eye(3), COVARIANCE]),
}


def texts_of(laws, suffix):
    """Texts as each kind of file holds them: what is an array, and what is metadata."""
    if suffix == ".npz":
        return {"coordinate_laws": np.array(laws)}, {}
    return {}, {"coordinate_laws": json.dumps(laws)}


def test_a_mixture(write, suffix):
    loaded = load(write(BARE | MIXED, suffix))
    directions = np.random.default_rng(0).normal(size=(5, 3))
    parts = zip(MIXED["mixture_means"], MIXED["mixture_covariances"], strict=True)
    logs = [a.log_normalizer(directions) for a in (Gaussian(*part) for part in parts)]
    expected = np.log(0.25 * np.exp(logs[0]) + 0.75 * np.exp(logs[1]))
    np.testing.assert_allclose(loaded.tokens.log_normalizer(directions), expected, rtol=1e-12)


@pytest.mark.parametrize("prefix", ["", "query_"])
def test_independent_coordinates_of_tokens_and_of_queries(write, suffix, prefix):
    arrays, metadata = texts_of(["uniform", "signs", "laplace"], suffix)
    given = {"coordinate_scales": SCALES, "mean": np.array([1.0, 0, -1]), **arrays}
    given = {f"{prefix}{name}": value for name, value in given.items()}
    metadata = {f"{prefix}{name}": text for name, text in metadata.items()}
    others = {"covariance": COVARIANCE if prefix else None}
    loaded = load(write(BARE | others | given, suffix, **metadata))
    law = loaded.queries if prefix else loaded.tokens
    a = np.array([0.3, -0.4, 0.6])
    expected = np.log(np.sinh(0.15) / 0.15 * np.cosh(0.8) / (1 - 0.36)) + 0.3 - 0.6
    assert law.log_normalizer(a) == pytest.approx(expected, rel=1e-12)
    assert (loaded.queries is loaded.tokens) is not bool(prefix)


def test_points_with_weights_and_noise_are_a_law_of_however_few(write, suffix):
    points, weights = SAMPLES[:2], np.array([1.0, 3])
    law = load(write(BARE | {"tokens": points, "weights": weights}, suffix)).tokens
    np.testing.assert_allclose(law.mean, (points[0] + 3 * points[1]) / 4)
    noise = {"noise": np.array(0.5)}
    noisy = load(write(BARE | {"tokens": points, "weights": weights} | noise, suffix)).tokens
    np.testing.assert_allclose(noisy.covariance, law.covariance + np.eye(3) / 2)
    assert isinstance(load(write(BARE | {"tokens": SAMPLES} | noise)).tokens, Convolution)
    queries = {"queries": points, "query_weights": weights, "covariance": COVARIANCE}
    np.testing.assert_allclose(load(write(HEAD | queries)).queries.mean, law.mean)


PRODUCT = {"coordinate_laws": np.array(["normal"] * 3), "coordinate_scales": SCALES}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (MIXED | {"covariance": COVARIANCE}, "mixture_means: it stands beside covariance"),
        (MIXED | {"mean": np.ones(3)}, "mean: it stands beside mixture_means"),
        (MIXED | {"mixture_weights": None}, "mixture_weights: .*without them"),
        (MIXED | {"mixture_weights": np.array([1, 0])}, "mixture_weights: one of them is zero"),
        (MIXED | {"mixture_weights": np.ones(3)}, r"mixture_weights: .*Give \(2,\)"),
        (MIXED | {"mixture_means": np.ones((2, 2))}, r"mixture_means: .*Give \(K, 3\)"),
        (MIXED | {"mixture_covariances": np.ones((2, 3))}, "mixture_covariances: the shape"),
        (MIXED | {"mixture_covariances": np.stack([-np.eye(3)] * 2)},
         "mixture_covariances: .*negative eigenvalue"),
        (MIXED | {"mixture_means": None}, "mixture_means: .*mixture_weights without it"),
        (PRODUCT | {"tokens": SAMPLES}, "coordinate_laws: it stands beside tokens"),
        (PRODUCT | {"coordinate_scales": None}, "coordinate_scales: .*without them"),
        (PRODUCT | {"coordinate_scales": np.array([1, 0, 1])}, "coordinate_scales: one is 0"),
        (PRODUCT | {"coordinate_scales": np.ones(2)}, r"coordinate_scales: .*Give \(3,\)"),
        (PRODUCT | {"coordinate_laws": np.array(["normal"] * 2)}, "coordinate_laws: there are 2"),
        (PRODUCT | {"coordinate_laws": np.array(["normal", "sings", "normal"])},
         "coordinate_laws: there is no law 'sings'.*signs"),
        (PRODUCT | {"coordinate_laws": np.ones(3)}, "coordinate_laws: .*float64"),
        (PRODUCT | {"mean": np.ones(2)}, r"mean: .*Give \(3,\)"),
        ({"weights": np.ones(9)}, "tokens: .*weights without it"),
        ({"coordinate_scales": SCALES}, "coordinate_laws: .*coordinate_scales without it"),
        ({"tokens": SAMPLES, "weights": np.ones(8)}, r"weights: .*Give \(9,\)"),
        ({"tokens": SAMPLES, "weights": -np.ones(9)}, "weights: .*is -1"),
        ({"tokens": SAMPLES, "noise": np.array(0.0)}, "noise: it is 0"),
        ({"tokens": SAMPLES, "noise": np.ones(3)}, "noise: the shape"),
        ({"covariance": COVARIANCE, "noise": np.array(1.0)}, "noise: it stands beside covariance"),
        ({"covariance": COVARIANCE, "query_noise": np.array(1.0)}, "queries: .*query_noise"),
        ({"covariance": COVARIANCE, "query_mixture_means": np.ones((2, 4))},
         "query_mixture_weights: .*query_mixture_means without them"),
    ],
)  # fmt: skip
def test_what_does_not_fit_in_other_laws_is_named(write, change, named):
    with pytest.raises(InvalidInputError, match=rf"^{named}"):
        load(write(BARE | change))


@pytest.mark.parametrize("text", ["normal", "[1, 2, 3]", "{}"])
def test_laws_of_coordinates_in_metadata_are_a_list_of_texts(write, text):
    given = BARE | {"coordinate_scales": SCALES}
    with pytest.raises(InvalidInputError, match=r"^coordinate_laws: .*no list of texts"):
        load(write(given, ".safetensors", coordinate_laws=text))
