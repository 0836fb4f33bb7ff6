"""Softmax attention on a long prompt: its risk to leading order in one over the length."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.measures.arithmetic.square_root import square_root
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks._infinite_risk import infinite_risk
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import check_kinds, check_number
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_arrays


class LeadingOrder(NamedTuple):
    """The risk of long prompts, ``limit + coefficient / length``.

    Attributes:
        limit: Risk on a prompt of infinite length.
        coefficient: The excess risk of a finite length, times the length; infinite where the risk
            falls more slowly than one over the length.
    """

    limit: float
    coefficient: float

    def risk(self, length: float) -> float:
        """The risk for a length, but for terms that fall faster."""
        length = check_number("length", length, least=1.0, example=100)
        return self.limit + self.coefficient / length


class _Tilt(NamedTuple):
    """A Gaussian law of queries, weighted by ``exp(x^T P x)``: its mass and covariance."""

    mass: float
    covariance: Float[np.ndarray, "d d"]

    @classmethod
    def by(cls, factor: Float[np.ndarray, "d d"], exponent: Float[np.ndarray, "d d"]) -> _Tilt:
        """For queries ``factor g`` with ``g`` standard normal."""
        values, vectors = np.linalg.eigh(factor.T @ (exponent + exponent.T) @ factor)
        if values[-1] >= 1:
            return cls(math.inf, np.full_like(factor, np.nan))
        turned = factor @ vectors
        return cls(math.exp(-np.log1p(-values).sum() / 2), turned / (1 - values) @ turned.T)

    def mean(self, matrix: Float[np.ndarray, "d d"], constant: float = 0.0) -> float:
        """The weighted mean of ``constant + x^T matrix x``."""
        if math.isinf(self.mass):
            return math.inf
        return self.mass * (constant + float(np.sum(matrix * self.covariance)))


def leading_order(task: RegressionTask, blocks: Blocks) -> LeadingOrder:
    """Risk of softmax attention to leading order in one over the length, of one head or several.

    For heads with ``c = v = 0``, scores ``a_h = A_h x_q``, variances ``n`` of the label noise and
    ``t`` of the weights, ``2 (R_L - R_inf) L`` tends to ``sum_{hk} b_h b_k
    E[exp(a_h^T S a_k) (t tr S + n + t a_h^T S^2 a_k)]`` (the variance of the outputs) less ``2 t
    sum_h b_h E[exp(a_h^T S a_h) a_h^T S (sum_k b_k S A_k - I) x_q]`` (their bias toward the mean
    of the prompt).

    Of two heads of opposite signs the first sum has ``sinh(a^T S a) (t tr S + n)`` in place of
    ``exp(a^T S a) (t tr S + n)``: the mean of the prompt, which a head leaks, is gone.

    Args:
        task: The law of prompts and queries.
        blocks: The heads.

    Raises:
        InvalidInputError: If a head scores labels or adds inputs to the prediction (``c`` or ``v``
            not zero), or has another dimension than the task.
    """
    check_kinds(task=(task, RegressionTask), blocks=(blocks, Blocks))
    heads = blocks.flat_heads(task.dimension)
    a, b = (np.asarray(x, dtype=np.float64) for x in (heads.key_query, heads.value_label))
    for name in ("label_row", "value_inputs"):
        if np.any(getattr(heads, name)):
            raise InvalidInputError(
                name, "it is not zero", "Give heads whose scores see inputs and values labels only"
            )
    s, t = task.covariance, task.weight_variance
    factor = task.query_factor
    label_variance = t * float(np.trace(s)) + task.label_noise
    residual = np.einsum("h,hij->ij", b, s @ a) - np.eye(task.dimension)
    total = 0.0
    for h, first in enumerate(a):
        tilt = _Tilt.by(factor, first.T @ s @ first)
        if math.isinf(tilt.mass) and b[h] != 0:
            return LeadingOrder(float(infinite_risk(task, blocks)), math.inf)
        if b[h] != 0:
            total -= 2 * t * b[h] * tilt.mean(first.T @ s @ residual)
    for h, first in enumerate(a):
        for k, second in enumerate(a):
            tilt = _Tilt.by(factor, first.T @ s @ second)
            if b[h] * b[k] != 0:
                total += b[h] * b[k] * tilt.mean(t * first.T @ s @ s @ second, label_variance)
    return LeadingOrder(float(infinite_risk(task, blocks)), float(total) / 2)


def leading_order_without_labels(
    covariance: Float[ArrayLike, "d d"],
    query_covariance: Float[ArrayLike, "e e"],
    score_matrix: Float[ArrayLike, "d e"],
    value_matrix: Float[ArrayLike, "r d"],
    target: Float[ArrayLike, "r e"],
) -> LeadingOrder:
    """Mean squared error of softmax attention on tokens without labels, to leading order.

    Tokens ``x ~ N(0, covariance)``, queries ``z ~ N(0, query_covariance)``, a head with score
    matrix ``U`` and value matrix ``V``, and the output wanted is ``target z``. On an infinite
    prompt the output is ``V S U z``. With ``a = U z`` and ``f = V S a``, ``L`` times what a finite
    length adds tends to ``E[exp(a^T S a) (tr(V S V^T) + |f|^2 - 2 f^T (f - target z))]``.

    Args:
        covariance: Covariance ``S`` of the tokens.
        query_covariance: Covariance of the queries.
        score_matrix: ``U``.
        value_matrix: ``V``.
        target: The matrix that maps queries to the outputs wanted.

    Returns:
        The error ``E |output - target z|^2``, without a half.

    Raises:
        InvalidInputError: If the shapes do not fit one another.
    """
    s, queries, u, v, wanted = as_arrays(
        covariance=(covariance, "d d"),
        query_covariance=(query_covariance, "e e"),
        score_matrix=(score_matrix, "d e"),
        value_matrix=(value_matrix, "r d"),
        target=(target, "r e"),
    )
    output = v @ s @ u
    residual = output - wanted
    tilt = _Tilt.by(square_root(queries), u.T @ s @ u)
    added = tilt.mean(output.T @ output - 2 * output.T @ residual, float(np.trace(v @ s @ v.T)))
    return LeadingOrder(float(np.sum((residual.T @ residual) * queries)), added)
