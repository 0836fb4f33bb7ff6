"""Closed laws of the families against mpmath, and against tokens that they draw."""

import mpmath
import numpy as np
import pytest

from attractor.prompts.in_context import SingleIndex, built_in
from attractor.prompts.in_context.families import MEAN, Rectified
from attractor.support.errors import InvalidInputError


def normal(x):
    return mpmath.npdf(x)


@pytest.mark.parametrize("label", ["tanh", "binary"])
@pytest.mark.parametrize("weight", [0.0, 2.5])
@pytest.mark.parametrize("direction", [(-2.0, 3.0), (0.0, 0.0), (6.0, 0.5)])
def test_a_single_index_agrees_with_the_integral(label, weight, direction):
    a, c = direction

    def mass(x):
        if label == "tanh":
            return mpmath.exp(c * mpmath.tanh(weight * x))
        p = 1 / (1 + mpmath.exp(-weight * x))
        return mpmath.exp(c) * p + mpmath.exp(-c) * (1 - p)

    def slope(x):
        if label == "tanh":
            return mpmath.tanh(weight * x) * mass(x)
        p = 1 / (1 + mpmath.exp(-weight * x))
        return mpmath.exp(c) * p - mpmath.exp(-c) * (1 - p)

    ends = [a - 12, a, a + 12]
    total = mpmath.quad(lambda x: mpmath.exp(a * x) * normal(x) * mass(x), ends)
    input_mean = mpmath.quad(lambda x: x * mpmath.exp(a * x) * normal(x) * mass(x), ends) / total
    label_mean = mpmath.quad(lambda x: mpmath.exp(a * x) * normal(x) * slope(x), ends) / total
    tilt = SingleIndex([weight], label).tilt(np.array(direction))
    assert tilt.log_normalizer == pytest.approx(float(mpmath.log(total)), abs=1e-11)
    np.testing.assert_allclose(tilt.mean, [float(input_mean), float(label_mean)], atol=1e-10)
    assert np.isfinite(tilt.covariance).all()
    np.testing.assert_allclose(tilt.covariance, tilt.covariance.T, atol=1e-12)


@pytest.mark.parametrize("a", [-40.0, -3.0, 0.0, 0.3, 4.0, 60.0])
def test_rectified_numbers_agree_with_the_integral(a):
    def moment(k):
        positive = mpmath.quad(
            lambda x: x**k * mpmath.exp(a * x - max(a, 0) ** 2 / 2) * normal(x),
            [0, *((a, a + 2) if a > 1 else (1 / (1 + abs(a)), 1)), max(a, 0) + 15],
        )
        return positive + (mpmath.exp(-(max(a, 0) ** 2) / 2) / 2 if k == 0 else 0)

    total, first, second = (moment(k) for k in range(3))
    tilt = Rectified(1).tilt(np.array([a]))
    expected = float(mpmath.log(total)) + max(a, 0) ** 2 / 2 - MEAN * a
    assert tilt.log_normalizer == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert tilt.mean[0] == pytest.approx(float(first / total) - MEAN, rel=1e-10, abs=1e-12)
    variance = float(second / total - (first / total) ** 2)
    assert tilt.covariance[0, 0] == pytest.approx(variance, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("name", ["noisy", "logistic", "features", "index"])
def test_the_law_of_a_family_is_that_of_the_tokens_it_draws(name):
    task = built_in(2)[name]
    parameters = task.parameters(1, seed=3)
    tokens = task.tokens(parameters, np.random.default_rng(5), 100_000)[0]
    law, direction = task.measure(parameters[0]), np.array([0.3, -0.4, 0.5])
    for points in (tokens, law.sample(100_000, seed=1)):
        weights = np.exp(points @ direction)
        error = weights.std() / np.sqrt(len(points)) / weights.mean()
        assert np.log(weights.mean()) == pytest.approx(law.log_normalizer(direction), abs=5 * error)
        mean = weights @ points / weights.sum()
        spread = weights[:, None] * (points - mean)
        errors = spread.std(0) / weights.mean() / np.sqrt(len(points))
        assert (np.abs(mean - law.tilted_mean(direction)) <= 5 * errors).all()


def test_an_unknown_label_is_refused():
    with pytest.raises(InvalidInputError, match="label"):
        SingleIndex([1.0], "other")
