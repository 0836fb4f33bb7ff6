"""Gradient flow of a head on prompts of infinite length, and of linear attention on any."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.flows.flow import CompiledRisk, RiskFlow, follow_risk
from attractor.prompts.regression.flows.initialization import balanced_initialization
from attractor.prompts.regression.risks.linear_attention import (
    check_length,
    linear_attention_risk_of,
)
from attractor.prompts.regression.risks.quadratics import TaskArrays
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import check_kinds, check_number
from attractor.support.errors import InvalidInputError

_FAR = 100.0
"""Ratio of variances from which on a flow is followed along their directions."""
_COVARIANCES = "covariance", "query_covariance"


@dataclass(frozen=True, eq=False)
class BlockFlow(RiskFlow):
    """Gradient flow of all blocks of one head or several.

    Attributes:
        times: When it was recorded.
        parameters: The blocks, each with an axis of times in front.
        risk: ``E (prediction - w^T x_q)^2 / 2``.
    """

    @property
    def blocks(self) -> Blocks:
        """The blocks, each with an axis of times in front."""
        return self.parameters

    @property
    def last(self) -> Blocks:
        """The blocks at the last time."""
        return Blocks(*(block[-1] for block in self.parameters))

    @property
    def balance(self) -> Float[np.ndarray, "time *head"]:
        """``||A||_F^2 + |c|^2 - |v|^2 - b^2`` of each head.

        Flows on infinite prompts and of linear attention keep it, that of softmax attention on
        finite ones does not.
        """
        return self.blocks.balance


def infinite_flow(
    task: RegressionTask,
    initial: Blocks | float,
    times: Float[ArrayLike, "time"],
    *,
    tolerance: float = 1e-13,
) -> BlockFlow:
    """Gradient flow on the exact risk of a prompt of infinite length.

    All blocks move, ``(A, c, v, b)' = -grad R(A, c, v, b)``; from a start with ``c = v = 0`` these
    stay zero, ``A' = b t S (I - b S A) S_q`` and ``b' = t tr(A^T S (I - b S A) S_q)``, where ``t``
    is the variance of the weights.

    Args:
        task: The law of prompts and queries.
        initial: Blocks of one head or several, or the scale of the balanced start with the
            identity.
        times: When to record: increasing, from 0 on.
        tolerance: Error of a step, relative to the parameters.

    Raises:
        InvalidInputError: If the start does not fit the task, or times do not increase.

    Source:
        Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt Regime"
        (arXiv 2512.11784), training in in-context linear regression.
    """
    return linear_attention_flow(task, initial, times, math.inf, tolerance=tolerance)


def linear_attention_flow(
    task: RegressionTask,
    initial: Blocks | float,
    times: Float[ArrayLike, "time"],
    length: float,
    *,
    tolerance: float = 1e-13,
) -> BlockFlow:
    """Gradient flow on the exact risk of linear attention, of any length.

    Args:
        task: The law of prompts and queries.
        initial: Blocks of one head or several, or the scale of the balanced start with the
            identity.
        times: When to record: increasing, from 0 on.
        length: Number of tokens of a prompt.
        tolerance: Error of a step, relative to the parameters.

    Raises:
        InvalidInputError: If the start does not fit the task, the length is not positive, or times
            do not increase.

    Source:
        Zhang, Frei, Bartlett, "Trained Transformers Learn Linear Models In-Context" (JMLR 25,
        2024), the gradient flow of linear attention.
    """
    check_kinds(task=(task, RegressionTask))
    tolerance = check_number("tolerance", tolerance, above=0.0, below=1.0, example=1e-10)
    if not isinstance(initial, Blocks):
        initial = check_number("initial", initial, above=0.0, most=1e100, example=0.1)
        initial = balanced_initialization(task.covariance, initial)
    initial.flat_heads(task.dimension)
    if not all(np.isfinite(block).all() for block in initial):
        raise InvalidInputError("initial", "an entry is not finite", "Give finite blocks")
    check_length(length)
    axes = _axes(task.covariance)
    if axes is not None:
        covariances = (_turned(one, axes) for one in (task.covariance, task.query_covariance))
        task = replace(task, **dict(zip(_COVARIANCES, covariances, strict=True)))
        initial = _along(initial, axes.T)
    compiled = _compiled(task.dimension, np.shape(initial.value_label)).on(
        (TaskArrays.of(task), 1 / length)
    )
    flow = vars(follow_risk(compiled, initial, times, tolerance))
    if axes is not None:
        flow["parameters"] = _along(flow["parameters"], axes)
    return BlockFlow(**flow)


def _axes(covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"] | None:
    """Directions without covariance, where variances differ by so much that others mix them up."""
    variances, axes = np.linalg.eigh(covariance)
    apart = np.any(covariance - np.diag(np.diag(covariance)))
    return axes if apart and variances[-1] > _FAR * variances[0] else None


def _turned(
    covariance: Float[np.ndarray, "d d"], axes: Float[np.ndarray, "d d"]
) -> Float[np.ndarray, "d d"]:
    """A covariance along the directions; what rounding of the turn leaves between them is zero."""
    turned = axes.T @ covariance @ axes
    turned = (turned + turned.T) / 2
    rounding = 64 * np.finfo(np.float64).eps * np.abs(turned).max()
    kept = (np.abs(turned) > rounding) | np.eye(len(turned), dtype=bool)
    return np.where(kept, turned, 0.0)


def _along(blocks: Blocks, turn: Float[np.ndarray, "d d"]) -> Blocks:
    """Blocks in turned coordinates."""
    a, c, v, b = blocks
    return Blocks(turn @ a @ turn.T, c @ turn.T, v @ turn.T, b)


@functools.cache
def _compiled(dimension: int, heads: tuple[int, ...]) -> CompiledRisk:
    """The risk, compiled once for all tasks and lengths."""
    d = dimension
    example = Blocks(
        np.zeros((*heads, d, d)), np.zeros((*heads, d)), np.zeros((*heads, d)), np.zeros(heads)
    )
    return CompiledRisk.of(
        lambda blocks, data: linear_attention_risk_of(data[0], blocks.flat_heads(d), data[1]),
        example,
    )
