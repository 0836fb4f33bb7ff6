"""Expected squared errors of a head on a finite prompt: of Gaussian tokens exactly, or sampled.

With ``u`` the direction of the scores, a token is ``x = m + u g + r``: ``g ~ N(0, 1)`` decides its
weight ``p``, and ``r ~ N(0, G)`` is independent of it. The weighted covariance is then

    C_hat = v u u^T + u c^T + c u^T + R,    v = sum p g^2 - (sum p g)^2,
    c = sum p (g - ghat) r,    R = sum p r r^T - (sum p r) (sum p r)^T

and, given the weights, everything about ``r`` is a Gaussian average.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.functions import (
    LARGEST_DEVIATION,
    check_queries,
    for_each_deviation,
    prompt_moments,
)
from attractor.prompts.finite_length.laplace import Transforms
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures.arithmetic import square_root
from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.gaussian import Gaussian
from attractor.support.checks import check_count, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory_for
from attractor.support.precision import LARGEST, as_float64, as_shaped, double_precision
from attractor.support.randomness import generator


class FiniteLengthError(NamedTuple):
    """Expected squared differences between a prompt of ``L`` tokens and the infinite prompt.

    Attributes:
        output: ``E || V (m_hat - m - Gamma a) ||^2``.
        value_gradient: ``E || J_V - J_V,infinite ||_F^2`` of the derivative of the output in ``V``.
        score_gradient: ``E || J_U - J_U,infinite ||_F^2`` of the derivative of the output in ``U``.
    """

    output: Float[np.ndarray, "*shape"]
    value_gradient: Float[np.ndarray, "*shape"]
    score_gradient: Float[np.ndarray, "*shape"]


def finite_length_error(
    covariance: Float[ArrayLike, "d d"],
    score_matrix: Float[ArrayLike, "d e"],
    value_matrix: Float[ArrayLike, "v d"],
    query: Float[ArrayLike, "*batch e"],
    length: ArrayLike,
) -> FiniteLengthError:
    """Computes the three errors of a head, exactly, for Gaussian tokens of any covariance.

    With ``a = U z``, ``s^2 = a^T Gamma a``, ``u = Gamma a / s``, ``G = Gamma - u u^T`` and
    ``M = V^T V``, and averages over prompts of weights ``p`` and standard normal scores ``g``,

        output          u^T M u E (ghat - s)^2 + tr(M G) E q,    q = sum p^2
        value gradient  v (|u|^2 E (ghat - s)^2 + tr(G) E q)     for V with v rows
        score gradient  |z|^2 E || V (C_hat - Gamma) ||_F^2, which is |z|^2 times
            |u|^2 u^T M u E (v - 1)^2 + 2 u^T M G u (E k - E (v - 1) q)
            + (|u|^2 tr(M G) + u^T M u tr(G)) E k
            + tr(G M G) E q^2 + (tr(G M G) + tr(M G) tr(G)) E || diag(p) - p p^T ||_F^2

    with ``v = sum p (g - ghat)^2`` and ``k = sum p^2 (g - ghat)^2``. The mean of the tokens shifts
    both outputs alike and does not enter. Sharp form, for Gaussian tokens, of the bounds in
    *Softmax as Linear Attention in the Large-Prompt Regime* (arXiv 2512.11784, concentration of
    softmax attention and of its gradients).

    Args:
        covariance: ``Gamma`` of the tokens, ``(d, d)``, positive semidefinite.
        score_matrix: ``U``, ``(d, e)``.
        value_matrix: ``V``, ``(v, d)``.
        query: Queries ``z``, ``(*batch, e)``.
        length: Numbers of tokens ``L >= 1``; broadcasts against the batch of queries.

    Returns:
        The errors, of the shape to which the batch of queries and ``length`` broadcast.

    Raises:
        InvalidInputError: If shapes do not fit, an entry is not finite, the covariance is not
            symmetric positive semidefinite, a length is below 1, or the scores of a query have a
            standard deviation beyond 32.
    """
    parts, head, z = _parts(covariance, score_matrix, value_matrix, query, length)
    mean = prompt_moments(parts.deviation, length)
    error, q = mean.output_error, mean.sum_of_squared_weights
    second = covariance_moments(parts.deviation, length)
    of_covariance = (
        parts.along * parts.seen_along * second.variance_error
        + 2 * parts.mixed * (second.squared_deviations - second.variance_times_weights)
        + (parts.along * parts.seen_across + parts.seen_along * parts.across)
        * second.squared_deviations
        + parts.seen_across_twice * second.squared_weights_squared
        + (parts.seen_across_twice + parts.seen_across * parts.across)
        * second.covariance_of_weights
    )
    return FiniteLengthError(
        parts.seen_along * error + parts.seen_across * q,
        head.value_matrix.shape[0] * (parts.along * error + parts.across * q),
        (z**2).sum(-1) * of_covariance,
    )


def error_of_output(
    covariance: Float[ArrayLike, "d d"],
    score_matrix: Float[ArrayLike, "d e"],
    value_matrix: Float[ArrayLike, "v d"],
    query: Float[ArrayLike, "*batch e"],
    length: ArrayLike,
) -> Float[np.ndarray, "..."]:
    """Returns the expected squared error of the output alone, at half the cost of all errors.

    Arguments and errors are those of ``finite_length_error``, but scores may be however wide.
    """
    parts, _, _ = _parts(covariance, score_matrix, value_matrix, query, length, most=LARGEST)
    mean = prompt_moments(parts.deviation, length)
    return parts.seen_along * mean.output_error + parts.seen_across * mean.sum_of_squared_weights


class _Parts(NamedTuple):
    """A covariance split along the scores, for each query.

    Attributes:
        deviation: ``s``.
        along: ``|u|^2``.
        across: ``tr G``.
        seen_along: ``u^T M u``.
        seen_across: ``tr(M G)``.
        seen_across_twice: ``tr(G M G)``.
        mixed: ``u^T M G u``.
    """

    deviation: Float[np.ndarray, "*batch"]
    along: Float[np.ndarray, "*batch"]
    across: Float[np.ndarray, "*batch"]
    seen_along: Float[np.ndarray, "*batch"]
    seen_across: Float[np.ndarray, "*batch"]
    seen_across_twice: Float[np.ndarray, "*batch"]
    mixed: Float[np.ndarray, "*batch"]


def _parts(
    covariance: Float[ArrayLike, "d d"],
    score_matrix: Float[ArrayLike, "d e"],
    value_matrix: Float[ArrayLike, "v d"],
    query: Float[ArrayLike, "*batch e"],
    length: ArrayLike,
    *,
    most: float = LARGEST_DEVIATION,
) -> tuple[_Parts, AttentionHead, Float[np.ndarray, "*batch e"]]:
    """Checks the input, and splits the covariance along the scores of each query."""
    head = AttentionHead(score_matrix, value_matrix)
    U, V = np.asarray(head.score_matrix), np.asarray(head.value_matrix)
    z, _ = check_queries(query, U.shape[1], length)
    factor = covariance_factor(covariance, U.shape[0])
    scores = z @ U.T @ factor
    deviation = np.linalg.norm(scores, axis=-1)
    if (deviation > most).any():
        raise InvalidInputError(
            "query",
            f"the scores of one have a standard deviation of {deviation.max():.6g}, beyond "
            f"{most:g}",
            "Give shorter queries, or a smaller score_matrix or covariance",
        )
    e = scores / np.where(deviation > 0, deviation, 1)[..., None]

    # In coordinates in which tokens are white: M becomes seen, and the identity becomes size.
    seen, size = factor.T @ V.T @ V @ factor, factor.T @ factor
    e_seen, e_size = e @ seen, e @ size
    along, seen_along = (e_size * e).sum(-1), (e_seen * e).sum(-1)
    both = (e_seen * e_size).sum(-1)
    parts = _Parts(
        deviation,
        along,
        np.maximum(np.trace(size) - along, 0),
        seen_along,
        np.maximum(np.trace(seen) - seen_along, 0),
        np.maximum((seen * size).sum() - 2 * both + along * seen_along, 0),
        both - along * seen_along,
    )
    return parts, head, z


def covariance_factor(
    covariance: Float[ArrayLike, "d d"], dimension: int, argument: str = "covariance"
) -> np.ndarray:
    """A matrix ``F`` with ``F F^T`` the covariance, symmetric and positive semidefinite.

    Raises:
        InvalidInputError: If the covariance is not that, or not of this dimension.
    """
    covariance = as_shaped(argument, covariance, (dimension, dimension), largest=LARGEST)
    return square_root(np.asarray(Gaussian(np.zeros(dimension), covariance).covariance))


class CovarianceMoments(NamedTuple):
    """Averages over prompts, with ``q = sum_l p_l^2`` and ``v`` the weighted variance of ``g``.

    Attributes:
        mean_variance: ``E v``; it is 1 at infinite length.
        variance_error: ``E (v - 1)^2``.
        variance_times_weights: ``E (v - 1) q``.
        squared_deviations: ``E sum_l p_l^2 (g_l - ghat)^2``.
        squared_weights_squared: ``E q^2``.
        covariance_of_weights: ``E || diag(p) - p p^T ||_F^2``.
    """

    mean_variance: Float[np.ndarray, "*shape"]
    variance_error: Float[np.ndarray, "*shape"]
    variance_times_weights: Float[np.ndarray, "*shape"]
    squared_deviations: Float[np.ndarray, "*shape"]
    squared_weights_squared: Float[np.ndarray, "*shape"]
    covariance_of_weights: Float[np.ndarray, "*shape"]


def covariance_moments(score_deviation: ArrayLike, length: ArrayLike) -> CovarianceMoments:
    """Computes the averages that errors of the weighted covariance are combinations of.

    Args:
        score_deviation: Standard deviations ``s`` of the scores, at most 32.
        length: Numbers of tokens ``L >= 1``; broadcasts against ``score_deviation``.

    Returns:
        The averages, to a relative error below 1e-9 for deviations up to 16, and below 1e-6 beyond.

    Raises:
        InvalidInputError: If a deviation is negative or beyond 32, or a length below 1.
    """
    return CovarianceMoments(*for_each_deviation(score_deviation, length, _moments))


def _moments(s: float, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "value length"]:
    """The averages of ``CovarianceMoments``, in its order.

    With ``h = g - s`` and ``k = h^2 - 1``, both of weighted mean 0 in the limit, ``v - 1`` is
    ``sum p k - (sum p h)^2``; its parts vanish as fast as it does.
    """
    if s == 0:
        values = [1 - 1 / L, (2 * L - 1) / L**2, -1 / L**2, (L - 1) / L**2, 1 / L**2]
        return np.stack([*values, (L - 1) / L**2])
    one = Transforms.of(s, L, (4, 4, 4, 4, 4))
    weights = {power: one.moment(power) for power in (1, 2, 3, 4)}
    values = np.stack(
        [
            1 + _excess(one, L) - _squared_shift(one, L),
            _variance_error(one, L),
            _variance_times_weights(one, weights, L),
            _squared_deviations(one, weights, L),
            one.integral(L, 1, 4, weights[4]) + one.integral(L, 2, 4, weights[2] ** 2),
            one.integral(L, 2, 4, 2 * weights[2] ** 2)
            + one.integral(L, 3, 4, weights[2] * weights[1] ** 2),
        ]
    )
    alone = np.array([0.0, 1.0, -1.0, 0.0, 1.0, 0.0])
    return np.where(L == 1, alone[:, None], values)


def _excess(one: Transforms, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "length"]:
    """``E sum p k``."""
    return one.integral(L, 1, 1, one.excess(1))


def _squared_shift(one: Transforms, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "length"]:
    """``E (sum p h)^2``."""
    return one.integral(L, 1, 2, one.moment(2, 2)) + one.integral(L, 2, 2, one.moment(1, 1) ** 2)


def _variance_error(one: Transforms, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "length"]:
    """``E (sum p k)^2 - 2 E (sum p k) (sum p h)^2 + E (sum p h)^4``."""
    h, h2 = one.moment(1, 1), one.moment(2, 2)
    k = one.excess(1)
    squared = one.integral(L, 1, 2, one.excess(2, 2) - one.excess(2))
    squared += one.integral(L, 2, 2, k**2)

    mixed = one.integral(L, 1, 3, one.excess(3, 2))
    mixed += one.integral(L, 2, 3, 2 * one.excess(2, 1) * h + k * h2)
    mixed += one.integral(L, 3, 3, k * h**2)

    fourth = one.integral(L, 1, 4, one.moment(4, 4))
    fourth += one.integral(L, 2, 4, 4 * one.moment(3, 3) * h + 3 * h2**2)
    fourth += one.integral(L, 3, 4, 6 * h2 * h**2)
    fourth += one.integral(L, 4, 4, h**4)
    return squared - 2 * mixed + fourth


def _variance_times_weights(
    one: Transforms, weights: dict[int, np.ndarray], L: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "length"]:
    """``E (sum p k) (sum p^2) - E (sum p h)^2 (sum p^2)``."""
    excess = one.integral(L, 1, 3, one.excess(3))
    excess += one.integral(L, 2, 3, one.excess(1) * weights[2])
    return excess - _shift_times_weights(one, weights, L)


def _shift_times_weights(
    one: Transforms, weights: dict[int, np.ndarray], L: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "length"]:
    """``E (sum p h)^2 (sum p^2)``."""
    h = one.moment(1, 1)
    value = one.integral(L, 1, 4, one.moment(4, 2))
    value += one.integral(L, 2, 4, 2 * one.moment(3, 1) * h + one.moment(2, 2) * weights[2])
    return value + one.integral(L, 3, 4, h**2 * weights[2])


def _squared_deviations(
    one: Transforms, weights: dict[int, np.ndarray], L: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "length"]:
    """``E sum p^2 h^2 - 2 E (sum p^2 h) (sum p h) + E (sum p^2) (sum p h)^2``."""
    value = one.integral(L, 1, 2, one.moment(2, 2))
    mixed = one.integral(L, 1, 3, one.moment(3, 2))
    mixed += one.integral(L, 2, 3, one.moment(2, 1) * one.moment(1, 1))
    return value - 2 * mixed + _shift_times_weights(one, weights, L)


_FEWEST = 10
_ENTRIES = 2**22


class MonteCarloError(NamedTuple):
    """Squared errors of finite prompts, averaged over sampled prompts.

    Standard errors are those between prompts: the queries of a prompt share its tokens and hold
    little more information than one of them.

    Attributes:
        average: The errors averaged over prompts and queries.
        standard_error: Of these.
        by_query: The errors averaged over prompts, for each query.
        standard_error_by_query: Of these.
        effective_sample_size: ``1 / sum_l p_l^2`` averaged over prompts, for each query.
    """

    average: FiniteLengthError
    standard_error: FiniteLengthError
    by_query: FiniteLengthError
    standard_error_by_query: FiniteLengthError
    effective_sample_size: Float[np.ndarray, "query"]


def monte_carlo_error(
    measure: Measure,
    head: AttentionHead,
    queries: Float[ArrayLike, "query e"],
    length: int,
    *,
    prompts: int = 200,
    seed: int,
) -> MonteCarloError:
    """Compares sampled prompts with the infinite prompt, in output and gradients.

    Where few tokens of a prompt hold all weight the average is one over prompts so rare that no
    sample has them, and its standard error is meaningless. Queries for which the effective sample
    size of a long prompt, ``L (E w)^2 / E w^2`` for the weights ``w = exp(x^T U z)``, is below 10
    are refused. For Gaussian tokens that is ``L exp(-s^2)``, and ``finite_length_error`` needs no
    sampling.

    Args:
        measure: The law of the tokens.
        head: The head.
        queries: Queries ``z``, ``(query, e)``.
        length: Tokens of a prompt.
        prompts: Number of prompts to sample, at least 2.
        seed: Same seed, same numbers.

    Raises:
        InvalidInputError: If shapes do not fit, a count is too small, or a query is refused.
    """
    check_kinds(measure=(measure, Measure), head=(head, AttentionHead))
    z = as_float64("queries", queries, largest=LARGEST)
    U = as_float64("head", head.score_matrix, largest=LARGEST)
    V = as_float64("head", head.value_matrix, largest=LARGEST)
    if z.ndim != 2 or not len(z) or z.shape[1] != U.shape[1]:
        raise InvalidInputError(
            "queries", f"the shape is {z.shape}", f"Give (query, {U.shape[1]}), one query at least"
        )
    length, prompts = check_prompts(length, prompts, each=40.0 * len(z))
    directions = z @ U.T
    limit = _limit(measure, directions, length)
    # A seed of its own for each prompt, so that more prompts begin with the same ones.
    seeds = generator(seed, purpose="prompts to compare with").integers(2**63, size=prompts)
    samples = np.zeros((prompts, 4, len(z)))
    size = max(1, _ENTRIES // (length * U.shape[0]))  # queries whose arrays stay small
    for prompt, own_seed in enumerate(seeds):
        tokens = np.asarray(measure.sample(length, seed=int(own_seed)))
        for start in range(0, len(z), size):
            part = slice(start, start + size)
            mean, covariance = (moment[part] for moment in limit)
            samples[prompt, :, part] = _errors(tokens, V, directions[part], mean, covariance)
    samples[:, 2] *= (z**2).sum(-1)
    errors, sizes = samples[:, :3], samples[:, 3]
    averages = errors.mean(-1)
    return MonteCarloError(
        FiniteLengthError(*averages.mean(0)),
        FiniteLengthError(*(averages.std(0, ddof=1) / np.sqrt(prompts))),
        FiniteLengthError(*errors.mean(0)),
        FiniteLengthError(*(errors.std(0, ddof=1) / np.sqrt(prompts))),
        sizes.mean(0),
    )


def check_prompts(length: Any, prompts: Any, *, each: float) -> tuple[int, int]:
    """Checks the numbers of prompts to sample and of their tokens.

    Args:
        length: Tokens of a prompt.
        prompts: Number of prompts.
        each: Bytes kept of each prompt.

    Raises:
        InvalidInputError: If they are no counts, or more than fit into memory.
    """
    length, prompts = check_count("length", length), check_count("prompts", prompts, 2)
    require_memory_for("prompts", prompts, "prompts", each=each, otherwise="Give fewer queries")
    return length, prompts


def _limit(
    measure: Measure, directions: Float[np.ndarray, "query d"], length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the infinite prompt for each query.

    Raises:
        InvalidInputError: If sampled prompts of this length cannot be compared with them.
    """
    with double_precision():
        tilt = measure.tilt(directions)
        once = np.asarray(tilt.log_normalizer)
        try:
            twice = np.asarray(measure.tilt(2 * directions).log_normalizer)
        except InvalidInputError as error:
            raise InvalidInputError(
                "queries",
                "the attention weights of one have infinite variance under this measure, so that "
                "the error of sampled prompts has none that could be estimated",
                "Give shorter queries: exponential moments must exist at twice U z",
            ) from error
    log_fraction = 2 * once - twice
    worst = int(log_fraction.argmin())
    if np.log(length) + log_fraction[worst] < np.log(_FEWEST):
        enough = _FEWEST * np.exp(min(-log_fraction[worst], 700.0))
        raise InvalidInputError(
            "length",
            f"for query {worst} the {length} tokens of a prompt count as "
            f"{length / enough * _FEWEST:.3g} equal ones, so that rare prompts dominate the error "
            "and sampling misses them",
            f"Give a length of at least {np.ceil(enough):.6g}, or leave that query out; for "
            "Gaussian tokens finite_length_error is exact at every length",
        )
    return np.asarray(tilt.mean), np.asarray(tilt.covariance)


def _errors(
    tokens: Float[np.ndarray, "token d"],
    V: Float[np.ndarray, "v d"],
    directions: Float[np.ndarray, "query d"],
    mean: Float[np.ndarray, "query d"],
    covariance: Float[np.ndarray, "query d d"],
) -> Float[np.ndarray, "4 query"]:
    """The errors of one prompt, that of the gradient in U still without its query, and its size."""
    scores = directions @ tokens.T
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    shift = weights @ tokens - mean
    centered = tokens - (shift + mean)[:, None]
    prompt_covariance = np.swapaxes(weights[..., None] * centered, -1, -2) @ centered
    return np.stack(
        [
            ((shift @ V.T) ** 2).sum(-1),
            len(V) * (shift**2).sum(-1),
            ((V @ (prompt_covariance - covariance)) ** 2).sum((-2, -1)),
            1 / (weights**2).sum(-1),
        ]
    )
