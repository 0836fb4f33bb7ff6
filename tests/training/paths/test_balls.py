"""Balls as images of R^k: every point inside, every matrix reached, derivatives exact."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.geometry import Frobenius, Geometry, Lp, Nuclear, Schatten, Spectral
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.paths.balls import ball_of, trace_power

SHAPE = (3, 2)
GEOMETRIES = (
    Frobenius(), Lp(1), Lp(1.3), Lp(3), Lp(np.inf), Nuclear(), Schatten(1.3), Schatten(3),
    Spectral(),
)  # fmt: skip


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
def test_every_point_lies_in_the_ball(geometry, rng):
    ball = ball_of(geometry, SHAPE)
    size = len(ball.lift(np.zeros(SHAPE), 0.1))
    with double_precision():
        points = jax.jit(jax.vmap(ball.point))
        for scale in (1e-3, 1, 30):
            inside = geometry.norm(np.asarray(points(scale * rng.normal(size=(20, size)))))
            assert (inside <= 1 + 1e-14).all()


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
@pytest.mark.parametrize("size", (1.0, 0.6))
def test_lifting_a_matrix_gives_its_coordinates(geometry, size, rng):
    ball = ball_of(geometry, SHAPE)
    for C in (rng.normal(size=SHAPE), np.array([[1.0, 0], [0, 0], [0, 0]]), np.ones(SHAPE)):
        C = size * C / geometry.norm(C)
        with double_precision():
            exact = np.asarray(ball.point(ball.lift(C, 1e-9)))
            near = np.asarray(ball.point(ball.lift(C, 1e-2)))
        np.testing.assert_allclose(exact, C, atol=1e-7)
        np.testing.assert_allclose(near, C, atol=2e-2)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
def test_second_derivatives_are_those_of_first_differences(geometry, rng):
    ball = ball_of(geometry, SHAPE)
    weight = rng.normal(size=SHAPE)
    C = rng.normal(size=SHAPE)
    theta = ball.lift(0.9 * C / geometry.norm(C), 0.1)
    direction, step = rng.normal(size=theta.shape), 1e-6
    with double_precision():

        def function(theta):
            return (weight * ball.point(theta)).sum()

        @jax.jit
        def slopes_along(theta):
            return jax.jvp(jax.value_and_grad(function), (theta,), (jnp.asarray(direction),))

        (_, slope), (along, curved) = slopes_along(theta)
        (low, lower), (high, higher) = (
            slopes_along(theta + t * direction)[0] for t in (-step, step)
        )
    slope, along, curved = np.asarray(slope), float(along), np.asarray(curved)
    low, high, lower, higher = map(np.asarray, (low, high, lower, higher))
    np.testing.assert_allclose(slope @ direction, along, rtol=1e-12)
    np.testing.assert_allclose(along, (high - low) / 2 / step, rtol=1e-6)
    np.testing.assert_allclose(curved, (higher - lower) / 2 / step, atol=1e-5)


@functools.partial(jax.jit, static_argnums=0)
def slope_and_curve(p, factor, direction):
    slope = jax.grad(lambda factor: trace_power(factor.T @ factor, p))
    return jax.jvp(slope, (factor,), (direction,))


@pytest.mark.parametrize("p", (1.01, 1.5, 3))
@pytest.mark.parametrize("values", ((2.0, 0.5, 1e-3), (1.0, 1.0, 1.0), (1.0, 1 + 1e-9, 0.3)))
def test_trace_powers_of_degenerate_matrices_have_second_derivatives(p, values, rng):
    V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    factor = V * np.sqrt(values)
    direction, step = rng.normal(size=(3, 3)), 1e-6
    with double_precision():
        _, curved = slope_and_curve(p, factor, direction)
        slopes = [
            np.asarray(slope_and_curve(p, factor + t * direction, direction)[0])
            for t in (-step, step)
        ]
    scale = np.abs(slopes[1] - slopes[0]).max() / 2 / step
    np.testing.assert_allclose(curved, (slopes[1] - slopes[0]) / 2 / step, atol=1e-4 * scale)


def test_other_norms_are_refused():
    class Other(Frobenius):
        name = "other"

    assert isinstance(Other(), Geometry)
    plain = type("Plain", (Geometry,), dict.fromkeys(Geometry.__abstractmethods__, None))
    plain.name = "plain"
    with pytest.raises(InvalidInputError, match="no path is known for the plain norm"):
        ball_of(plain(), SHAPE)
