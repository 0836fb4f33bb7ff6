"""How long a prompt must be for a head to act as its affine limit, and how many tokens count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.functions import (
    LARGEST_DEVIATION,
    check_deviation,
    sum_of_squared_weights,
    with_deviations,
)
from attractor.prompts.head import AttentionHead
from attractor.prompts.length.curves import ErrorCurves, law_errors, within_reach
from attractor.prompts.length.defect import Scales, gaussian_of, non_gaussian_defect, sampled_points
from attractor.prompts.length.result import PromptLength
from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.empirical import Empirical
from attractor.prompts.measures.gaussian import Gaussian
from attractor.support.checks import check_count, check_kind
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64
from attractor.support.randomness import check_seed


def effective_sample_size(
    score_deviation: ArrayLike, length: ArrayLike
) -> Float[np.ndarray, "..."]:
    """Returns ``1 / E sum_l p_l^2``, the number of equal weights with the same sum of squares.

    It is between 1 and ``L``, and ``L exp(-s^2)`` for prompts much longer than ``exp(s^2)``.

    Args:
        score_deviation: Standard deviations ``s`` of the scores of Gaussian tokens.
        length: Numbers of tokens ``L >= 1``; broadcasts against ``score_deviation``.

    Raises:
        InvalidInputError: If a deviation is negative, or a length below 1.
    """
    return 1 / sum_of_squared_weights(score_deviation, length)


def freezing_length(score_deviation: ArrayLike) -> Float[np.ndarray, "..."]:
    """Returns ``exp(s^2 / 2)``, the length below which few tokens hold all attention.

    There the output along the scores is near ``sqrt(2 log L)`` and not ``s``: it stays away from
    the infinite prompt for so long that it looks as if it did not converge.

    Args:
        score_deviation: Standard deviations ``s`` of the scores of Gaussian tokens, at most 32.

    Raises:
        InvalidInputError: If a deviation is negative or beyond 32.
    """
    return np.exp(check_deviation(score_deviation) ** 2 / 2)


ERRORS = (0.3, 0.1, 0.03)
"""Errors that lengths are given for."""
LENGTHS = (100, 1_000, 10_000, 100_000)
"""Lengths that errors are given for."""
QUERIES = 1000
"""Number of queries drawn from a law."""


def prompt_length(
    head: AttentionHead,
    tokens: Measure | Float[ArrayLike, "n d"],
    queries: Measure | Float[ArrayLike, "m e"] | None = None,
    *,
    errors: ArrayLike | Sequence[float] = ERRORS,
    lengths: ArrayLike | Sequence[float] = LENGTHS,
    drawn_queries: int = QUERIES,
    seed: int = 0,
) -> PromptLength:
    """Finds how long a prompt must be, for each query, from the head and the law of the tokens.

    The relative error of the output on ``L`` independent Gaussian tokens is an exact function of
    ``L`` and of the standard deviation ``s`` of the query's scores; the length for a wanted error
    is its root. Of tokens that are not Gaussian this is an approximation by their moments: beside
    it stand the defect of the limit and, where their law is known and not only samples of it, the
    exact error toward the limit itself for some of the queries.

    Args:
        head: The head.
        tokens: The law of the tokens, such as ``Gaussian(mean, covariance)``, or samples of it;
            ``Empirical`` with weights is a law, without them it is samples.
        queries: The law of the queries, or samples; None for that of the tokens.
        errors: Relative root-mean-square errors to find lengths for.
        lengths: Lengths to report the errors of.
        drawn_queries: Number of queries to draw from a law that is not one of samples.
        seed: Names the queries drawn, and the halves of sampled tokens.

    Raises:
        InvalidInputError: If shapes do not fit, samples are too few, an error is not above 0, a
            length not in [1, 1e12], or attention over infinitely many tokens does not exist for a
            query.

    Example:
        >>> import attractor as at
        >>> head = at.prompts.AttentionHead([[1.0]], [[1.0]])
        >>> law = at.prompts.Gaussian([0.0], [[1.0]])
        >>> lengths = at.prompts.prompt_length(head, law, [[0.5], [1.0], [2.0]], errors=[0.1])
        >>> lengths.required.round()
        array([[ 641.],
               [ 524.],
               [3103.]])
    """
    drawn_queries = check_count("drawn_queries", drawn_queries, 2, 10**6)
    seed = check_seed("seed", seed)
    check_kind("head", head, AttentionHead, "Give a prompt.AttentionHead")
    law = _law("tokens", tokens)
    query_law = law if queries is None else _law("queries", queries)
    moments, query_moments = gaussian_of("tokens", law), gaussian_of("queries", query_law)
    drawn = _drawn(query_law, drawn_queries, seed)
    wanted = -np.sort(-np.unique(check_errors(errors, "errors").ravel()))
    requested = np.unique(within_reach(lengths))
    scales = Scales.of(head, moments, drawn, np.asarray(query_moments.covariance))
    defect = non_gaussian_defect(head, law, drawn, seed=seed)
    of_law = None
    if not isinstance(law, Gaussian) and sampled_points("tokens", law) is None:
        of_law = law_errors(head, law, drawn, scales.deviation)

    small = scales.deviation <= LARGEST_DEVIATION
    curves = ErrorCurves.of(scales.deviation[small])
    s, A, B, output = (column[small] for column in scales[:4])
    required, for_output = np.full((2, len(drawn), len(wanted)), np.inf)
    for place, error in enumerate(wanted):
        ones, zeros = np.ones_like(s), np.zeros_like(s)
        required[small, place] = curves.length_for(ones, zeros, (s * error) ** 2)
        for_output[small, place] = curves.length_for(A, B, (output * error) ** 2)
    return PromptLength(
        head, law, drawn, scales, wanted, required, for_output, requested, defect, curves, of_law
    )


def _law(argument: str, given: Any) -> Measure:
    if isinstance(given, Measure):
        return given
    points = as_float64(argument, given, largest=LARGEST)
    if points.ndim != 2 or len(points) < 2 or not points.shape[1]:
        raise InvalidInputError(
            argument, f"the shape is {points.shape}", "Give a Measure, or two samples at least"
        )
    return Empirical(points)


def _drawn(law: Measure, count: int, seed: int) -> Float[np.ndarray, "query e"]:
    points = sampled_points("queries", law)
    return points if points is not None else np.asarray(law.sample(count, seed=seed))


def required_length(score_deviation: ArrayLike, error: ArrayLike) -> Float[np.ndarray, "..."]:
    """Returns the length at which the output along the scores has a wanted relative error.

    It is the ``L`` with ``sqrt(E (ghat - s)^2) / s = error``, averaged over prompts of independent
    Gaussian tokens, found as a root of the exact function and not of its limit for long prompts,
    ``exp(s^2) (1 + s^2) / (s error)^2``, which is far too large beyond ``s = 1.5``.

    The error is relative to ``s``, what an infinite prompt puts out. That is small for scores that
    hardly vary, so that the length has a minimum near ``s = 1`` and grows to both sides.

    Args:
        score_deviation: Standard deviations ``s`` of the scores, at most 32.
        error: Relative root-mean-square errors above 0, such as 0.1; broadcasts against
            ``score_deviation``.

    Returns:
        Lengths, not rounded, at least 1; infinite beyond 1e12 and for ``s = 0``.

    Raises:
        InvalidInputError: If a deviation is negative or beyond 32, an error is not above 0, or
            shapes do not fit.
    """
    s, wanted = with_deviations(score_deviation, "error", check_errors(error))
    curves = ErrorCurves.of(s.ravel())
    ones = np.ones(s.size)
    lengths = curves.length_for(ones, np.zeros(s.size), (s * wanted).ravel() ** 2)
    return lengths.reshape(s.shape)


def check_errors(error: Any, argument: str = "error") -> Float[np.ndarray, "..."]:
    """Returns relative errors as float64, all above 0.

    Raises:
        InvalidInputError: If one is not.
    """
    wanted = as_float64(argument, error, largest=LARGEST)
    if not (wanted > 0).all():
        raise InvalidInputError(
            argument, f"{wanted.min():.6g} is not above 0", "Give relative errors, such as 0.1"
        )
    return wanted
