import itertools

import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.prompt.measures import Empirical, Gaussian, Laplace, Mixture, Pushforward, Rademacher


def test_image_of_signs_is_the_prompt_of_the_corners(rng):
    matrix, shift = rng.normal(size=(3, 2)), rng.normal(size=3)
    directions = 2 * rng.normal(size=(4, 3))
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=2))) @ matrix.T + shift
    found = Pushforward(Rademacher(2), matrix, shift).tilt(directions)
    for part, expected in zip(found, Empirical(corners).tilt(directions), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-13)


def test_image_of_an_image_is_that_of_the_product(rng):
    first, second, directions = (rng.normal(size=(n, 3)) for n in (3, 3, 4))
    twice = Rademacher(3).pushforward(first, [1.0, 2.0, 3.0]).pushforward(second)
    once = Rademacher(3).pushforward(second @ first, second @ [1.0, 2.0, 3.0])
    for part, expected in zip(twice.tilt(directions), once.tilt(directions), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-12)


def test_image_of_a_mixture_keeps_its_gates(rng):
    mixture = Mixture([1, 2], [Gaussian.isotropic(3), Gaussian([1.0, 2.0, 3.0], np.eye(3))])
    matrix, directions = rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
    image = mixture.pushforward(matrix)
    assert isinstance(image, Mixture)
    np.testing.assert_allclose(
        image.responsibilities(directions), mixture.responsibilities(directions @ matrix)
    )


def test_an_image_exists_where_its_source_does():
    law = Laplace(1.0, 1).pushforward([[2.0]])
    assert law.exists([[0.49], [0.5]]).tolist() == [True, False]
    with pytest.raises(InvalidInputError, match="direction"):
        law.tilted_mean([0.5])
