"""Rates at which finite prompts of Gaussian tokens converge for one query, and exact errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from attractor.files.head import HeadCase, root
from attractor.papers.claim import Claim, Contrast, Measurement
from attractor.papers.large_prompt.claims import HEAD_CLAIMS
from attractor.papers.large_prompt.data import Queries, fixed_query, line, random_head
from attractor.papers.large_prompt.head_hypotheses import GAUSSIAN_TOKENS
from attractor.prompt.finite_length import (
    FiniteLengthError,
    finite_length_error,
    mean_output,
    monte_carlo_error,
)

_LENGTH = 1e12
_QUERIES = 6
_LARGEST_DEVIATION = 2.0
_SAMPLED_LENGTH = 200
_SAMPLED_DEVIATION = 1.0
_PROMPTS = (50, 400)
_OPERATIONS = 2e10
"""Largest number of operations of sampling; large heads have fewer prompts."""
_ROUNDING = 1e-9


def _queries(case: HeadCase, seed: int, largest: float) -> Queries:
    """Some queries, those whose scores have a deviation up to the largest."""
    drawn = case.queries.sample(_QUERIES, seed=seed)
    return drawn[_deviations(case, drawn) <= largest]


def _deviations(case: HeadCase, queries: Queries) -> Float[np.ndarray, "query"]:
    return np.linalg.norm(queries @ case.U.T @ root(case.token_moments[1]), axis=-1)


def _output_limit(case: HeadCase, query: Float[np.ndarray, "e"], tilted: bool) -> float:
    """Limit of ``L E||V (m_hat - m_a)||^2``, or what plain averages of tokens would have."""
    covariance = case.token_moments[1]
    a = case.U @ query
    plain = float(np.trace(case.V @ covariance @ case.V.T))
    if not tilted:
        return plain
    square = a @ covariance @ a
    return float(np.exp(square) * (plain + np.sum((case.V @ covariance @ a) ** 2)))


def _gradient_limit(case: HeadCase, query: Float[np.ndarray, "e"], tilted: bool) -> float:
    """Limit of ``L E||J_U - J_U,infinite||^2``, or what plain averages of tokens would have."""
    G, M = case.token_moments[1], case.V.T @ case.V
    u = G @ case.U @ query
    if not tilted:
        u = np.zeros_like(u)
    square = query @ case.U.T @ u
    products = (np.trace(M @ G) + u @ M @ u) * (np.trace(G) + u @ u)
    rest = np.trace(M @ G @ G) + 2 * u @ M @ G @ u
    return float(np.exp(square) * (query @ query) * (products + rest))


def _off_limit(
    case: HeadCase,
    seed: int,
    part: str,
    limit: Callable[[HeadCase, Float[np.ndarray, "e"], bool], float],
    tilted: bool,
) -> Measurement:
    """The largest relative distance of ``L`` times the error of long prompts from a limit."""
    queries = _queries(case, seed, _LARGEST_DEVIATION)
    if not len(queries):
        return Measurement(np.nan, 0)
    found = case.once(
        ("long prompts", seed),
        lambda: finite_length_error(case.token_moments[1], case.U, case.V, queries, _LENGTH),
    )
    claimed = np.array([limit(case, query, tilted) for query in queries])
    errors = _LENGTH * getattr(found, part)
    deviations = _deviations(case, queries)
    return Measurement(
        _relative(errors, claimed), len(queries), {"largest deviation": float(deviations.max())}
    )


def _relative(found: Float[np.ndarray, "query"], claimed: Float[np.ndarray, "query"]) -> float:
    size = np.maximum(np.abs(claimed), np.finfo(float).tiny)
    return float((np.abs(found - claimed) / size).max())


def _data(seed: int) -> Sequence[HeadCase]:
    return [
        random_head(seed, 2, horizon=0.7),
        fixed_query((1.0, 1.0)),
        line(1.0),
        random_head(seed, 3, rank=2, horizon=0.7),
    ]


def _claim(
    name: str,
    summary: str,
    what: str,
    part: str,
    limit: Callable[[HeadCase, Float[np.ndarray, "e"], bool], float],
) -> Claim:
    return HEAD_CLAIMS.claim(
        name,
        summary,
        statement=f"concentration of {what}, its sharp rate for one query",
        assuming=(GAUSSIAN_TOKENS,),
        contrast=Contrast(
            f"largest relative distance of L times the error of {what} at 1e12 tokens from its "
            "limit",
            lambda case, seed: _off_limit(case, seed, part, limit, True),
            "the same for the limit of plain averages of the tokens",
            lambda case, seed: _off_limit(case, seed, part, limit, False),
            bound=1e-3,
            reason="for score deviations up to 2 what is left vanishes like exp(6 s^2) / L",
        ),
        data=_data,
        note="derived for Gaussian tokens; the paper's bounds do not give the constant",
    )


OUTPUT_RATE = _claim(
    "output-rate",
    "for one query L times the squared error tends to exp(s^2) (tr V G V^T + |V G a|^2)",
    "the output",
    "output",
    _output_limit,
)
SCORE_GRADIENT_RATE = _claim(
    "score-gradient-rate",
    "for one query L times the squared error of the gradient in U has a limit, with exp(s^2)",
    "the gradient in U",
    "score_gradient",
    _gradient_limit,
)


def _off_bias(case: HeadCase, seed: int, tilted: bool) -> Measurement:
    """Relative distance of ``L`` times the bias along the scores from ``-exp(s^2) s``."""
    deviations = _deviations(case, _queries(case, seed, _LARGEST_DEVIATION))
    deviations = deviations[deviations > 0]
    if not len(deviations):
        return Measurement(np.nan, 0)
    bias = 1e8 * (mean_output(deviations, 1e8) - deviations)  # longer ones leave no digits
    claimed = -deviations * (np.exp(deviations**2) if tilted else 1.0)
    return Measurement(_relative(bias, claimed), len(deviations))


OUTPUT_BIAS = HEAD_CLAIMS.claim(
    "output-bias",
    "for one query the bias of the output is -exp(s^2) V Gamma U z / L, toward the mean",
    statement="attention over a finite prompt, its bias for one query",
    assuming=(GAUSSIAN_TOKENS,),
    contrast=Contrast(
        "largest relative distance of L times the bias along the scores at 1e8 tokens from its "
        "limit",
        lambda case, seed: _off_bias(case, seed, True),
        "the same without the factor exp(s^2)",
        lambda case, seed: _off_bias(case, seed, False),
        bound=1e-3,
        reason="what is left vanishes like exp(3 s^2) / L",
    ),
    data=_data,
    note="derived for Gaussian tokens",
)


def _off_sampled(
    case: HeadCase,
    seed: int,
    expected: Callable[[HeadCase, Queries], FiniteLengthError],
) -> Measurement:
    """The largest difference of sampled errors from expected ones, in standard errors."""
    queries = _queries(case, seed, _SAMPLED_DEVIATION)
    if not len(queries):
        return Measurement(np.nan, 0)
    work = len(queries) * case.U.shape[0] ** 2 * (len(case.V) + _SAMPLED_LENGTH)
    prompts = int(np.clip(_OPERATIONS / work, *_PROMPTS))
    sampled = case.once(
        ("sampled prompts", seed),
        lambda: monte_carlo_error(
            case.tokens, case.head, queries, _SAMPLED_LENGTH, prompts=prompts, seed=seed
        ),
    )
    differences = [
        abs(found - np.mean(claimed)) / max(error, _ROUNDING * found, np.finfo(float).tiny)
        for found, error, claimed in zip(
            sampled.average, sampled.standard_error, expected(case, queries), strict=True
        )
    ]
    return Measurement(float(max(differences)), len(queries), {"in standard errors": differences})


def _exact(case: HeadCase, queries: Queries) -> FiniteLengthError:
    return finite_length_error(case.token_moments[1], case.U, case.V, queries, _SAMPLED_LENGTH)


def _untilted(case: HeadCase, queries: Queries) -> FiniteLengthError:
    """The errors of plain averages of the tokens."""
    output = [_output_limit(case, query, False) for query in queries]
    value = len(case.V) * np.trace(case.token_moments[1])
    score = [_gradient_limit(case, query, False) for query in queries]
    parts = (np.array(part) / _SAMPLED_LENGTH for part in (output, value, score))
    return FiniteLengthError(*parts)


EXACT_ERRORS = HEAD_CLAIMS.claim(
    "exact-errors",
    "errors of finite prompts are integrals of one variable, whatever the dimension",
    statement="error of a finite prompt of Gaussian tokens, as integrals",
    assuming=(GAUSSIAN_TOKENS,),
    contrast=Contrast(
        "largest difference of sampled errors from computed ones at 200 tokens, in standard errors",
        lambda case, seed: _off_sampled(case, seed, _exact),
        "the same for the errors of plain averages of the tokens",
        lambda case, seed: _off_sampled(case, seed, _untilted),
        bound=4.0,
        reason="three numbers that are nearly normal lie within 4 with probability 0.9998",
    ),
    data=lambda seed: [
        random_head(seed, 2, horizon=0.7),
        fixed_query((1.0,)),
        random_head(seed, 3, rank=2, horizon=0.7),
    ],
    note="derived for Gaussian tokens; queries with score deviations up to 1, as sampling misses "
    "the rare prompts that decide the errors of larger ones",
)
