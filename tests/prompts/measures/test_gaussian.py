import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.prompts.measures import Gaussian, Rademacher
from attractor.support.errors import InvalidInputError

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(18)


def tensor_quadrature(mean, factor, direction):
    """Tilt of N(mean, factor factor^T) by Gauss-Hermite nodes in every coordinate."""
    rank = factor.shape[1]
    grid = np.array(list(itertools.product(NODES, repeat=rank)))
    masses = np.array([np.prod(w) for w in itertools.product(WEIGHTS, repeat=rank)])
    points = mean + grid @ factor.T
    weights = masses * np.exp(points @ direction)
    tilted = weights @ points / weights.sum()
    centered = points - tilted
    log = np.log(weights.sum() / masses.sum())
    return log, tilted, (centered.T * weights) @ centered / weights.sum()


@given(st.integers(0, 10_000), st.sampled_from([(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]))
def test_tilt_agrees_with_quadrature_whatever_the_rank(seed, sizes):
    random = np.random.default_rng(seed)
    d, rank = sizes
    mean, factor = random.normal(size=d), random.normal(size=(d, rank))
    direction = random.normal(size=d)
    direction /= max(1, np.linalg.norm(factor.T @ direction))
    log, tilted, covariance = tensor_quadrature(mean, factor, direction)
    tilt = Gaussian(mean, factor @ factor.T).tilt(direction)
    np.testing.assert_allclose(tilt.log_normalizer, log, atol=1e-11)
    np.testing.assert_allclose(tilt.mean, tilted, atol=1e-11)
    np.testing.assert_allclose(tilt.covariance, covariance, atol=1e-11)


def test_mean_is_affine_where_that_of_random_signs_is_not():
    direction = np.array([2.0])
    assert Gaussian.isotropic(1).tilted_mean(direction) == 2
    assert abs(2 - Rademacher(1).tilted_mean(direction)[0] - 1.0359724) < 1e-7


def test_noise_and_images_stay_gaussian(rng):
    gaussian = Gaussian([1.0, 2.0], [[2.0, 1.0], [1.0, 2.0]])
    assert isinstance(gaussian.with_noise(0.5), Gaussian)
    np.testing.assert_allclose(gaussian.with_noise(0.5).covariance, [[2.5, 1.0], [1.0, 2.5]])
    image = gaussian.pushforward([[1.0, -1.0]], [3.0])
    assert isinstance(image, Gaussian)
    np.testing.assert_allclose(image.mean, [2.0])
    np.testing.assert_allclose(image.covariance, [[2.0]])


def test_zero_covariance_is_a_point():
    point = Gaussian([1.0, -1.0], np.zeros((2, 2)))
    assert (point.tilted_mean(np.array([1e8, 3.0])) == [1, -1]).all()
    assert (point.sample(3, seed=0) == [1, -1]).all()


def test_rounding_in_a_covariance_is_forgiven_by_its_data_type(rng):
    factor = rng.normal(size=(5, 2)).astype(np.float32)
    covariance = factor @ factor.T  # singular: eigenvalues of either sign within rounding
    covariance[0, 1] *= 1 + 1e-7
    Gaussian(np.zeros(5), covariance)
    with pytest.raises(InvalidInputError, match="not symmetric"):
        Gaussian(np.zeros(5), covariance.astype(np.float64))


@pytest.mark.parametrize(
    ("mean", "covariance", "message"),
    [
        ([0.0, 0.0], [[1.0, 0.5], [0.4, 1.0]], "covariance: it is not symmetric"),
        ([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], "covariance: it has a negative eigenvalue, -1"),
        ([0.0, 0.0], [[1.0]], "covariance: the shape"),
        ([0.0], [1.0], "covariance: the shape"),
        ([[0.0]], [[1.0]], "mean: the shape"),
        ([], [[]], "mean: the shape"),
        ([0.0], [[np.inf]], "covariance: the entry"),
    ],
)
def test_what_is_no_covariance_is_refused(mean, covariance, message):
    with pytest.raises(InvalidInputError, match=message):
        Gaussian(mean, covariance)
