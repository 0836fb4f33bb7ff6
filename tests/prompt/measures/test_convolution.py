import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.prompt.measures import (
    Convolution,
    Empirical,
    Gaussian,
    Laplace,
    Mixture,
    Rademacher,
)


def test_sum_of_two_prompts_is_the_prompt_of_all_sums(rng):
    first, second, directions = (rng.normal(size=(n, 3)) for n in (3, 2, 4))
    found = Convolution(Empirical(first), Empirical(second)).tilt(directions)
    sums = (first[:, None] + second).reshape(-1, 3)
    for part, expected in zip(found, Empirical(sums).tilt(directions), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-13)


def test_tokens_with_noise_are_a_mixture_of_gaussians_around_them(rng):
    points, directions = rng.normal(size=(2, 3)), 3 * rng.normal(size=(4, 3))
    noisy = Empirical(points).with_noise(0.7).tilt(directions)
    mixture = Mixture(np.ones(2), [Gaussian(point, 0.7 * np.eye(3)) for point in points])
    for part, expected in zip(noisy, mixture.tilt(directions), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12)


def test_a_sum_exists_where_both_terms_do():
    law = Convolution(Rademacher(1), Laplace(1.0, 1))
    assert law.exists([[0.9], [1.0]]).tolist() == [True, False]
    with pytest.raises(InvalidInputError, match="direction"):
        law.log_normalizer([1.0])


def test_dimensions_have_to_agree():
    with pytest.raises(InvalidInputError, match="second: the dimension is 3"):
        Convolution(Rademacher(2), Rademacher(3))
