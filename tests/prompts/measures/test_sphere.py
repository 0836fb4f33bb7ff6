import mpmath
import numpy as np
import pytest

from attractor.prompts.measures import Sphere
from attractor.support.errors import InvalidInputError


def exact_tilt(dimension, x):
    """Normalizer, mean and variances along the direction and across it, for radius one.

    In an even dimension the density of the angle is a polynomial of sine squared, so that the
    trapezoidal rule converges geometrically.
    """
    x, nodes = mpmath.mpf(x), 400
    cosines = [mpmath.cos(mpmath.pi * i / nodes) for i in range(nodes + 1)]
    plain = [
        (1 - c**2) ** (dimension // 2 - 1) / (1 + (i % nodes == 0)) for i, c in enumerate(cosines)
    ]
    tilted = [w * mpmath.exp(x * (c - 1)) for w, c in zip(plain, cosines, strict=True)]
    mass = mpmath.fsum(tilted)
    mean = mpmath.fdot(tilted, cosines) / mass
    square = mpmath.fdot(tilted, [c**2 for c in cosines]) / mass
    log = mpmath.log(mass / mpmath.fsum(plain)) + x
    return log, mean, square - mean**2, (1 - square) / (dimension - 1)


@pytest.mark.parametrize("dimension", [pytest.param(2, marks=pytest.mark.slow), 64])
def test_tilt_agrees_with_the_integral_over_angles(dimension):
    lengths = [1e-6, 0.7, 12.0, 900.0]
    directions = np.zeros((4, dimension))
    directions[:, 1] = lengths
    tilt = Sphere(dimension, 1.5).tilt(directions)
    for number, length in enumerate(lengths):
        with mpmath.workdps(36):
            exact = exact_tilt(dimension, 1.5 * length)
        log, mean, along, across = (float(value) for value in exact)
        assert tilt.log_normalizer[number] == pytest.approx(log, rel=2e-14, abs=0)
        assert tilt.mean[number, 1] == pytest.approx(1.5 * mean, rel=2e-15)
        entries = 2.25 * np.where(np.arange(dimension) == 1, along, across)
        difference = np.abs(tilt.covariance[number] - np.diag(entries)).max()
        assert difference < 1e-14 * across


def test_three_dimensions_have_a_closed_form(rng):
    directions = rng.normal(size=(4, 3)) * np.array([[0.1], [1], [10], [100]])
    x = 1.5 * np.linalg.norm(directions, axis=-1)
    tilt = Sphere(3, 1.5).tilt(directions)
    np.testing.assert_allclose(tilt.log_normalizer, np.log(np.sinh(x) / x), rtol=1e-12)
    gain = 1.5 * (1 / np.tanh(x) - 1 / x)
    np.testing.assert_allclose((tilt.mean * directions).sum(-1) * 1.5 / x, gain, rtol=1e-12)


@pytest.mark.parametrize(
    ("dimension", "gains"), [(64, (0.985, 0.946, 0.831)), (8, (0.914, 0.754, 0.514))]
)
def test_gain_falls_with_the_scores(dimension, gains):
    directions = np.array([1.0, 2.0, 4.0])[:, None] * np.eye(dimension)[0]
    means = Sphere(dimension, np.sqrt(dimension)).tilted_mean(directions)
    np.testing.assert_allclose(means[:, 0] / directions[:, 0], gains, atol=5e-4)


def test_high_dimensions_are_nearly_gaussian():
    direction = np.zeros(10_000)
    direction[0] = 2.0
    mean = Sphere(10_000, np.sqrt(10_000)).tilted_mean(direction)
    assert mean[0] / 2 == pytest.approx(1 - 4 / 10_002, rel=1e-6)


def test_a_sphere_in_one_dimension_is_refused():
    with pytest.raises(InvalidInputError, match=r"Give Rademacher\(1, radius\)"):
        Sphere(1, 1.0)
