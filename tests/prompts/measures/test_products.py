import numpy as np
import pytest

from attractor.prompts.measures import Gaussian, Laplace, Product, Rademacher
from attractor.support.errors import InvalidInputError


def test_blocks_do_not_see_one_another(rng):
    covariance = [[1.0, 0.5], [0.5, 2.0]]
    product = Product([Rademacher(1), Gaussian([1.0, -1.0], covariance)])
    first, second = rng.normal(size=(4, 1)), rng.normal(size=(4, 2))
    tilt = product.tilt(np.concatenate([first, second], axis=-1))
    np.testing.assert_allclose(tilt.mean[:, :1], np.tanh(first), atol=1e-15)
    np.testing.assert_allclose(tilt.mean[:, 1:], [1, -1] + second @ covariance, atol=1e-14)
    np.testing.assert_allclose(tilt.covariance[:, 1:, 1:], np.tile(covariance, (4, 1, 1)))
    assert (tilt.covariance[:, 0, 1:] == 0).all() and (tilt.covariance[:, 1:, 0] == 0).all()


def test_a_product_of_alike_factors_is_one_law(rng):
    direction = rng.normal(size=(4, 3))
    product = Product([Rademacher(1, 0.7), Rademacher(2, 0.7)]).tilt(direction)
    for found, expected in zip(product, Rademacher(3, 0.7).tilt(direction), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_product_exists_where_its_factors_do():
    product = Product([Rademacher(2), Laplace(1.0, 1)])
    assert product.exists([[9.0, 9.0, 0.5], [0.0, 0.0, 1.0]]).tolist() == [True, False]
    with pytest.raises(InvalidInputError, match="direction: an entry is 1,"):
        product.tilt([0.0, 0.0, 1.0])


def test_a_product_of_nothing_is_refused():
    with pytest.raises(InvalidInputError, match="factors"):
        Product([])
