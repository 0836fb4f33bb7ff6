"""The exact risk of attention on prompts of infinite length, and to leading order on long ones."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.measures.arithmetic import square_root
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import check_kinds, check_number
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_arrays


class Quadratic(NamedTuple):
    """``constant + linear^T w + curvature w^T S w``, a function of the weights ``w``.

    Attributes:
        constant: The value at zero.
        linear: The slope at zero.
        curvature: The multiple of the variance of a label without noise.
    """

    constant: Float[Any, "*batch"]
    linear: Float[Any, "*batch d"]
    curvature: Float[Any, "*batch"]


class TaskArrays(NamedTuple):
    """The parameters of a task that the risk depends on, as arrays that may be traced.

    Attributes:
        covariance: ``S``, of the inputs of the prompt.
        query_factor: ``R``; queries are ``R g`` with ``g`` standard normal.
        weight_variance: ``t``.
        label_noise: ``n``.
    """

    covariance: Float[Any, "d d"]
    query_factor: Float[Any, "d d"]
    weight_variance: Float[Any, ""]
    label_noise: Float[Any, ""]

    @classmethod
    def of(cls, task: RegressionTask) -> TaskArrays:
        """That of a task."""
        return cls(task.covariance, task.query_factor, task.weight_variance, task.label_noise)


class TokenForms:
    """Covariances ``p^T Gamma_w q`` of two functionals of a token, given the weights ``w``.

    Functionals are vectors of inputs, then label. They are quadratic in ``w``, which is Gaussian,
    so means of their products are closed forms.
    """

    def __init__(self, law: TaskArrays, blocks: Blocks) -> None:
        """Casts the law to the arrays of the blocks; these have one axis of heads.

        Args:
            law: Of prompts and queries.
            blocks: The heads.
        """
        xp = blocks.namespace
        law = TaskArrays(*(xp.asarray(part, dtype=blocks.key_query.dtype) for part in law))
        self._covariance, factor, self._variance, self._noise = law
        self._trace = xp.trace(law.covariance)
        self._square = (law.covariance**2).sum()
        labels = xp.reshape(blocks.value_label, (-1, 1))
        self.values = xp.concat([xp.asarray(blocks.value_inputs), labels], axis=-1)
        scores = xp.concat([blocks.key_query, blocks.label_row[:, None, :]], axis=-2)
        # A query is the factor times independent standard normal coordinates: a sum over these is
        # the mean over queries.
        self.scores = xp.matrix_transpose(scores @ factor)  # heads, coordinates, tokens
        self.target = Quadratic(
            xp.zeros_like(factor[0]), xp.matrix_transpose(factor), xp.zeros_like(factor[0])
        )

    def covariance(self, p: Float[Any, "*batch d+1"], q: Float[Any, "*batch d+1"]) -> Quadratic:
        """``p^T Gamma_w q``, as a function of the weights."""
        left, right = p[..., :-1] @ self._covariance, q[..., :-1] @ self._covariance
        inputs = (left * q[..., :-1]).sum(axis=-1)
        labels = p[..., -1] * q[..., -1]
        linear = p[..., -1:] * right + q[..., -1:] * left
        return Quadratic(inputs + self._noise * labels, linear, labels)

    def mean_product(self, f: Quadratic, g: Quadratic) -> Float[Any, "*batch"]:
        """Mean of the product of two quadratic functions of ``w ~ N(0, variance I)``."""
        variance, trace = self._variance, self._variance * self._trace
        fourth = trace**2 + 2 * variance**2 * self._square
        return (
            f.constant * g.constant
            + variance * (f.linear * g.linear).sum(axis=-1)
            + trace * (f.constant * g.curvature + f.curvature * g.constant)
            + fourth * f.curvature * g.curvature
        )


def infinite_risk(task: RegressionTask, blocks: Blocks) -> Float[Any, ""]:
    """Risk of softmax attention on a prompt of infinite length, exactly.

    The prediction is ``sum_h V_h Gamma_w U_h (x_q, 0)``: affine in the query, quadratic in the
    weights ``w``. With ``k = sum_h A^T S v + n b c``, ``M = sum_h b A^T S + c v^T S - I`` and
    ``q = sum_h b c``, where ``n`` is the variance of the label noise, ``t`` that of the weights and
    ``|u|^2 = u^T S_q u``, ``2 R = |k + t tr(S) q|^2 + t tr(M^T S_q M) + 2 t^2 tr(S^2) |q|^2``.

    Linear attention, whose scores are divided by the length in place of the softmax, has the same
    limit.

    Args:
        task: The law of prompts and queries.
        blocks: The heads. JAX arrays may be traced, so that this can be differentiated and
            compiled; it then has the precision of the blocks.

    Returns:
        The risk, ``E (prediction - w^T x_q)^2 / 2``.

    Raises:
        InvalidInputError: If the blocks have another dimension than the task.

    Source:
        Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt Regime"
        (arXiv 2512.11784), in-context linear regression, for ``c = v = 0``.
    """
    check_kinds(task=(task, RegressionTask), blocks=(blocks, Blocks))
    flat = blocks.flat_heads(task.dimension)
    return infinite_risk_of(TaskArrays.of(task), flat)


def infinite_risk_of(law: TaskArrays, blocks: Blocks) -> Float[Any, ""]:
    """The same of a law that may be traced, and blocks with one axis of heads."""
    forms = TokenForms(law, blocks)
    residual = limit_residual(forms)
    return forms.mean_product(residual, residual).sum() / 2


def limit_residual(forms: TokenForms) -> Quadratic:
    """Prediction on an infinite prompt less the target, for each coordinate of the query."""
    heads = forms.covariance(forms.values[:, None, :], forms.scores)
    prediction = Quadratic(*(part.sum(axis=0) for part in heads))
    return Quadratic(*(p - t for p, t in zip(prediction, forms.target, strict=True)))


def limit_horizon(task: RegressionTask, blocks: Blocks) -> Float[np.ndarray, "*head"]:
    """Horizon of each head, the largest standard deviation of scores over standard queries.

    ``H = ||S^{1/2} A S_q^{1/2}||``, the spectral norm. Beyond ``1/sqrt(2)`` the error of a finite
    prompt no longer falls as one over its length. A head that scores labels too (``c`` not zero)
    has a horizon that depends on the weights of the prompt, and this is its part from inputs.

    Args:
        task: The law of prompts and queries.
        blocks: The heads.

    Raises:
        InvalidInputError: If the blocks have another dimension than the task.
    """
    check_kinds(task=(task, RegressionTask), blocks=(blocks, Blocks))
    blocks.flat_heads(task.dimension)
    left = np.linalg.cholesky(task.covariance)
    scores = left.T @ np.asarray(blocks.key_query, dtype=np.float64) @ task.query_factor
    return np.asarray(np.linalg.norm(scores, ord=2, axis=(-2, -1)))


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
