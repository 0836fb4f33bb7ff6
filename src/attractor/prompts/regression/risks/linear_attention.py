"""Linear attention on a prompt of finite length: its exact risk, optimum and trained limit."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.prompts.finite_length.functions import LARGEST_LENGTH
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks._infinite_risk import limit_residual
from attractor.prompts.regression.risks.quadratics import TaskArrays, TokenForms
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import as_number, check_kinds, shown
from attractor.support.errors import InvalidInputError


def linear_attention_risk(task: RegressionTask, blocks: Blocks, length: float) -> Float[Any, ""]:
    """Risk of linear attention on a prompt of any length, exactly.

    Scores are divided by the length in place of the softmax, so that the prediction is
    ``sum_h V_h G U_h (x_q, 0)`` with the second moments ``G = (1/L) sum_l z_l z_l^T`` of the
    tokens. Given the weights ``L G`` is Wishart: with ``u = U (x_q, 0)`` and the last row ``v`` of
    each ``V``, ``2 R_L = 2 R_inf + (1/L) sum_{hk} E[(v_h^T Gamma v_k)(u_h^T Gamma u_k) +
    (v_h^T Gamma u_k)(u_h^T Gamma v_k)]``.

    Args:
        task: The law of prompts and queries.
        blocks: The heads; traced JAX arrays are welcome.
        length: Number of tokens of a prompt; ``math.inf`` gives the infinite risk.

    Returns:
        The risk, ``E (prediction - w^T x_q)^2 / 2``.

    Raises:
        InvalidInputError: If the length is not positive, or the blocks have another dimension than
            the task.
    """
    check_kinds(task=(task, RegressionTask), blocks=(blocks, Blocks))
    check_length(length)
    flat = blocks.flat_heads(task.dimension)
    return linear_attention_risk_of(TaskArrays.of(task), flat, 1 / length)


def linear_attention_risk_of(
    law: TaskArrays, blocks: Blocks, inverse_length: Float[Any, ""]
) -> Float[Any, ""]:
    """The same of a law that may be traced, and blocks with one axis of heads."""
    forms = TokenForms(law, blocks)
    residual = limit_residual(forms)
    first = (slice(None), None)
    second = (None, slice(None))
    v, u = forms.values[:, None, :], forms.scores
    cross = forms.covariance(v[first], u[second])
    swapped = forms.covariance(u[first], v[second])
    straight = forms.mean_product(
        forms.covariance(v[first], v[second]), forms.covariance(u[first], u[second])
    )
    variance = straight.sum() + forms.mean_product(cross, swapped).sum()
    return (forms.mean_product(residual, residual).sum() + inverse_length * variance) / 2


class LinearOptimum(NamedTuple):
    """The best that one head of linear attention can do.

    Attributes:
        product: ``b A``, the product of its blocks.
        risk: Its risk, ``E (prediction - w^T x_q)^2 / 2``.
    """

    product: Float[np.ndarray, "d d"]
    risk: float


def linear_attention_optimum(task: RegressionTask, length: float) -> LinearOptimum:
    """The best head of linear attention for a length, among those with ``c = v = 0``.

    ``b A = (G + n/(L t) I)^{-1}`` with ``G = (1 + 1/L) S + tr(S)/L I``, ``n`` and ``t`` the
    variances of the label noise and of the weights, and ``2 R = t tr((I - b A S) S_q)``.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt; may be ``math.inf``.

    Raises:
        InvalidInputError: If the length is not positive.

    Source:
        Ahn, Cheng, Daneshmand, Sra, "Transformers learn to implement preconditioned gradient
        descent" (arXiv 2306.00297), the global minimizer of one layer, without noise.
    """
    check_kinds(task=(task, RegressionTask))
    check_length(length)
    d, s = task.dimension, task.covariance
    noise = task.label_noise / task.weight_variance
    product = np.linalg.inv((1 + 1 / length) * s + (np.trace(s) + noise) / length * np.eye(d))
    # I - b A S without cancellation: b A (b A)^{-1} - b A S.
    rest = product @ (s + (np.trace(s) + noise) * np.eye(d)) / length
    risk = task.weight_variance * float(np.trace(rest @ task.query_covariance)) / 2
    return LinearOptimum(product, risk)


def check_length(length: float) -> None:
    """Refuses a length that is neither a number of tokens, up to 1e60, nor infinity."""
    number = as_number(length)
    if not (1 <= number <= LARGEST_LENGTH or number == math.inf):
        raise InvalidInputError(
            "length",
            f"it is {shown(length)}",
            f"Give the number of tokens of a prompt, from 1 to {LARGEST_LENGTH:g}, or math.inf",
        )
