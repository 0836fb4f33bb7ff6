"""Formulas of geometries on arrays of any real numbers."""

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import attractor as at
from attractor.geometry import registered_geometries
from attractor.support.errors import InvalidInputError

GEOMETRIES = [geometry for kind in registered_geometries() for geometry in kind.examples()]
NORMS = ("norm", "dual_norm")
MAPS = ("steepest_descent_direction", "mirror_map", "inverse_mirror_map")
W = np.random.default_rng(0).normal(size=(3, 4)).astype(ml_dtypes.bfloat16)
TYPES = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}


def formulas(geometry):
    for name in (*NORMS, *MAPS):
        smooth = geometry.unique or name not in MAPS[1:]
        if smooth and not (name == "inverse_mirror_map" and geometry.name.endswith("1.01")):
            yield name, getattr(geometry, name)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_half_precision_gives_what_double_does_rounded(geometry, dtype):
    for name, formula in formulas(geometry):
        exact = formula(W.astype(np.float64))
        found = formula(W.astype(dtype))
        assert name in NORMS or found.dtype == dtype
        # The result is rounded once; roundings of single precision grow by powers of up to 10.
        apart = abs(found.astype(np.float64) - exact).max()
        assert apart <= (TYPES[dtype] + 2e-5) * max(abs(exact).max(), 1), name


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_a_matrix_without_entries_has_the_norm_zero(geometry, xp):
    for shape in ((0, 3), (3, 0), (2, 0, 3), (0, 2, 3)):
        for name, formula in formulas(geometry):
            found = formula(xp.zeros(shape))
            assert found.shape == (shape[:-2] if name in NORMS else shape)
            assert not found.any()


def test_integers_are_computed_with_in_double():
    for geometry in (at.Frobenius(), at.Lp(1), at.Spectral(), at.Lp(3)):
        small = np.array([[-128, 3], [0, 100]], dtype=np.int8)
        assert geometry.norm(small) == geometry.norm(small.astype(float))
        found = geometry.steepest_descent_direction(small)
        np.testing.assert_array_equal(
            found, geometry.steepest_descent_direction(small.astype(float))
        )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (np.ones((2, 2), complex), "complex128, not real numbers"),
        (np.ones((2, 2), object), "object, not real numbers"),
        (np.ones(3), r"an array of float64 with the shape \(3,\)"),
        (np.float64(1), "it is"),
        ([[1.0, 2.0]], r"it is \[\[1.0, 2.0\]\]"),
        (np.ma.masked_array(np.ones((2, 2)), np.eye(2)), "a masked array"),
    ],
)
def test_what_is_no_matrix_of_real_numbers_is_refused(given, problem):
    for geometry in (at.Frobenius(), at.Lp(1.5), at.Nuclear(), at.BlockMaximum.each("l_1", rows=1)):
        for name in NORMS:
            with pytest.raises(InvalidInputError, match=f"W: .*{problem}"):
                getattr(geometry, name)(given)
