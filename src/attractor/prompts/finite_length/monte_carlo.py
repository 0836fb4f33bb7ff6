"""Errors of finite prompts by sampling, for tokens of any law that can be sampled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.squared_errors import FiniteLengthError
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures.contract import Measure
from attractor.support.checks import check_count, check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory_for
from attractor.support.precision import LARGEST, as_float64, double_precision
from attractor.support.randomness import generator

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
