"""The risk of softmax heads, whose predictions add up, on prompts of finite length."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.special
from jaxtyping import Float
from scipy.stats import qmc

from attractor.prompts.finite_length.averages import ScoreVariance
from attractor.prompts.finite_length.functions import prompt_moments
from attractor.prompts.finite_length.two_heads import (
    LARGEST_PAIR_DEVIATION,
    along_scores,
    two_head_moments,
)
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks.infinite_prompts import infinite_risk, limit_horizon
from attractor.prompts.regression.risks.linear_attention import check_length
from attractor.prompts.regression.risks.prompt_averages import AveragedSoftmax, OneHead
from attractor.prompts.regression.task import RegressionTask
from attractor.support.blas import single_blas_thread
from attractor.support.checks import check_count, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_seed

_RAREST = 1e-12
"""Mass of queries, times the length, that the law of scores leaves out at either end."""
_ALONG = 1e-12
"""Distance from a multiple, relative, up to which two heads score along one direction."""
_SETS = 16
"""Sobol sequences, scrambled apart, whose spread is the standard error."""


class FiniteLengthRisk(NamedTuple):
    """What a finite length adds to the risk of infinite prompts.

    Attributes:
        risk: The sum.
        standard_error: Of the part that is a mean over drawn queries; zero where none is.
    """

    risk: float
    standard_error: float


class SeveralHeads:
    """Heads with ``c = v = 0`` on prompts of one length, exactly given the query.

    With the covariance ``S`` of inputs, scores ``a_h = A_h x_q`` of the query ``x_q``, attention
    ``p_hl`` of head ``h`` on token ``l``, the attended means ``m_h`` of inputs, ``F = sum_h b_h S
    A_h - I``, and averages over prompts in square brackets, the risk of infinite prompts grows by
    half of

        sum_hk b_h b_k E[ t [(m_h - S a_h)^T (m_k - S a_k)] + n [sum_l p_hl p_kl] ]
        - 2 t sum_h b_h E[ [sum_l p_hl^2] a_h^T S F x_q ],

    where ``t`` and ``n`` are the variances of the weights and of the label noise. What concerns one
    head, or two whose ``A`` are multiples of each other, depends on the query by one quadratic form
    and its law is known; of other pairs the mean over queries is one over scrambled Sobol
    sequences.
    """

    def __init__(
        self,
        task: RegressionTask,
        key_query: Float[np.ndarray, "head d d"],
        value_label: Float[np.ndarray, "head"],
        length: float,
    ) -> None:
        """Prepares the scores of all heads.

        Args:
            task: The law of prompts and queries.
            key_query: ``A`` of every head.
            value_label: ``b`` of every head.
            length: Number of tokens of a prompt, finite.
        """
        self._task, self._length, self._values = task, length, value_label
        self._right = task.query_factor
        # Scores of standard normal tokens and queries, and their outputs S a.
        self._scores = np.linalg.cholesky(task.covariance).T @ key_query @ self._right
        self._outputs = task.covariance @ key_query @ self._right
        self._mean_variance = task.weight_variance * np.trace(task.covariance) + task.label_noise
        self._laws = [self._law(scores) for scores in self._scores]

    @property
    def largest_deviation(self) -> float:
        """The largest standard deviation of scores that matters, of any head and query."""
        return max(float(law.deviations[-1]) for law, _ in self._laws)

    def added(self, queries: int, seed: int) -> FiniteLengthRisk:
        """What a finite length adds to the risk.

        Args:
            queries: Number of queries in each of 16 sets, for pairs that need them.
            seed: Of these.
        """
        b, t = self._values, self._task.weight_variance
        residual = np.einsum("h,hij->ij", b, self._outputs) - self._right
        total, apart = 0.0, []
        for h, value in enumerate(b):
            if value == 0:
                continue
            law, axes = self._laws[h]
            alone = prompt_moments(law.deviations, self._length)
            q = alone.sum_of_squared_weights
            total += value**2 * self._term(h, law, axes, q, alone.error_per_variance)
            # E f(s) g^T M g sees the diagonal of M in the axes of the score variance alone.
            bias = np.einsum("ij,ij->j", self._outputs[h] @ axes, residual @ axes)
            total -= 2 * t * value * float(law.masses_along(bias) @ q)
            for k in range(h + 1, len(b)):
                if b[k] == 0:
                    continue
                multiple = self._multiple(h, k)
                if multiple is None:
                    apart.append((h, k))
                else:
                    line = np.outer(*2 * [np.array([1.0, multiple])])
                    pair = two_head_moments(law.deviations[:, None, None] ** 2 * line, self._length)
                    term = self._term(h, law, axes, pair.shared, along_scores(pair, line))
                    total += 2 * value * b[k] * term
        if not apart:
            return FiniteLengthRisk(total / 2, 0.0)
        means = np.array([self._apart(apart, queries, (seed, i)) for i in range(_SETS)])
        error = float(np.std(means, ddof=1)) / math.sqrt(_SETS)
        return FiniteLengthRisk(total / 2 + float(np.mean(means)), error)

    def _law(
        self, scores: Float[np.ndarray, "d d"]
    ) -> tuple[ScoreVariance, Float[np.ndarray, "d d"]]:
        """The law of the score variance of a head over queries, and its axes."""
        variances, axes = np.linalg.eigh(scores.T @ scores)
        return ScoreVariance.of(np.maximum(variances, 0), _RAREST / self._length), axes

    def _multiple(self, first: int, second: int) -> float | None:
        """By which number the scores of the second head are those of the first, if by one."""
        a, b = self._scores[first].ravel(), self._scores[second].ravel()
        size, other = float(a @ a), float(b @ b)
        if size == 0 or other == 0:
            return 0.0 if other == 0 else None
        multiple = float(a @ b) / size
        return multiple if float(np.sum((b - multiple * a) ** 2)) <= _ALONG**2 * other else None

    def _term(
        self,
        head: int,
        law: ScoreVariance,
        axes: Float[np.ndarray, "d d"],
        shared: Float[np.ndarray, "node"],
        along: Float[np.ndarray, "node"],
    ) -> float:
        """The mean of ``(t tr S + n) shared + t along |S a|^2`` over queries, of functions of s."""
        sizes = np.sum((self._outputs[head] @ axes) ** 2, axis=0)
        spread = self._mean_variance * float(law.masses @ shared)
        return spread + self._task.weight_variance * float(law.masses_along(sizes) @ along)

    def _apart(self, pairs: list[tuple[int, int]], queries: int, seed: tuple[int, ...]) -> float:
        """The terms of pairs of heads that are no multiples, over one set of queries."""
        drawn = _scrambled(self._task.dimension, queries, seed)
        scores = np.einsum("hij,nj->hni", self._scores, drawn)
        outputs = np.einsum("hij,nj->hni", self._outputs, drawn)
        covariances = np.einsum("hni,kni->nhk", scores, scores)
        inner = np.einsum("hni,kni->nhk", outputs, outputs)
        total = 0.0
        for h, k in pairs:
            pair = np.ix_(range(queries), (h, k), (h, k))
            found = two_head_moments(covariances[pair], self._length)
            terms = self._mean_variance * found.shared
            terms = terms + self._task.weight_variance * along_scores(found, inner[pair])
            total += self._values[h] * self._values[k] * float(terms.mean())
        return total


def _scrambled(dimension: int, count: int, seed: tuple[int, ...]) -> Float[np.ndarray, "query d"]:
    """A scrambled Sobol sequence of standard normal queries whose second moments are exact."""
    uniform = qmc.Sobol(dimension, rng=np.random.default_rng(seed)).random(count)
    # The first point of a sequence can be 0, where the normal law has no quantile.
    points = scipy.special.ndtri(np.clip(uniform, 2.0**-33, 1 - 2.0**-33))
    values, vectors = np.linalg.eigh(points.T @ points / count)
    return points @ (vectors / np.sqrt(values)) @ vectors.T


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
