"""Heads that claims are examined on: kept in files, and made smaller."""

import numpy as np
import pytest
from made_up_claims import made_up

from attractor.files import load
from attractor.papers import HeadCase
from attractor.papers.hypotheses_table import check_hypotheses
from attractor.papers.large_prompt.data import line, random_head, signs
from attractor.papers.ledger.check import shrink
from attractor.prompts.files.head_laws import of_coordinates
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures import (
    Empirical,
    Gaussian,
    Laplace,
    Mixture,
    Product,
    Rademacher,
    Sphere,
    Uniform,
)
from attractor.support.errors import InvalidInputError


def claim(fails):
    return made_up(HeadCase, lambda case, seed: float(fails(case)))


def of_law(law):
    return random_head(0, 3).replace(tokens=law)


def samples():
    """Four orthonormal tokens, three times each, which are the queries, too."""
    basis = np.eye(4)
    tokens = Empirical(np.tile(basis, (3, 1)))
    return HeadCase(AttentionHead(basis, basis), tokens, Empirical(basis), about="samples")


def two_clusters(probability=0.5):
    parts = [Gaussian(mean, 5 * np.eye(2)) for mean in ((3.0, 0.0), (0.0, 3.0))]
    law = Mixture([probability, 1 - probability], parts)
    return HeadCase(AttentionHead(np.eye(2), np.eye(2)), law, law, about="two clusters")


COORDINATES = Product([Uniform(1.5, 2), Rademacher(1, 0.5)])
CASES = {
    "gaussian": random_head(0, 3, rank=2),
    "samples": samples(),
    "mixture": two_clusters(),
    "blocks": of_law(COORDINATES),
    "moved blocks": of_law(COORDINATES.pushforward(np.eye(3), [1.0, 2, 3])),
    "alike": of_law(Laplace(0.4, 3)),
    "weights": of_law(Empirical([[0.0, 1, 2], [1, 1, 1]], [0.2, 0.6])),
    "noise": of_law(Empirical(np.eye(3)).with_noise(0.3)),
    "other queries": random_head(0, 3).replace(queries=COORDINATES),
}
"""Cases of laws of every form."""


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_a_file_gives_back_the_same_case(tmp_path, case, suffix):
    case.save(tmp_path / f"head.{suffix}")
    (again,) = load(tmp_path / f"head.{suffix}").data_sets()
    assert isinstance(again, HeadCase) and again.kind is HeadCase
    assert again.hash == case.hash and again.about == f"head.{suffix}"
    assert again.size == case.size


def test_the_hash_tells_cases_apart():
    case = line(1.0)
    cases = [
        case,
        line(2.0),
        case.replace(head=AttentionHead([[2.0]], [[1.0]])),
        case.replace(head=AttentionHead([[1.0]], [[2.0]])),
        case.replace(queries=Gaussian([1.0], [[1.0]])),
        case.replace(tokens=signs()),
        case.replace(shortest_length=2),
        two_clusters(),
        two_clusters(0.3),
        *(
            of_law(law)
            for law in (
                Laplace(1.0, 3),
                Rademacher(3),
                Product([Laplace(1.0, 1), Rademacher(2)]),
                Product([Rademacher(1), Laplace(1.0, 2)]),
                Product([Rademacher(2), Laplace(1.0, 1)]),
            )
        ),
    ]
    assert len({case.hash for case in cases}) == len(cases)
    assert line(1.0).replace(about="another name").hash == case.hash


def test_what_a_file_cannot_say_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="shortest_length"):
        line(1.0).replace(shortest_length=2).save(tmp_path / "head.npz")
    with pytest.raises(InvalidInputError, match="Sphere"):
        of_law(Sphere(3, 1.0)).save(tmp_path / "head.npz")
    assert not list(tmp_path.iterdir())


def test_the_horizon_is_the_norm_of_whitened_scores():
    case = random_head(3, 3, horizon=0.7)
    assert case.horizon == pytest.approx(0.7, rel=1e-12)
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    law = Gaussian(np.zeros(3), turned @ case.token_moments[1] @ turned.T)
    again = case.replace(head=AttentionHead(turned @ case.U, case.V), tokens=law)
    assert again.horizon == pytest.approx(0.7, rel=1e-12)


def test_only_the_coordinate_that_is_needed_is_left():
    case = random_head(1, 3)
    wide = float(np.linalg.eigvalsh(case.token_moments[1])[-1]) / 10
    found = shrink(claim(lambda each: each.token_moments[1].max() > wide), case)
    assert found.U.shape == (1, 1) and found.V.shape == (1, 1)
    assert not found.U.any() and (found.V == 1).all()
    assert found.about.endswith("made smaller")


def test_what_the_failure_rests_on_stays():
    case = random_head(1, 2)
    found = shrink(claim(lambda each: each.V.shape[0] > 1 and each.U.any()), case)
    assert found.V.shape == (2, 1) and found.U.shape == (1, 1)
    assert found.U.any() and (found.U == np.round(found.U, 2)).all()
    assert np.array_equal(found.token_moments[1], [[1.0]])


def test_samples_are_halved_as_far_as_a_file_allows(tmp_path):
    found = shrink(claim(lambda each: True), samples())
    assert found.tokens.points.shape == (6, 1)  # of 12, as a file holds no fewer than 4
    found.save(tmp_path / "head.npz")
    assert load(tmp_path / "head.npz").tokens.points.shape == found.tokens.points.shape


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_of_a_case_of_any_law_fits_a_file(tmp_path, name):
    """Coordinates go, and the law keeps its form."""
    case = CASES[name]
    found = shrink(claim(lambda each: True), case)
    assert found.U.shape == (1, 1) and found.size < case.size
    found.save(tmp_path / "head.npz")
    again = load(tmp_path / "head.npz")
    np.testing.assert_allclose(again.tokens.covariance, found.tokens.covariance, rtol=1e-14)


def test_coordinates_left_out_are_those_of_the_law():
    directions = np.random.default_rng(0).uniform(-1, 1, size=(4, 3)) * [0, 1, 1]
    for name in ("moved blocks", "blocks", "alike", "noise", "weights"):
        law = CASES[name].tokens
        fewer = of_coordinates(law, np.array([2, 1]))
        np.testing.assert_allclose(
            fewer.log_normalizer(directions[:, [2, 1]]), law.log_normalizer(directions), rtol=1e-12
        )


def test_nothing_happens_where_it_does_not_fail():
    case = random_head(0)
    assert shrink(claim(lambda each: False), case) is case
    assert shrink(claim(lambda each: each is case), case) is case


def test_hypotheses_of_a_head():
    def met(case):
        return {name: row for name, *row in check_hypotheses(case).rows}

    gaussian = met(line(2.0))
    assert all(gaussian[name][0] for name in ("Gaussian tokens", "centered tokens"))
    assert gaussian["horizon above 0.707"] == [True, "the horizon is 2"]
    assert not gaussian["discrete tokens"][0]
    discrete = met(samples())
    assert discrete["discrete tokens"][0] and not discrete["Gaussian tokens"][0]
    assert discrete["Gaussian tokens"][1] == "12 samples"
    assert not met(random_head(0))["centered tokens"][0]
