import jax.numpy as jnp
import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.geometry import Frobenius, Geometry, get_geometry
from attractor.geometry.registry import _GEOMETRIES


@pytest.fixture(params=sorted(_GEOMETRIES))
def geometry(request) -> Geometry:
    return get_geometry(request.param)


@pytest.mark.parametrize("library", [np, jnp], ids=["numpy", "jax"])
def test_direction_attains_the_dual_norm_within_the_unit_ball(geometry, library):
    G = library.asarray(np.random.default_rng(0).normal(size=(4, 3, 5)))
    D = geometry.steepest_descent_direction(G)
    assert type(D) is type(G)
    np.testing.assert_allclose(geometry.norm(D), 1.0, rtol=1e-5)
    np.testing.assert_allclose((G * D).sum((-2, -1)), geometry.dual_norm(G), rtol=1e-5)


def test_no_matrix_of_the_unit_ball_does_better(geometry):
    rng = np.random.default_rng(1)
    G = rng.normal(size=(3, 4))
    D = rng.normal(size=(500, 3, 4))
    inner = (G * D).sum((-2, -1)) / geometry.norm(D)
    assert (inner <= geometry.dual_norm(G) * (1 + 1e-12)).all()


def test_direction_of_zero_is_zero(geometry):
    G = np.stack([np.zeros((2, 3)), np.ones((2, 3))])
    D = geometry.steepest_descent_direction(G)
    assert (D[0] == 0).all()
    assert (D[1] != 0).any()


def test_dual_norm_constant_bounds_the_dual_norm(geometry):
    G = np.random.default_rng(2).normal(size=(300, 4, 3))
    constant = geometry.dual_norm_constant(4, 3)
    assert (geometry.dual_norm(G) <= constant * np.linalg.norm(G, axis=(1, 2)) * (1 + 1e-12)).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_norms_neither_overflow_nor_vanish(geometry, scale):
    G = np.random.default_rng(3).normal(size=(2, 3, 3))
    np.testing.assert_allclose(geometry.norm(G * scale) / scale, geometry.norm(G), rtol=1e-13)
    np.testing.assert_allclose(
        geometry.dual_norm(G * scale) / scale, geometry.dual_norm(G), rtol=1e-13
    )
    np.testing.assert_allclose(
        geometry.steepest_descent_direction(G * scale), geometry.steepest_descent_direction(G)
    )


def test_mirror_maps_are_inverse_or_refused(geometry):
    W = np.random.default_rng(4).normal(size=(3, 3))
    try:
        image = geometry.mirror_map(W)
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            geometry.inverse_mirror_map(W)
    else:
        np.testing.assert_allclose(geometry.inverse_mirror_map(image), W)


def test_geometries_by_name():
    assert get_geometry("frobenius") == Frobenius()
    assert hash(get_geometry("frobenius")) == hash(Frobenius())
    geometry = Frobenius()
    assert get_geometry(geometry) is geometry
    with pytest.raises(InvalidInputError, match="frobenius"):
        get_geometry("frobenious")
