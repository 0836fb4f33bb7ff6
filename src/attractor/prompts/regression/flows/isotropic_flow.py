"""Softmax attention on finite prompts with independent inputs: its exact gradient flow."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, ArrayLike, Float

from attractor.prompts.regression.flows.flow import CompiledRisk, RiskFlow, follow_risk
from attractor.prompts.regression.risks.prompt_averages import LARGEST_TABLE, FiniteSoftmax, Queries
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import check_count, check_number, naming
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

_LARGEST_DIMENSION = 1000


class _Head(NamedTuple):
    """One head ``A = a I`` and ``b``; Frobenius norms are those of these two numbers.

    Attributes:
        norm: ``||A||_F``, ``sqrt(d) a``.
        value: ``b``.
    """

    norm: Any
    value: Any


@dataclass(frozen=True, eq=False)
class IsotropicFlow(RiskFlow):
    """Gradient flow of one head ``A = a I``, ``b``.

    Attributes:
        times: When it was recorded.
        parameters: ``sqrt(d) a`` and ``b``, each with an axis of times.
        risk: ``E (prediction - w^T x_q)^2 / 2``.
        dimension: Number of inputs.
    """

    dimension: int

    @property
    def a(self) -> Float[np.ndarray, "time"]:
        """The diagonal entry of ``A``."""
        return self.parameters.norm / math.sqrt(self.dimension)

    @property
    def b(self) -> Float[np.ndarray, "time"]:
        """``b``, the weight of labels in the prediction."""
        return self.parameters.value

    @property
    def balance(self) -> Float[np.ndarray, "time"]:
        """``d a^2 - b^2``, which the flow of a finite prompt does not keep."""
        return self.parameters.norm**2 - self.parameters.value**2


class IsotropicOptimum(NamedTuple):
    """The best head ``A = a I``, ``b``.

    Attributes:
        a: The diagonal entry of ``A``.
        b: The weight of labels in the prediction.
        risk: Its risk, ``E (prediction - w^T x_q)^2 / 2``.
    """

    a: float
    b: float
    risk: float


def isotropic_finite_flow(
    dimension: int,
    length: float,
    scale: float,
    times: Float[ArrayLike, "time"],
    *,
    label_noise: float = 0.0,
    tolerance: float = 1e-10,
) -> IsotropicFlow:
    """Gradient flow of softmax attention on the exact risk of finite prompts.

    Inputs and weights are independent standard normal, and the start is balanced, so that ``A``
    stays a multiple ``a I`` of the identity: ``a' = -(1/d) dR/da``, ``b' = -dR/db``. The risk is
    ``E_r[b^2 (E ghat^2 + (d - 1 + n) q) - 2 b r E ghat + r^2] / 2`` with ``r`` the length of the
    query and the averages over prompts ``E ghat``, ``E ghat^2`` and ``q`` of ``finite_length`` at
    ``s = a r``.

    Args:
        dimension: Number of inputs ``d``.
        length: Number of tokens of a prompt.
        scale: Of the balanced start, ``b = ||A||_F = scale``.
        times: When to record: increasing, from 0 on.
        label_noise: Variance ``n`` of the noise in the labels of the prompt.
        tolerance: Error of a step, relative to the parameters.

    Raises:
        InvalidInputError: If an argument is out of range, or the scores of the start are so large
            that one token takes all attention.
    """
    scale = check_number("scale", scale, above=0.0, example=0.1)
    tolerance = check_number("tolerance", tolerance, above=0.0, below=1.0, example=1e-10)
    softmax = _isotropic(dimension, length, label_noise, scale)
    start = _Head(np.float64(scale), np.float64(scale))
    compiled = _compiled().on((softmax, math.sqrt(dimension)))
    flow = follow_risk(compiled, start, times, tolerance)
    _check_table(softmax, flow.parameters.norm[:, None, None] / math.sqrt(dimension))
    return IsotropicFlow(**vars(flow), dimension=dimension)


def isotropic_optimum(
    dimension: int, length: float, *, label_noise: float = 0.0
) -> IsotropicOptimum:
    """The best head ``A = a I``, ``b`` of softmax attention for a length, by Newton's method.

    Args:
        dimension: Number of inputs.
        length: Number of tokens of a prompt.
        label_noise: Variance of the noise in the labels of the prompt.

    Raises:
        InvalidInputError: If an argument is out of range.
    """
    softmax = _isotropic(dimension, length, label_noise, 1.0)
    compiled = _compiled().on((softmax, math.sqrt(dimension)))
    start = dimension**0.25
    with double_precision():
        found = scipy.optimize.minimize(
            lambda point: float(compiled.value(point)),
            np.array([start, start]),
            method="trust-exact",
            jac=lambda point: np.asarray(compiled.gradient(point)),
            hess=lambda point: np.asarray(compiled.hessian(point)),
            options={"gtol": 1e-11},
        )
    a, b = found.x[0] / math.sqrt(dimension), found.x[1]
    with naming(initial="label_noise"):
        _check_table(softmax, np.array([[a]]), "Give less noise")
    return IsotropicOptimum(float(a), float(b), float(found.fun))


def _isotropic(dimension: int, length: float, label_noise: float, scale: float) -> FiniteSoftmax:
    """The risk, tabulated for the deviations along a flow from a balanced start of some scale."""
    dimension = check_count("dimension", dimension, 1, _LARGEST_DIMENSION)
    # The law is the same in every direction, so that one represents all: labels are its input, and
    # noise that includes the other inputs.
    task = RegressionTask(np.eye(1), label_noise=label_noise)
    points, weights = Queries.along(np.eye(dimension)[:1])
    queries = Queries(points[:, :1], weights)
    # Largest at the start, or where prompts of infinite length would end.
    largest = max(scale / math.sqrt(dimension), dimension**-0.25)
    deviation = largest * queries.longest
    if not deviation <= LARGEST_TABLE:
        raise InvalidInputError(
            "scale",
            f"scores reach standard deviation {deviation:.3g}, where one token takes all attention",
            f"Give a start whose scores stay below {LARGEST_TABLE:g}",
        )
    softmax = FiniteSoftmax.of(task, length, queries, deviation)
    noise = dimension - 1 + task.label_noise
    return softmax._replace(
        law=softmax.law._replace(label_noise=noise), risk_of_zero=np.float64(dimension / 2)
    )


def _check_table(
    softmax: FiniteSoftmax,
    key_queries: Float[np.ndarray, "*batch 1 1"],
    remedy: str = "Give a smaller start",
) -> None:
    deviation = softmax.largest_deviation(key_queries)
    if deviation > softmax.table.largest_deviation:
        raise InvalidInputError(
            "initial",
            f"scores along the flow reach standard deviation {deviation:.3g}, beyond the "
            f"{softmax.table.largest_deviation:.3g} foreseen",
            remedy,
        )


@functools.cache
def _compiled() -> CompiledRisk:
    """The risk, compiled once for all dimensions and lengths."""

    def risk(head: _Head, data: tuple[FiniteSoftmax, Array]) -> Array:
        softmax, root_dimension = data
        return softmax.risk(jnp.reshape(head.norm / root_dimension, (1, 1)), head.value)

    return CompiledRisk.of(risk, _Head(0.0, 0.0))
