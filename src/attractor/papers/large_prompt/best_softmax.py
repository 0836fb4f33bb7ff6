"""The best softmax head of a task on finite prompts, by minimizing its exact risk."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Float

from attractor.precision import double_precision
from attractor.prompt.regression import RegressionTask, finite_prompt_limit
from attractor.prompt.regression.finite_softmax import FiniteSoftmax, Queries

_DIRECTIONS, _SEED = 64, 0
_LARGEST = 6.4
"""Score deviations up to which averages over prompts are tabulated, less a margin."""


class BestHead(NamedTuple):
    """A head with ``c = v = 0``, and its risk.

    Attributes:
        key_query: ``A``.
        value_label: ``b``.
        risk: ``E (prediction - w^T x_q)^2 / 2``, for other queries than it was found with.
    """

    key_query: Float[np.ndarray, "d d"]
    value_label: float
    risk: float


def best_softmax(task: RegressionTask, length: int) -> BestHead:
    """The head ``A``, ``b`` of least risk on prompts of a length.

    The average over prompts is exact, that over lengths of queries too; directions of queries are
    drawn, others to find the head than to measure its risk.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt.
    """
    d = task.dimension
    find, measure = (
        FiniteSoftmax.of(task, length, Queries.along(_directions(d, number)), _LARGEST)
        for number in (0, 1)
    )
    start = np.append(np.linalg.inv(task.covariance).ravel(), 1.0)
    b = finite_prompt_limit(task)
    start = start * np.append(np.full(d * d, 1 / b), b) * length / (length + 2 * d)
    with double_precision():
        found = scipy.optimize.minimize(
            lambda point: _as_float(*_risk_and_slope(jnp.asarray(point), find)),
            start,
            jac=True,
            method="BFGS",
            options={"gtol": 1e-8},
        )
        risk = float(_risk_and_slope(jnp.asarray(found.x), measure)[0])
    return BestHead(found.x[:-1].reshape(d, d), float(found.x[-1]), risk)


def _directions(dimension: int, number: int) -> Float[np.ndarray, "direction d"]:
    """Random orthonormal bases: directions that are even to second order."""
    draws = np.random.default_rng([_SEED, number])
    bases = np.linalg.qr(draws.standard_normal((_DIRECTIONS, dimension, dimension)))[0]
    return bases.reshape(-1, dimension)


@jax.jit
def _risk_and_slope(
    point: Float[Array, "parameter"], softmax: FiniteSoftmax
) -> tuple[Float[Array, ""], Float[Array, "parameter"]]:
    def risk(point: Array) -> Array:
        d = softmax.queries.shape[-1]
        return softmax.risk(point[:-1].reshape(d, d), point[-1])

    return jax.value_and_grad(risk)(point)


def _as_float(value: Array, slope: Array) -> tuple[float, np.ndarray]:
    return float(value), np.asarray(slope)
