"""One measure of each kind, and tilts by quadrature in arbitrary precision."""

from types import SimpleNamespace

import mpmath
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
    Uniform,
)


def every_measure(seed=0):
    """Measures on R^3, whose tilts exist wherever no coordinate passes two; by name."""
    random = np.random.default_rng(seed)
    factor = random.normal(size=(3, 3))
    gaussian = Gaussian(random.normal(size=3), factor @ factor.T)
    flat = Gaussian(random.normal(size=3), factor[:, :2] @ factor[:, :2].T)
    points, weights = random.normal(size=(6, 3)), random.uniform(size=6)
    return {
        "gaussian": gaussian,
        "gaussian mixture": Mixture([0.2, 0.5, 0.3], [gaussian, flat, Gaussian.isotropic(3)]),
        "mixture": Mixture([1, 2], [Rademacher(3, 1.5), Empirical(points)]),
        "prompt": Empirical(points, weights, np.arange(6) < 5),
        "rademacher": Rademacher(3, 0.7),
        "uniform": Uniform(1.3, 3),
        "laplace": Laplace(0.4, 3),
        "sphere": Sphere(3, 1.2),
        "product": Product([Uniform(0.8, 1), Gaussian([1.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])]),
        "convolution": Convolution(Uniform(1.0, 3), gaussian),
        "pushforward": Pushforward(Rademacher(2, 0.6), factor[:, :2], [1.0, 0.0, -1.0]),
    }


def integral_tilt(density, interval, slope):
    """Log-normalizer, mean and variance of a density on the line tilted by exp(slope x)."""
    slope = mpmath.mpf(float(slope))
    ends = slope * interval[0], slope * interval[-1]
    top = 0 if mpmath.inf in ends else max(ends)
    powers = [
        mpmath.quad(lambda x, k=k: x**k * mpmath.exp(slope * x - top) * density(x), interval)
        for k in range(3)
    ]
    mass = mpmath.quad(density, interval)
    mean = powers[1] / powers[0]
    return mpmath.log(powers[0] / mass) + top, mean, powers[2] / powers[0] - mean**2


def sum_tilt(points, masses, direction):
    """Log-normalizer, mean and covariance of finitely many masses, in arbitrary precision."""
    exact = np.vectorize(mpmath.mpf, otypes=[object])
    points, masses = exact(points), exact(masses)
    scores = points @ exact(direction)
    weights = masses * np.array([mpmath.exp(score) for score in scores])
    total = weights.sum()
    mean = weights @ points / total
    centered = points - mean
    log = mpmath.log(total / masses.sum())
    return log, mean, (centered.T * weights) @ centered / total


@pytest.fixture(scope="session")
def measures_of_seed():
    return every_measure


@pytest.fixture(scope="session")
def measures():
    return every_measure()


@pytest.fixture
def oracle():
    return SimpleNamespace(integral=integral_tilt, sums=sum_tilt)
