import numpy as np
import pytest

from attractor import load
from attractor.errors import FileFormatError, InvalidInputError
from attractor.files import load_corpus, load_head, load_tokens, save_head
from attractor.prompt.head import AttentionHead
from attractor.prompt.measures import Empirical, Gaussian
from attractor.prompt.measures.rademacher import Rademacher

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
        ({"W_K": np.ones((2, 3), np.float16)}, "W_K: .*float16"),
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
        ("a.npz", Rademacher(3), law, "tokens"),
        ("a.npz", law, Empirical(SAMPLES, np.ones(9)), "queries"),
        ("a.npz", Gaussian.isotropic(2), law, "covariance"),
    ):
        with pytest.raises(InvalidInputError, match=rf"^{named}: "):
            save_head(tmp_path / path, head, tokens, queries)
    assert not list(tmp_path.iterdir())
