"""The risk of one softmax head on prompts of finite length."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attractor.checks import check_count, check_kinds
from attractor.errors import InvalidInputError
from attractor.precision import double_precision
from attractor.prompt.regression._infinite_risk import infinite_risk
from attractor.prompt.regression.blocks import Blocks
from attractor.prompt.regression.finite_softmax import LARGEST_TABLE, FiniteSoftmax, Queries
from attractor.prompt.regression.linear_attention import check_length
from attractor.prompt.regression.task import RegressionTask
from attractor.randomness import check_seed

_SETS = 16


class SoftmaxRisk(NamedTuple):
    """Risk of one softmax head.

    Attributes:
        risk: ``E (prediction - w^T x_q)^2 / 2``.
        standard_error: Of the risk, from independent sets of queries.
    """

    risk: float
    standard_error: float


def softmax_risk(
    task: RegressionTask, blocks: Blocks, length: float, *, queries: int = 2**14, seed: int = 0
) -> SoftmaxRisk:
    """Risk of softmax attention on prompts of any length, of one head with ``c = v = 0``.

    Given the query ``x_q`` the mean over prompts is exact, for any covariances: with ``a = A x_q``,
    ``s^2 = a^T S a`` and the averages over prompts ``m = E ghat^2`` and ``q = E sum_l p_l^2`` of
    ``finite_length`` at the score deviation ``s``, ``2 R_L = E[b^2 (t |S a|^2 (m - q) / s^2 +
    (t tr S + n) q) - 2 b t a^T S x_q (1 - q)] + t tr S_q``, where ``t`` and ``n`` are the variances
    of the weights and of the label noise. The mean over queries is one over 16 independently
    scrambled Sobol sequences.

    Args:
        task: The law of prompts and queries.
        blocks: One head.
        length: Number of tokens of a prompt; ``math.inf`` gives the infinite risk, without error.
        queries: Number of queries in each of the 16 sets, a power of two above the dimension.
        seed: Same seed, same numbers.

    Raises:
        InvalidInputError: If there are several heads, one scores labels or adds inputs to the
            prediction (``c`` or ``v`` not zero), its scores are so large that one token takes all
            attention, the length is below 1, or ``queries`` is no power of two above the dimension.
    """
    check_kinds(task=(task, RegressionTask), blocks=(blocks, Blocks))
    seed = check_seed("seed", seed)
    a, b = label_head(task, blocks)
    _check_queries(queries, task.dimension)
    check_length(length)
    if length == math.inf:
        return SoftmaxRisk(float(infinite_risk(task, blocks)), 0.0)
    sets = [Queries.scrambled(task.dimension, queries, (seed, place)) for place in range(_SETS)]
    left, right = np.linalg.cholesky(task.covariance).T, task.query_factor.T
    deviations = [np.linalg.norm(x.points @ right @ a.T @ left.T, axis=-1).max() for x in sets]
    deviation = float(max(deviations))
    if not deviation <= LARGEST_TABLE:
        raise InvalidInputError(
            "key_query",
            f"scores reach standard deviation {deviation:.3g}, where one token takes all attention",
            f"Give a head whose scores stay below {LARGEST_TABLE:g}, some "
            f"{LARGEST_TABLE / deviation:.2g} of this one",
        )
    with double_precision():
        risks = [
            float(_compiled()(FiniteSoftmax.of(task, length, x, deviation), a, b)) for x in sets
        ]
    return SoftmaxRisk(float(np.mean(risks)), float(np.std(risks, ddof=1) / math.sqrt(_SETS)))


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


def _check_queries(queries: int, dimension: int) -> None:
    check_count("queries", queries, most=2**30)
    if queries <= dimension or queries & (queries - 1):
        raise InvalidInputError(
            "queries",
            f"it is {queries!r}",
            f"Give a power of two above the dimension {dimension}, such as 16384",
        )


@functools.cache
def _compiled() -> Callable[..., jax.Array]:
    return jax.jit(lambda softmax, a, b: softmax.risk(jnp.asarray(a), jnp.asarray(b)))
