"""The risk of softmax heads on prompts of finite length."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.prompts.finite_length.two_heads import LARGEST_PAIR_DEVIATION
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks._infinite_risk import infinite_risk, limit_horizon
from attractor.prompts.regression.risks.averaged_softmax import AveragedSoftmax
from attractor.prompts.regression.risks.linear_attention import check_length
from attractor.prompts.regression.risks.prompt_averages import OneHead
from attractor.prompts.regression.risks.several_heads import SeveralHeads
from attractor.prompts.regression.task import RegressionTask
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_count, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_seed

_QUERIES = 32
_LARGEST_HORIZON = 31.0  # the difference from infinite prompts loses digits with its square


class SoftmaxRisk(NamedTuple):
    """Risk of softmax heads.

    Attributes:
        risk: ``E (prediction - w^T x_q)^2 / 2``.
        standard_error: Of the risk, where a part of it is a mean over drawn queries; else zero.
    """

    risk: float
    standard_error: float


def softmax_risk(
    task: RegressionTask,
    blocks: Blocks,
    length: float,
    *,
    queries: int | None = None,
    seed: int = 0,
) -> SoftmaxRisk:
    """Risk of softmax attention on prompts of any length, of one head or several.

    Given the query ``x_q`` the mean over prompts is exact, for any covariances and for heads with
    ``c = v = 0``: with ``a = A x_q``, ``s^2 = a^T S a`` and the averages over prompts ``m = E
    ghat^2`` and ``q = E sum_l p_l^2`` of ``finite_length`` at the score deviation ``s``, ``2 R_L =
    E[b^2 (t |S a|^2 (m - q) / s^2 + (t tr S + n) q) - 2 b t a^T S x_q (1 - q)] + t tr S_q`` for one
    head, where ``t`` and ``n`` are the variances of the weights and of the label noise. Predictions
    of several heads add up; what two heads add together is that of ``two_head_moments``.

    The mean over queries is exact, too, of one head and of heads whose ``A`` are multiples of each
    other, as those of ``opposite_heads``. What pairs of other heads add together is a mean over 16
    independently scrambled Sobol sequences; it takes some 10 milliseconds a query.

    Args:
        task: The law of prompts and queries.
        blocks: The heads.
        length: Number of tokens of a prompt; ``math.inf`` gives the infinite risk, without error.
        queries: Number of queries in each of the 16 sets, a power of two above the dimension, for
            pairs of heads that need them; default: 32, or as many as that takes.
        seed: Of these queries. Same seed, same numbers.

    Raises:
        InvalidInputError: If a head scores labels or adds inputs to the prediction (``c`` or ``v``
            not zero), scores are so large that one token takes all attention, the length is below
            1, or ``queries`` is no power of two above the dimension.
    """
    check_kinds(task=(task, RegressionTask), blocks=(blocks, Blocks))
    seed = check_seed("seed", seed)
    key_query, value_label = label_heads(task, blocks)
    if queries is None:
        queries = max(_QUERIES, 2 ** task.dimension.bit_length())
    _check_queries(queries, task.dimension)
    check_length(length)
    infinite = float(infinite_risk(task, blocks))
    if length == math.inf:
        return SoftmaxRisk(infinite, 0.0)
    if len(value_label) == 1:
        _check_scores("horizon", float(limit_horizon(task, blocks)), _LARGEST_HORIZON)
        averaged = AveragedSoftmax(task, OneHead(length))
        return SoftmaxRisk(averaged(key_query[0], float(value_label[0])).risk, 0.0)
    heads = SeveralHeads(task, key_query, value_label, float(length))
    _check_scores("standard deviation", heads.largest_deviation, LARGEST_PAIR_DEVIATION)
    with single_blas_thread():
        added = heads.added(queries, seed)
    return SoftmaxRisk(float(infinite + added.risk), added.standard_error)


def _check_scores(name: str, value: float, most: float) -> None:
    if not value <= most:
        raise InvalidInputError(
            "key_query",
            f"scores reach the {name} {value:.3g}, where one token takes all attention",
            f"Give scores of {most:g} at most, some {most / value:.2g} of these",
        )


def label_heads(
    task: RegressionTask, blocks: Blocks
) -> tuple[Float[np.ndarray, "head d d"], Float[np.ndarray, "head"]]:
    """``A`` and ``b`` of heads that must all have ``c = v = 0``."""
    heads = blocks.flat_heads(task.dimension)
    for name, block in zip(Blocks._fields, heads, strict=True):
        if not np.isfinite(block).all():
            raise InvalidInputError(name, "an entry is not finite", "Give finite blocks")
    for name in ("label_row", "value_inputs"):
        if np.any(getattr(heads, name)):
            raise InvalidInputError(
                name, "it is not zero", "Give heads whose scores see inputs and values labels only"
            )
    a, b = (np.asarray(x, dtype=np.float64) for x in (heads.key_query, heads.value_label))
    return a, b


def _check_queries(queries: int, dimension: int) -> None:
    check_count("queries", queries, most=2**30)
    if queries <= dimension or queries & (queries - 1):
        raise InvalidInputError(
            "queries",
            f"it is {queries!r}",
            f"Give a power of two above the dimension {dimension}, such as 16384",
        )
