"""The best that softmax heads can do on prompts of finite length; pairs of opposite heads."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.optimize
from jaxtyping import Float

from attractor.prompts.finite_length.functions import LARGEST_LENGTH
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.flows._trained_limit import finite_prompt_limit
from attractor.prompts.regression.risks.linear_attention import (
    LinearOptimum,
    linear_attention_optimum,
    linear_attention_risk,
)
from attractor.prompts.regression.risks.prompt_averages import (
    AveragedSoftmax,
    OneHead,
    OppositeHeads,
    PromptAverages,
)
from attractor.prompts.regression.task import RegressionTask
from attractor.support.blas import single_blas_thread
from attractor.support.checks import as_number, check_kinds, check_number
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_shaped


def opposite_heads(blocks: Blocks, score_scale: float = 1.0) -> Blocks:
    """Two heads of opposite signs that do together, on infinite prompts, what one head does.

    ``(e U, V / (2 e))`` and ``(-e U, -V / (2 e))`` in place of ``(U, V)``. Values of opposite signs
    cancel the mean of the prompt, which one head alone adds to its prediction; ``leading_order``
    is the remaining risk.

    Args:
        blocks: One head, or the first of each of several pairs.
        score_scale: ``e``, positive.

    Returns:
        The heads, with an axis of two in front.

    Raises:
        InvalidInputError: If the scale is not positive.
    """
    check_kinds(blocks=(blocks, Blocks))
    score_scale = check_number("score_scale", score_scale, least=1e-100, most=1e100, example=1.0)
    xp = blocks.namespace
    signs = np.array([1.0, -1.0])
    factors = (signs * score_scale,) * 2 + (signs / (2 * score_scale),) * 2
    return Blocks(
        *(
            xp.stack([factor * xp.asarray(block) for factor in pair])
            for block, pair in zip(blocks, factors, strict=True)
        )
    )


def small_score_risk(
    task: RegressionTask, product: Float[np.ndarray, "d d"], length: float
) -> float:
    """Risk of two opposite softmax heads whose scores tend to zero, exactly at every length.

    As ``e`` tends to zero in ``opposite_heads``, with ``b A = product``, the prediction tends to
    ``(1/L) sum_l (y_l - mean y) (x_l - mean x)^T b A x_q``. The scatter of ``L`` tokens about
    their mean is that of ``L - 1`` tokens about zero: it is linear attention with one token less
    and ``(1 - 1/L) b A``.

    Args:
        task: The law of prompts and queries.
        product: ``b A``.
        length: Number of tokens of a prompt, at least 2.

    Raises:
        InvalidInputError: If the prompt has less than two tokens, or ``product`` another dimension
            than the task.
    """
    check_kinds(task=(task, RegressionTask))
    product = as_shaped("product", product, (task.dimension, task.dimension), largest=LARGEST)
    _check_pair(length)
    zeros = np.zeros(task.dimension)
    scaled = np.asarray(product, dtype=np.float64) * (1 - 1 / length)
    blocks = Blocks(scaled, zeros, zeros, np.array(1.0))
    return float(linear_attention_risk(task, blocks, length - 1))


def small_score_optimum(task: RegressionTask, length: float) -> LinearOptimum:
    """The best of two opposite softmax heads whose scores tend to zero.

    It has the risk of the best linear attention on prompts of one token less, so that two softmax
    heads are at most one token behind linear attention.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt, at least 2.

    Raises:
        InvalidInputError: If the prompt has less than two tokens.
    """
    check_kinds(task=(task, RegressionTask))
    _check_pair(length)
    product, risk = linear_attention_optimum(task, length - 1)
    return LinearOptimum(product * (length / (length - 1)), risk)


def _check_pair(length: float) -> None:
    if as_number(length) < 2:
        raise InvalidInputError(
            "length", f"it is {length!r}", "Give at least two tokens; one is its own mean"
        )
    check_number("length", length, most=LARGEST_LENGTH)


_SINGULAR = 1e-7
_GRADIENT = 1e-8  # of risks relative to that of zero
_KEPT = 30
_STEPS = 2000
_COMMUTES = 1e-9
_SCORE_SCALES = (0.3, 0.7)  # of two heads that are linear attention where these are small
_REFUSED = 1e6


class SoftmaxOptimum(NamedTuple):
    """The best heads with ``c = v = 0``.

    Attributes:
        blocks: One head with ``b >= 0``; the risk of ``(-A, -b)`` is the same. Or two of these.
        risk: Their risk, ``E (prediction - w^T x_q)^2 / 2``.
        standard_error: Zero: the risk is exact.
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
    left: Float[np.ndarray, "d d"]
    right: Float[np.ndarray, "d d"]
    value: float

    def head(self, point: Float[np.ndarray, "parameter"]) -> tuple[Float[np.ndarray, "d d"], float]:
        """``A`` and ``b`` of parameters."""
        body = np.diag(point[:-1]) if self.diagonal else point[:-1].reshape(self.left.shape)
        return self.left @ body @ self.right, self.value * float(point[-1])

    def deviation(self, point: Float[np.ndarray, "parameter"]) -> float:
        """The largest score deviation along an axis of white queries."""
        if self.diagonal:
            return float(np.abs(point[:-1]).max())
        return float(np.linalg.norm(point[:-1].reshape(self.left.shape), 2))

    def point(self, body: Float[np.ndarray, "d d"], beta: float) -> np.ndarray:
        """The parameters of ``B`` and ``beta``, or derivatives in them."""
        return np.append(np.diag(body) if self.diagonal else body, beta)


def softmax_optimum(task: RegressionTask, length: float) -> SoftmaxOptimum:
    """The best head of softmax attention for a length, among those with ``c = v = 0``.

    It minimizes the exact risk that ``softmax_risk`` computes by a quasi-Newton method, from the
    best head of linear attention, from the best of the heads that predict perfectly on infinite
    prompts and from a multiple of the identity. The law of prompts is the same for weights ``-w``,
    so that the risk is even in ``(c, v)``: this head is a critical point among all heads.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt, finite: without end ``trained_limit`` has no risk.

    Raises:
        InvalidInputError: If the length is infinite or below 1.
    """
    _check(task, length, 1)
    scales = _scales(task)
    b, d = finite_prompt_limit(task), task.dimension
    products = (linear_attention_optimum(task, length).product, np.linalg.inv(task.covariance))
    heads = [(product / b, b) for product in products]
    # Scores of the multiple of the identity have deviations of about one, whatever d is.
    white = scales.point(np.eye(d) / math.sqrt(d), 1.0)
    a, b, risk = _best(task, OneHead(length), scales, heads, white)
    blocks = Blocks(a, np.zeros(d), np.zeros(d), np.asarray(b))
    return SoftmaxOptimum(blocks, risk, 0.0)


def opposite_heads_optimum(task: RegressionTask, length: float) -> SoftmaxOptimum:
    """The best two heads ``(A, b)`` and ``(-A, -b)`` of softmax attention for a length.

    As ``softmax_optimum``, of the exact risk of both. Their scores are of finite size where prompts
    are short. On long prompts the risk hardly depends on it, and its limit for small scores is
    linear attention with one token less, ``small_score_optimum``.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt, finite and at least 2: one token is its own mean.

    Raises:
        InvalidInputError: If the length is infinite or below 2, or scores of the best heads are so
            large that one token takes all attention.
    """
    _check(task, length, 2)
    scales, d = _scales(task), task.dimension
    product = small_score_optimum(task, length).product
    size = float(
        np.linalg.norm(np.linalg.pinv(scales.left) @ product @ np.linalg.pinv(scales.right))
    )
    heads = [(product * scale / size, size / scale) for scale in _SCORE_SCALES]
    a, b, risk = _best(task, OppositeHeads(length), scales, heads)
    signs = np.array([1.0, -1.0])
    zeros = np.zeros((2, d))
    blocks = Blocks(signs[:, None, None] * a, zeros, zeros, signs * b / 2)
    return SoftmaxOptimum(blocks, risk, 0.0)


def _check(task: RegressionTask, length: float, least: int) -> None:
    check_kinds(task=(task, RegressionTask))
    if not least <= as_number(length) < math.inf:
        raise InvalidInputError(
            "length", f"it is {length!r}", f"Give a finite number of tokens, at least {least}"
        )


def _scales(task: RegressionTask) -> _Scales:
    """Scales in which prompts and queries are white, in common eigenvectors where there are some.

    Entries of ``B`` that no query sees are kept out by a singular ``right``.
    """
    prompts, queries = task.covariance, task.query_covariance
    value = math.sqrt(np.trace(queries) / np.trace(prompts))
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


def _best(
    task: RegressionTask,
    averages: PromptAverages,
    scales: _Scales,
    heads: list[tuple[Float[np.ndarray, "d d"], float]],
    *points: Float[np.ndarray, "parameter"],
) -> tuple[Float[np.ndarray, "d d"], float, float]:
    """The best head from several starts, its ``b`` not negative, and its risk.

    Args:
        task: The law of prompts and queries.
        averages: Over prompts.
        scales: Of the parameters.
        heads: Starts, each ``A`` and ``b``.
        *points: Starts in parameters.
    """
    averaged, unit = AveragedSoftmax(task, averages), task.risk_of_zero
    left, right = np.linalg.pinv(scales.left), np.linalg.pinv(scales.right)
    refused: list[InvalidInputError] = []
    reach = math.inf

    def relative(point: Float[np.ndarray, "parameter"]) -> tuple[float, np.ndarray]:
        """The risk over that of zero, and its gradient."""
        if scales.deviation(point) > reach:  # a step too far, which the line search takes back
            return _REFUSED, np.zeros_like(point)
        try:
            found = averaged(*scales.head(point))
        except InvalidInputError as error:
            refused.append(error)
            return _REFUSED, np.zeros_like(point)
        in_body = scales.left.T @ found.key_query @ scales.right.T
        gradient = scales.point(in_body, scales.value * found.value_label)
        return found.risk / unit, gradient / unit

    starts = [*(scales.point(left @ a @ right, b / scales.value) for a, b in heads), *points]

    def accept(point: Float[np.ndarray, "parameter"]) -> None:
        """Lets scores grow by as much again: averages of wide ones take long to tabulate."""
        nonlocal reach
        reach = 1 + 2 * scales.deviation(point)

    results = []
    with single_blas_thread():
        for start in starts:
            accept(start)
            results.append(
                scipy.optimize.minimize(
                    relative,
                    start,
                    jac=True,
                    method="L-BFGS-B",
                    callback=accept,
                    options={"gtol": _GRADIENT, "ftol": 0.0, "maxcor": _KEPT, "maxiter": _STEPS},
                )
            )
    best = min(results, key=lambda result: result.fun)
    if best.fun >= _REFUSED:
        raise InvalidInputError("length", refused[0].problem, "Give shorter prompts")
    a, b = scales.head(best.x)
    sign = -1.0 if b < 0 else 1.0
    return sign * a, sign * b, float(best.fun * unit)
