"""The risk of one softmax head on prompts of finite length."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from attractor.checks import check_kinds
from attractor.errors import InvalidInputError
from attractor.former_names import dropped_arguments
from attractor.prompt.regression._infinite_risk import limit_horizon
from attractor.prompt.regression.averaged_softmax import AveragedSoftmax
from attractor.prompt.regression.blocks import Blocks
from attractor.prompt.regression.linear_attention import check_length
from attractor.prompt.regression.task import RegressionTask

_LARGEST_HORIZON = 31.0  # the difference from infinite prompts loses digits with its square


class SoftmaxRisk(NamedTuple):
    """Risk of one softmax head.

    Attributes:
        risk: ``E (prediction - w^T x_q)^2 / 2``.
        standard_error: 0, as nothing is drawn.
    """

    risk: float
    standard_error: float


@dropped_arguments("queries", "seed", why="the mean over queries is exact")
def softmax_risk(task: RegressionTask, blocks: Blocks, length: float) -> SoftmaxRisk:
    """Risk of softmax attention on prompts of any length, of one head with ``c = v = 0``.

    With ``a = A x_q``, ``s^2 = a^T S a`` and the averages over prompts ``m = E ghat^2`` and ``q = E
    sum_l p_l^2`` of ``finite_length`` at the score deviation ``s``, ``2 R_L = E[b^2 (t |S a|^2 (m -
    q) / s^2 + (t tr S + n) q) - 2 b t a^T S x_q (1 - q)] + t tr S_q``, where ``t`` and ``n`` are
    the variances of the weights and of the label noise. The mean over queries is an integral over
    the law of ``s``, for any covariances: what a finite length adds is exact to 1e-9 of itself.

    Args:
        task: The law of prompts and queries.
        blocks: One head.
        length: Number of tokens of a prompt; ``math.inf`` gives the infinite risk.

    Raises:
        InvalidInputError: If there are several heads, one scores labels or adds inputs to the
            prediction (``c`` or ``v`` not zero), its scores are so large that one token takes all
            attention, or the length is below 1.
    """
    check_kinds(task=(task, RegressionTask), blocks=(blocks, Blocks))
    a, b = label_head(task, blocks)
    check_length(length)
    if length < math.inf and (horizon := float(limit_horizon(task, blocks))) > _LARGEST_HORIZON:
        raise InvalidInputError(
            "key_query",
            f"its scores have the horizon {horizon:.3g}, where one token takes all attention",
            f"Give a head whose horizon is at most {_LARGEST_HORIZON:g}",
        )
    return SoftmaxRisk(AveragedSoftmax(task, length)(a, float(b)).risk, 0.0)


def label_head(task: RegressionTask, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """``A`` and ``b`` of blocks that must be one head with ``c = v = 0``."""
    heads = blocks.flat_heads(task.dimension)
    if len(heads.value_label) != 1:
        raise InvalidInputError(
            "blocks", f"they are {len(heads.value_label)} heads", "Give the blocks of one head"
        )
    for name, block in zip(Blocks._fields, heads, strict=True):
        if not np.isfinite(block).all():
            raise InvalidInputError(name, "an entry is not finite", "Give finite blocks")
    for name in ("label_row", "value_inputs"):
        if np.any(getattr(heads, name)):
            raise InvalidInputError(
                name, "it is not zero", "Give a head whose scores see inputs and values labels only"
            )
    a, b = (np.asarray(x[0], dtype=np.float64) for x in (heads.key_query, heads.value_label))
    return a, b
