"""The limits of mirror images against the map itself, in NumPy."""

import numpy as np
import pytest

from attractor.geometry.precision_limits import mirror_limits


def limits(p, dtype=np.float32):
    kind = np.finfo(dtype)
    return mirror_limits(
        p,
        smallest=float(kind.smallest_subnormal),
        largest=float(kind.max),
        epsilon=float(np.finfo(np.promote_types(dtype, np.float32)).eps),
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("p", [1.01, 1.1, 1.5, 2, 3])
def test_weights_are_zero_below_and_infinite_above_the_limits(p, dtype):
    found = limits(p, dtype)

    def weight(image):
        with np.errstate(over="ignore", under="ignore"):
            return dtype(np.longdouble(image) ** (1 / np.longdouble(p - 1)))

    inside, outside = (found.smallest, found.largest * (1 - 1e-6)), found.largest * (1 + 1e-3)
    assert all(0 < weight(image) < np.inf for image in inside)
    assert weight(outside) == np.inf
    assert weight(found.smallest * 0.49 ** (p - 1)) == 0


def test_largest_images_of_large_exponents_are_infinite():
    assert limits(4, np.float64).largest == np.inf
    assert limits(4, np.float64).problem(1e300) is None


def test_neighboring_images_a_factor_of_two_apart_are_told():
    epsilon = 2.0**-23
    edge = 1 + np.log2(1 + epsilon)
    assert limits(edge * (1 - 1e-9)).problem(0.1, 1.0) is not None
    assert "factor" in limits(1 + 0.9 * (edge - 1)).problem(0.1)
    assert limits(1 + 1.1 * (edge - 1)).spacing < 2
    expected = (1 + epsilon) ** 100
    assert limits(1.01).spacing == pytest.approx(expected, rel=1e-9)


def test_a_step_that_is_told_to_be_below_rounding_moves_nothing():
    found, random = limits(1.1), np.random.default_rng(0)
    for size in (1e-3, 0.7, 1.0, 3.0):
        images = (size * (1 + random.exponential(size=1000))).astype(np.float32)
        step = np.float32(found.epsilon / 4 * size)
        assert "below the rounding" in found.problem(float(step), float(np.float32(size)) * 1.001)
        assert (images + step == images).all()
        assert (images - step == images).all()
    assert found.problem(2.1 * found.epsilon / 4, 1.0) is None
    assert found.problem(0.0, 1.0) is None


def test_a_step_longer_than_all_images_is_told():
    found = limits(1.001)
    assert found.problem(found.largest - found.smallest) is None
    assert "longer than" in found.problem(1.01 * (found.largest - found.smallest))
