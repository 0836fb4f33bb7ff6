"""The best that one softmax head can do on prompts of finite length."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from jaxtyping import Float

from attractor.checks import as_number, check_kinds
from attractor.errors import InvalidInputError
from attractor.former_names import dropped_arguments
from attractor.prompt.regression._trained_limit import finite_prompt_limit
from attractor.prompt.regression.averaged_softmax import AveragedSoftmax
from attractor.prompt.regression.blocks import Blocks
from attractor.prompt.regression.linear_attention import linear_attention_optimum
from attractor.prompt.regression.task import RegressionTask

_SINGULAR = 1e-7
_GRADIENT = 1e-7  # of risks relative to that of zero
_KEPT = 30
_STEPS = 2000
_COMMUTES = 1e-9


class SoftmaxOptimum(NamedTuple):
    """The best head with ``c = v = 0``.

    Attributes:
        blocks: The head, with ``b >= 0``; the risk of ``(-A, -b)`` is the same.
        risk: Its risk, ``E (prediction - w^T x_q)^2 / 2``.
        standard_error: 0, as nothing is drawn.
    """

    blocks: Blocks
    risk: float
    standard_error: float


class _Scales(NamedTuple):
    """Scales that make parameters of order one: ``A = left B right`` and ``b = value beta``.

    Where the covariances commute ``B`` is diagonal, in their common eigenvectors: the risk is even
    in the sign of every coordinate of the query there, so that the best diagonal ``B`` is a
    critical point among all.
    """

    diagonal: bool
    left: Float[Any, "d d"]
    right: Float[Any, "d d"]
    value: Float[Any, ""]


@dropped_arguments("seed", why="nothing is drawn")
def softmax_optimum(task: RegressionTask, length: float) -> SoftmaxOptimum:
    """The best head of softmax attention for a length, among those with ``c = v = 0``.

    It minimizes the risk of ``softmax_risk`` by a quasi-Newton method, from the best head of linear
    attention, from the best of the heads that predict perfectly on infinite prompts and from a
    multiple of the identity. The law of prompts is the same for weights ``-w``, so that the risk is
    even in ``(c, v)``: this head is a critical point among all heads.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt, finite: without end ``trained_limit`` has no risk.

    Raises:
        InvalidInputError: If the length is infinite or below 1.
    """
    check_kinds(task=(task, RegressionTask))
    if not 1 <= as_number(length) < math.inf:
        raise InvalidInputError(
            "length", f"it is {length!r}", "Give a finite number of tokens, at least 1"
        )
    d, scales, softmax = task.dimension, _scales(task), AveragedSoftmax(task, length)

    def relative_risk(point: np.ndarray) -> tuple[float, np.ndarray]:
        found = softmax(*_head(point, scales))
        body = scales.left.T @ found.key_query @ scales.right.T
        slopes = np.append(np.diag(body) if scales.diagonal else body, 0.0)
        slopes[-1] = scales.value * found.value_label
        return found.risk / task.risk_of_zero, slopes / task.risk_of_zero

    found = min(
        (
            scipy.optimize.minimize(
                relative_risk,
                start,
                jac=True,
                method="L-BFGS-B",
                options={"gtol": _GRADIENT, "ftol": 0.0, "maxcor": _KEPT, "maxiter": _STEPS},
            )
            for start in _starts(task, length, scales)
        ),
        key=lambda result: result.fun,
    )
    a, b = _head(found.x, scales)
    sign = -1.0 if b < 0 else 1.0
    blocks = Blocks(sign * a, np.zeros(d), np.zeros(d), np.asarray(sign * b))
    return SoftmaxOptimum(blocks, softmax(sign * a, sign * b).risk, 0.0)


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
    entries = point[:-1]
    body = np.diag(entries) if scales.diagonal else entries.reshape(scales.left.shape)
    return scales.left @ body @ scales.right, float(scales.value * point[-1])


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
