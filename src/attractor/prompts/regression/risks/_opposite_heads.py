"""Two heads of opposite signs, which cancel the mean of the prompt."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.prompts.finite_length.functions import LARGEST_LENGTH
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks.linear_attention import (
    LinearOptimum,
    linear_attention_optimum,
    linear_attention_risk,
)
from attractor.prompts.regression.task import RegressionTask
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
