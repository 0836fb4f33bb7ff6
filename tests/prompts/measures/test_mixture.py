import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.prompts.measures import Empirical, Gaussian, Mixture, Rademacher, Sphere
from attractor.support.errors import InvalidInputError

exact = np.vectorize(mpmath.mpf, otypes=[object])


@given(st.integers(0, 10_000))
def test_tilt_on_the_line_agrees_with_quadrature(seed):
    random = np.random.default_rng(seed)
    weights, means = random.uniform(0.1, 1, size=3), random.normal(size=3) * 2
    variances, direction = random.uniform(0.3, 2, size=3), random.normal() * 2
    components = [Gaussian([m], [[v]]) for m, v in zip(means, variances, strict=True)]
    tilt = Mixture(weights, components).tilt([direction])
    nodes = np.linspace(-40, 40, 16001)  # the trapezoidal rule is exact to rounding here
    density = weights / weights.sum() / np.sqrt(2 * np.pi * variances)
    tilted = (
        density * np.exp(direction * nodes[:, None] - (nodes[:, None] - means) ** 2 / 2 / variances)
    ).sum(1)
    mass = tilted.sum()
    mean = nodes @ tilted / mass
    np.testing.assert_allclose(tilt.log_normalizer, np.log(mass * 80 / 16000), atol=1e-12)
    np.testing.assert_allclose(tilt.mean, [mean], atol=1e-12)
    np.testing.assert_allclose(tilt.covariance, [[(nodes - mean) ** 2 @ tilted / mass]], atol=1e-11)


def test_gates_are_those_of_the_written_formula(measures, oracle):
    mixture = measures["gaussian mixture"]
    directions = np.random.default_rng(5).normal(size=(4, 3)) * np.array([[1], [10], [1e2], [1e3]])
    found = mixture.responsibilities(directions)
    with mpmath.workdps(60):
        for gates, a in zip(found, exact(directions), strict=True):
            logs = [
                mpmath.log(weight) + exact(one.mean) @ a + a @ exact(one.covariance) @ a / 2
                for weight, one in zip(exact(mixture.weights), mixture.components, strict=True)
            ]
            total = mpmath.fsum(mpmath.exp(log - max(logs)) for log in logs)
            expected = [float(mpmath.exp(log - max(logs)) / total) for log in logs]
            np.testing.assert_allclose(gates, expected, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(found.sum(-1), 1)


def test_what_equal_covariances_add_to_every_score_cancels(rng):
    factor = rng.normal(size=(3, 3)) * 1e6
    covariance = factor @ factor.T
    means = rng.normal(size=(3, 3))
    mixture = Mixture([1, 2, 3], [Gaussian(mean, covariance) for mean in means])
    direction = rng.normal(size=(4, 3))
    scores = np.log([1, 2, 3]) + direction @ means.T  # the terms that cancel are 1e12
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(mixture.responsibilities(direction), expected, rtol=1e-13)
    # The same law is the prompt of the means with noise.
    noisy = Empirical(means, [1, 2, 3]).tilt(direction)
    np.testing.assert_allclose(
        mixture.tilted_mean(direction) - direction @ covariance, noisy.mean, rtol=0, atol=1e-2
    )


def test_hessian_agrees_with_finite_differences(measures):
    mixture, step = measures["gaussian mixture"], 1e-5
    direction = np.array([0.5, -0.3, 0.2])
    ends = [
        mixture.tilted_mean(np.tile(direction, (4, 1))[:3] + s * np.eye(3)) for s in (step, -step)
    ]
    found = mixture.tilt(np.tile(direction, (4, 1))).covariance[0]
    assert np.abs((ends[0] - ends[1]) / (2 * step) - found).max() < 1e-8


def test_mixture_of_one_is_that_one(measures):
    directions = np.random.default_rng(2).normal(size=(4, 3))
    one = measures["gaussian"]
    whole = Mixture([0.3], [one]).tilt(directions)
    for found, expected in zip(whole, one.tilt(directions), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-14)


def test_mixture_of_prompts_is_the_prompt_of_both(rng):
    first, second, directions = (
        rng.normal(size=(4, 3)),
        rng.normal(size=(2, 3)),
        rng.normal(size=(4, 3)),
    )
    mixture = Mixture([4, 2], [Empirical(first), Empirical(second)]).tilt(directions)
    whole = Empirical(np.concatenate([first, second])).tilt(directions)
    for found, expected in zip(mixture, whole, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_far_components_switch_without_overflow():
    components = [Gaussian([1e4], [[1.0]]), Gaussian([-1e4], [[1.0]])]
    mixture = Mixture([1, 1], components)
    np.testing.assert_allclose(
        mixture.tilted_mean([[1.0], [-1.0], [0.0]])[:, 0], [10001, -10001, 0]
    )
    assert mixture.responsibilities([0.0]).tolist() == [0.5, 0.5]
    assert mixture.log_normalizer([2e4]) == pytest.approx(4e8 - np.log(2), rel=1e-15)


@pytest.mark.parametrize(
    ("weights", "components", "message"),
    [
        ([1.0], [], "weights: the shape"),
        ([1.0], [Rademacher(2)] * 2, "weights: the shape"),
        ([1.0, 0.0], [Rademacher(2)] * 2, "weights: one of them is zero"),
        ([1.0, -1.0], [Rademacher(2)] * 2, "weights: the entry at"),
        ([1.0, 1.0], [Rademacher(2), Sphere(3, 1.0)], r"components: the dimensions are \[2, 3\]"),
    ],
)
def test_what_is_no_mixture_is_refused(weights, components, message):
    with pytest.raises(InvalidInputError, match=message):
        Mixture(weights, components)
