"""Smooth minimization without constraints, of few variables or of many."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, PyTree

from attractor.training.paths.newton import Minimum, Objective, newton

_DENSE = 700
"""Variables up to which the spectrum of the Hessian is affordable at every step."""
_NEWTON_STEPS = 300
_LIMITED_MEMORY_STEPS = 20_000
_CORRECTIONS = 30


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

    from scipy import optimize

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _value_and_slope(objective, theta, data)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta)
        return float(value), np.asarray(slope)

    found = optimize.minimize(
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
def _value_and_slope(objective: Objective, theta: Any, data: PyTree) -> Any:
    return jax.value_and_grad(objective)(theta, data)
