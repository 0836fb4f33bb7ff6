"""The best that one softmax head can do on prompts of finite length."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Float

from attractor.checks import as_number, check_kinds
from attractor.errors import InvalidInputError
from attractor.precision import double_precision
from attractor.prompt.regression._softmax_risk import softmax_risk
from attractor.prompt.regression._trained_limit import finite_prompt_limit
from attractor.prompt.regression.blocks import Blocks
from attractor.prompt.regression.finite_softmax import LARGEST_TABLE, FiniteSoftmax, Queries
from attractor.prompt.regression.linear_attention import linear_attention_optimum
from attractor.prompt.regression.task import RegressionTask
from attractor.randomness import check_seed

_QUERIES = 2**12
_FEWEST_PER_PARAMETER = 16
_SET = 1000  # far from those of the risk that is returned
_FIRST_TABLE = 6.0
_SINGULAR = 1e-7
_GRADIENT = 1e-5  # of risks relative to that of zero
_KEPT = 30
_STEPS = 2000
_COMMUTES = 1e-9


class SoftmaxOptimum(NamedTuple):
    """The best head with ``c = v = 0``.

    Attributes:
        blocks: The head, with ``b >= 0``; the risk of ``(-A, -b)`` is the same.
        risk: Its risk, ``E (prediction - w^T x_q)^2 / 2``.
        standard_error: Of the risk, as that of ``softmax_risk``.
    """

    blocks: Blocks
    risk: float
    standard_error: float


class _Scales(NamedTuple):
    """Scales that make parameters of order one: ``A = left B right`` and ``b = value beta``.

    Where the covariances commute ``B`` is diagonal, in their common eigenvectors: the risk is even
    in the sign of every coordinate of the query there, so that the best diagonal ``B`` is a
    critical point among all, and with ``d + 1`` parameters no sample of queries is fitted too well.
    """

    diagonal: bool
    left: Float[Any, "d d"]
    right: Float[Any, "d d"]
    value: Float[Any, ""]


def softmax_optimum(task: RegressionTask, length: float, *, seed: int = 0) -> SoftmaxOptimum:
    """The best head of softmax attention for a length, among those with ``c = v = 0``.

    It minimizes the risk that ``softmax_risk`` computes by a quasi-Newton method on one set of
    queries, from the best head of linear attention, from the best of the heads that predict
    perfectly on infinite prompts and from a multiple of the identity; the risk returned is on other
    queries. Blocks are good to some thousandths, and to some hundredths where prompts are so long
    that next to no risk is left; the risk changes with the square of that. The law of prompts is
    the same for weights ``-w``, so that the risk is even in ``(c, v)``: this head is a critical
    point among all heads.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt, finite: without end ``trained_limit`` has no risk.
        seed: Same seed, same numbers.

    Raises:
        InvalidInputError: If the length is infinite or below 1, or scores of the best head are so
            large that one token takes all attention.
    """
    check_kinds(task=(task, RegressionTask))
    seed = check_seed("seed", seed)
    if not 1 <= as_number(length) < math.inf:
        raise InvalidInputError(
            "length", f"it is {length!r}", "Give a finite number of tokens, at least 1"
        )
    d, scales = task.dimension, _scales(task)
    parameters = d + 1 if scales.diagonal else d**2 + 1
    count = max(_QUERIES, 2 ** math.ceil(math.log2(_FEWEST_PER_PARAMETER * parameters)))
    queries = Queries.scrambled(d, count, (seed, _SET))
    with double_precision():
        found = min(
            (_descend(task, length, queries, scales, x) for x in _starts(task, length, scales)),
            key=lambda result: result.fun,
        )
    a, b = _head(found.x, scales)
    sign = -1.0 if b < 0 else 1.0
    blocks = Blocks(sign * a, np.zeros(d), np.zeros(d), np.asarray(sign * b))
    return SoftmaxOptimum(blocks, *softmax_risk(task, blocks, length, seed=seed))


def _scales(task: RegressionTask) -> _Scales:
    """Scales in which prompts and queries are white, in common eigenvectors where there are some.

    Entries of ``B`` that no query sees are kept out by a singular ``right``.
    """
    prompts, queries = task.covariance, task.query_covariance
    value = np.float64(math.sqrt(np.trace(queries) / np.trace(prompts)))
    # A sum of the two at which no eigenvalues of different vectors coincide by chance.
    mixed = prompts / np.trace(prompts) + math.sqrt(2) * queries / np.trace(queries)
    basis = np.linalg.eigh(mixed)[1]
    turned = [basis.T @ covariance @ basis for covariance in (prompts, queries)]
    if all(np.abs(c - np.diag(np.diag(c))).max() <= _COMMUTES * np.trace(c) for c in turned):
        wide, seen = (np.maximum(np.diag(c), 0) for c in turned)
        roots = np.sqrt(seen)
        inverse = np.where(roots > _SINGULAR * roots.max(), 1 / np.maximum(roots, 1e-300), 0)
        return _Scales(True, basis / np.sqrt(wide), inverse[:, None] * basis.T, value)
    left = np.linalg.inv(np.linalg.cholesky(prompts)).T
    return _Scales(False, left, np.linalg.pinv(task.query_factor, rcond=_SINGULAR), value)


def _head(
    point: Float[np.ndarray, "parameter"], scales: _Scales
) -> tuple[Float[np.ndarray, "d d"], float]:
    body = np.asarray(_body(point, len(scales.left)))
    return scales.left @ body @ scales.right, float(scales.value * point[-1])


def _body(point: Float[Any, "parameter"], dimension: int) -> Float[Array, "d d"]:
    """``B``: its diagonal where there are no parameters for more."""
    entries = jnp.asarray(point[:-1])
    return jnp.diag(entries) if len(entries) == dimension else entries.reshape(2 * (dimension,))


def _starts(
    task: RegressionTask, length: float, scales: _Scales
) -> Iterator[Float[np.ndarray, "parameter"]]:
    b, d = finite_prompt_limit(task), task.dimension
    products = (linear_attention_optimum(task, length).product, np.linalg.inv(task.covariance))
    white = np.linalg.pinv(scales.right)
    bodies = [(np.linalg.solve(scales.left, p / b) @ white, b / scales.value) for p in products]
    # Scores of the multiple of the identity have deviations of about one, whatever d is.
    for body, value in (*bodies, (np.eye(d) / math.sqrt(d), 1.0)):
        yield np.append(np.diag(body) if scales.diagonal else body, value)


def _descend(
    task: RegressionTask,
    length: float,
    queries: Queries,
    scales: _Scales,
    start: Float[np.ndarray, "parameter"],
) -> scipy.optimize.OptimizeResult:
    """Minimizes from one start, and continues with a larger table if scores leave it."""
    point, deviation = start, _FIRST_TABLE
    while True:
        softmax = FiniteSoftmax.of(task, length, queries, deviation)
        data = jax.tree.map(jnp.asarray, (softmax, scales.left, scales.right, scales.value))
        found = scipy.optimize.minimize(
            lambda x, data=data: tuple(np.asarray(part) for part in _compiled()(x, data)),
            point,
            jac=True,
            method="L-BFGS-B",
            options={"gtol": _GRADIENT, "ftol": 0.0, "maxcor": _KEPT, "maxiter": _STEPS},
        )
        point, deviation = found.x, softmax.largest_deviation(_head(found.x, scales)[0])
        if deviation <= softmax.table.largest_deviation:
            return found
        if softmax.table.largest_deviation >= LARGEST_TABLE:
            raise InvalidInputError(
                "length",
                f"scores of the best head reach standard deviation {deviation:.3g}, where one "
                "token takes all attention",
                "Give shorter prompts",
            )


@functools.cache
def _compiled() -> Callable[..., tuple[Array, Array]]:
    """Risk relative to that of zero, and its gradient, of flat parameters."""

    def risk(
        point: Float[Array, "parameter"], data: tuple[FiniteSoftmax, Array, Array, Array]
    ) -> Array:
        softmax, left, right, value = data
        body = left @ _body(point, len(left)) @ right
        return softmax.risk(body, value * point[-1]) / softmax.risk_of_zero

    return jax.jit(jax.value_and_grad(risk))
