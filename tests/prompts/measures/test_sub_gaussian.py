"""Sub-Gaussian parameters of laws, and moments of tilted ones."""

import math

import numpy as np
import pytest

from attractor.prompts.measures import (
    Convolution,
    Empirical,
    Gaussian,
    Laplace,
    Mixture,
    Product,
    Pushforward,
    Rademacher,
    Sphere,
    StudentT,
    Uniform,
)
from attractor.support.errors import InvalidInputError

DIRECTION = np.array([0.5, -0.3, 0.8])


@pytest.mark.parametrize(
    ("law", "parameter"),
    [
        (Gaussian([1.0, 0.0], [[2.0, 0.0], [0.0, 9.0]]), 3.0),
        (Rademacher(4, 0.7), 0.7),
        (Uniform(3.0, 2), math.sqrt(3)),
        (Sphere(5, 2.0), 2 / math.sqrt(5)),
        (Product([Rademacher(1), Uniform(0.3, 2)]), 1.0),
        (Pushforward(Rademacher(1), [[3.0]], [1.0]), 3.0),
        (Convolution(Rademacher(1), Gaussian([0.0], [[3.0]])), 2.0),
    ],
)
def test_known_parameters(law, parameter):
    assert law.sub_gaussian_parameter() == pytest.approx((parameter, parameter), rel=1e-12)


@pytest.mark.parametrize("probability", [0.5, 0.3, 0.05, 1e-3])
def test_two_values_have_the_parameter_of_kearns_and_saul(probability):
    law = Empirical([[0.0], [1.0]], [1 - probability, probability])
    odds = math.log((1 - probability) / probability)
    best = (1 - 2 * probability) / (2 * odds) if odds else 0.25
    found = law.sub_gaussian_parameter()
    assert found.lower <= math.sqrt(best) * (1 + 1e-9)
    assert math.sqrt(best) <= found.upper * (1 + 1e-9)
    assert found.upper == pytest.approx(math.sqrt(best), rel=0.006)


@pytest.mark.long
def test_parameters_bound_exponential_moments(measures_of_seed):
    random = np.random.default_rng(3)
    tilts = random.normal(size=(300, 3)) * random.uniform(0, 6, size=(300, 1))
    for name, law in measures_of_seed(1).items():
        found = law.sub_gaussian_parameter()
        if name == "laplace":
            assert found == (math.inf, math.inf)
            continue
        assert 0 < found.lower <= found.upper < math.inf, name
        excess = law.log_normalizer(tilts) - tilts @ law.mean
        assert (excess <= found.upper**2 * (tilts**2).sum(-1) / 2 + 1e-9).all(), name
        widest = np.linalg.eigvalsh(law.covariance)[-1]
        assert found.lower >= math.sqrt(widest) * (1 - 1e-9), name


def test_laws_without_exponential_moments_have_none():
    assert StudentT(5.0, 2).sub_gaussian_parameter().upper == math.inf
    assert (
        Mixture([1, 1], [Rademacher(1), Laplace(0.1, 1)]).sub_gaussian_parameter().upper == math.inf
    )


def test_moments_are_those_of_weighted_tokens(measures):
    for name, law in measures.items():
        tokens = law.sample(200_000, seed=4)
        weights = np.exp(tokens @ DIRECTION)
        weights /= weights.sum()
        squares = (tokens**2).sum(-1)
        sampled = np.array([weights @ squares**j for j in range(5)])
        error = np.array([
            math.sqrt((weights**2) @ (squares**j - mean) ** 2) for j, mean in enumerate(sampled)
        ])  # fmt: skip
        found = law.tilted_norm_moments(DIRECTION)
        if name in ("convolution", "pushforward"):  # bounds
            assert (found >= sampled - 4 * error - 1e-12).all(), name
        else:
            assert (np.abs(found - sampled) <= 5 * error + 1e-9 * sampled).all(), name


def test_moments_of_a_prompt_are_exact():
    points = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
    law = Empirical(points, [1.0, 2.0, 0.0])
    weights = np.array([1.0, 2.0]) * np.exp(points[:2] @ [0.3, 0.1])
    weights /= weights.sum()
    expected = weights @ (points[:2] ** 2).sum(-1)[:, None] ** np.arange(5)
    np.testing.assert_allclose(law.tilted_norm_moments([0.3, 0.1]), expected, 1e-12)


def test_several_directions_are_refused():
    with pytest.raises(InvalidInputError) as refused:
        Rademacher(2).tilted_norm_moments(np.ones((3, 2)))
    assert refused.value.argument == "direction"
