"""Smooth minimization without constraints, of few variables or of many.

SciPy's second-order methods stop where values of the function differ by rounding. A logarithm of
the loss is then known to 1e-13 of thousands, and its minimizer only to the root of that. In
``newton`` the last steps are judged by the gradient instead, which is as exact as the scores are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float, Int, PyTree

from attractor.support.randomness import traced

_DENSE = 700
"""Variables up to which the spectrum of the Hessian is affordable at every step."""
_NEWTON_STEPS = 300
_LIMITED_MEMORY_STEPS = 20_000
_CORRECTIONS = 30
_ROUNDINGS = 16
"""Roundings of a value within which a change of it means nothing."""
_FIRST_SHIFT = 1e-2
_LARGEST_SHIFT = 1e14
_LONGEST_STEP = 1.0
_MISSES = 4
"""Last steps that may fail to flatten the slope before the search ends."""
Objective = Callable[[Any, Any], Any]


def minimize(objective: Objective, theta: Float[np.ndarray, "k"], data: PyTree) -> Minimum:
    """A local minimum of ``objective(theta, data)`` near a start.

    Up to some hundreds of variables by Newton's method in a trust region; beyond by SciPy's
    L-BFGS, which ends where values differ by rounding and knows nothing of curvature.

    Args:
        objective: A twice differentiable function that JAX can trace; hashable.
        theta: Where to start.
        data: Its second argument.
    """
    if len(theta) <= _DENSE:
        return newton(objective, theta, data, _NEWTON_STEPS)

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _value_and_slope(objective, theta, data)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta)
        return float(value), np.asarray(slope)

    found = scipy.optimize.minimize(
        function,
        theta,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": _LIMITED_MEMORY_STEPS,
            "maxfun": 2 * _LIMITED_MEMORY_STEPS,
            "maxcor": _CORRECTIONS,
            "ftol": 0,
            "gtol": 0,
        },
    )
    return Minimum(found.x, found.fun, found.nit)


@functools.partial(jax.jit, static_argnums=0)
@traced
def _value_and_slope(objective: Objective, theta: Any, data: PyTree) -> Any:
    return jax.value_and_grad(objective)(theta, data)


class Minimum(NamedTuple):
    """The result of a search.

    Attributes:
        theta: The point.
        value: The function there.
        iterations: Newton steps tried.
    """

    theta: Float[Any, "k"]
    value: Float[Any, ""]
    iterations: Int[Any, ""]


class _State(NamedTuple):
    theta: Array
    value: Array
    gradient: Array
    hessian: Array
    moved: Array  # whether the Hessian is still that of the last point
    shift: Array  # relative to the size of the Hessian
    misses: Array
    iterations: Array  # -1 before the function is known at the start


@functools.partial(jax.jit, static_argnums=0)
@traced
def newton(
    objective: Objective, theta: Float[Any, "k"], data: PyTree, limit: int | Int[Array, ""]
) -> Minimum:
    """A local minimum of ``objective(theta, data)``.

    Steps solve ``(H + shift I) move = -gradient``; the shift grows until the matrix is positive
    definite and the function falls as the model says, and shrinks where it does. Saddle points
    repel: along directions of negative curvature steps grow.

    Source: Conn, Gould and Toint, *Trust-Region Methods* (2000), chapter 7, where the shift is
    the multiplier of the trust region.

    Args:
        objective: A twice differentiable function that JAX can trace; hashable.
        theta: Where to start.
        data: Its second argument.
        limit: Largest number of steps.
    """
    dtype = theta.dtype

    def curvature(theta: Array) -> Array:
        hessian = jax.hessian(objective)(theta, data)
        usable = jnp.isfinite(hessian).all()
        return jnp.where(usable, (hessian + hessian.T) / 2, jnp.eye(len(theta)))

    def step(state: _State) -> _State:
        hessian = jax.lax.cond(state.moved, curvature, lambda _: state.hessian, state.theta)
        size = jnp.maximum(jnp.abs(jnp.diagonal(hessian)).max(), jnp.finfo(dtype).tiny)
        least = len(theta) * jnp.finfo(dtype).eps
        shifted = hessian + (state.shift + least) * size * jnp.eye(len(theta))
        factor = jax.scipy.linalg.cho_factor(shifted, lower=True)
        move = -jax.scipy.linalg.cho_solve(factor, state.gradient)
        definite = jnp.isfinite(move).all()
        move = jnp.where(definite, move, 0)
        move = move * jnp.minimum(1, _LONGEST_STEP / jnp.maximum(jnp.linalg.norm(move), least))
        there = state.theta + move
        value, gradient = jax.value_and_grad(objective)(there, data)

        finite = jnp.isfinite(value) & jnp.isfinite(gradient).all()
        usable = definite & finite
        noise = _ROUNDINGS * jnp.finfo(dtype).eps * (1 + jnp.abs(state.value))
        predicted = -(state.gradient @ move) - move @ hessian @ move / 2
        # Without a step, or below rounding, values mean nothing, and the slope decides.
        polishing = definite & (predicted <= noise)
        ratio = jnp.where(usable, (state.value - value) / predicted, -jnp.inf)
        flatter = jnp.linalg.norm(gradient) < 0.5 * jnp.linalg.norm(state.gradient)
        flatter &= value <= state.value + noise
        accepted = usable & jnp.where(polishing, flatter, ratio > 1e-4)

        grown = jnp.maximum(4 * state.shift, 1e-10)
        shrunk = jnp.where(state.shift > least, state.shift / 8, 0)
        shift = jnp.where(ratio > 0.75, shrunk, jnp.where(ratio < 0.25, grown, state.shift))
        # Rounding of values may have raised the shift: last steps begin with hardly any.
        shift = jnp.where(polishing, jnp.minimum(shrunk, 1e-3 * state.shift), shift)
        missed = polishing & ~accepted
        begins = state.iterations < 0
        accepted |= begins
        return _State(
            theta=jnp.where(accepted, there, state.theta),
            value=jnp.where(begins & ~finite, jnp.inf, jnp.where(accepted, value, state.value)),
            gradient=jnp.where(accepted, gradient, state.gradient),
            hessian=hessian,
            moved=accepted,
            shift=jnp.where(begins, state.shift, shift),
            misses=jnp.where(begins & ~finite, _MISSES, state.misses + (missed & ~begins)),
            iterations=state.iterations + 1,
        )

    def unfinished(state: _State) -> Array:
        possible = (state.misses < _MISSES) & (state.shift < _LARGEST_SHIFT)
        return possible & (state.iterations < limit)

    # The start is a step by nothing: the function in one more place would be compiled once more.
    start = _State(
        theta=theta,
        value=jnp.array(jnp.inf, dtype),
        gradient=jnp.zeros_like(theta),
        hessian=jnp.zeros((len(theta), len(theta)), dtype),
        moved=jnp.array(False),
        shift=jnp.array(_FIRST_SHIFT, dtype),
        misses=jnp.array(0),
        iterations=jnp.array(-1),
    )
    end = jax.lax.while_loop(unfinished, step, start)
    return Minimum(end.theta, end.value, end.iterations)
