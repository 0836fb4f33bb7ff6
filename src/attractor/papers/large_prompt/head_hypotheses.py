"""The hypotheses of statements on long prompts, as checks that run on a head and its tokens."""

from __future__ import annotations

import numpy as np

from attractor.papers.large_prompt.data import gaussian_case, line, random_head, signs
from attractor.papers.large_prompt.finite_prompts import LONG
from attractor.papers.ledger.claim import Assumption, Check
from attractor.prompts.files.head import HeadCase, root
from attractor.prompts.finite_length import error_exponent, finite_length_exponent
from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.empirical import Empirical
from attractor.prompts.measures.gaussian import Gaussian

_ROUNDING = 1e-9
_LARGEST_ON_LINE = 5.0
_REACH = 31.0
"""Largest score deviation at which errors of gradients are known."""
_RARE = 5.5
"""How far beyond its typical one the length of a drawn query is at most, in deviations."""
_MOST_DIRECTIONS = 2.0
_APART = 0.25


def _what(law: Measure) -> str:
    if isinstance(law, Empirical):
        return f"{law.points.shape[-2]:,} samples"
    return f"their law is {type(law).__name__}"


def _is_gaussian(law: Measure) -> Check:
    return Check(isinstance(law, Gaussian), _what(law))


GAUSSIAN_TOKENS = Assumption[HeadCase](
    "Gaussian tokens",
    "The tokens are Gaussian, and their mean and covariance are given.",
    lambda case: _is_gaussian(case.tokens),
    lambda: line(1.0).replace(tokens=signs()),
)
GAUSSIAN_QUERIES = Assumption[HeadCase](
    "Gaussian queries",
    "The queries are Gaussian, and their mean and covariance are given.",
    lambda case: _is_gaussian(case.queries),
    lambda: line(1.0).replace(queries=signs()),
)


def _is_centered(moments: tuple[np.ndarray, np.ndarray]) -> Check:
    mean, covariance = moments
    size = float(np.linalg.norm(mean))
    return Check(
        size <= _ROUNDING * float(np.sqrt(np.trace(covariance))), f"the mean has norm {size:.3g}"
    )


CENTERED_TOKENS = Assumption[HeadCase](
    "centered tokens",
    "The tokens have mean zero.",
    lambda case: _is_centered(case.token_moments),
    lambda: line(1.0).replace(tokens=Gaussian([1.0], [[1.0]])),
)
CENTERED_QUERIES = Assumption[HeadCase](
    "centered queries",
    "The queries have mean zero.",
    lambda case: _is_centered(case.query_moments),
    lambda: line(1.0).replace(queries=Gaussian([1.0], [[1.0]])),
)


def _unit_queries(case: HeadCase) -> Check:
    largest = float(np.linalg.norm(case.query_moments[1], 2))
    return Check(largest <= 1 + _ROUNDING, f"a direction has variance {largest:.4g}")


UNIT_QUERIES = Assumption[HeadCase](
    "queries of unit scale",
    "No direction of the queries has a variance above one.",
    _unit_queries,
    lambda: gaussian_case([[1]], [[1]], [[1]], [[4]], about="z of 2"),
)


def horizon_at_most(largest: float) -> Assumption:
    """The horizon, a typical score deviation, has a bound."""
    return Assumption[HeadCase](
        f"horizon at most {largest:g}",
        f"The horizon, the norm of Gamma^(1/2) U Gamma_z^(1/2), is at most {largest:g}.",
        lambda case: Check(
            case.horizon <= largest * (1 + _ROUNDING), f"the horizon is {case.horizon:.4g}"
        ),
        lambda: line(1.5 * largest),
    )


def _within_reach(case: HeadCase) -> Check:
    rank = root(case.query_moments[1]).shape[1]
    largest = _LARGEST_ON_LINE if rank <= 1 else _REACH / (np.sqrt(rank) + _RARE)
    return Check(
        case.horizon <= largest * (1 + _ROUNDING),
        f"the horizon is {case.horizon:.4g}, and can be {largest:.4g} at most",
    )


INTEGRABLE_SCORES = Assumption[HeadCase](
    "scores within reach",
    "The horizon is so small that errors of the gradients are known for all queries that matter.",
    _within_reach,
    lambda: line(6.0),
)


MODERATE_DIMENSION = Assumption[HeadCase](
    "64 dimensions at most",
    "Tokens have 64 entries at most, so that averages over queries are a matter of seconds.",
    lambda case: Check(case.U.shape[0] <= 64, f"tokens have {case.U.shape[0]} entries"),
    lambda: random_head(0, 65),
)


def _scores(case: HeadCase) -> np.ndarray:
    """``Gamma^(1/2) U Gamma_z^(1/2)``."""
    tokens, queries = (root(moments[1]) for moments in (case.token_moments, case.query_moments))
    return tokens.T @ case.U @ queries


def case_exponent(case: HeadCase) -> float:
    """The local exponent of averaged errors, between the two ``LONG`` lengths."""
    singular_values = np.linalg.svd(_scores(case), compute_uv=False)
    return float(finite_length_exponent(singular_values, np.sqrt(np.prod(LONG))))


def _few_directions(case: HeadCase) -> Check:
    square = float((_scores(case) ** 2).sum())
    count = square / case.horizon**2 if case.horizon else 0.0
    return Check(count <= _MOST_DIRECTIONS, f"the variance is {count:.3g} times the largest")


FEW_DIRECTIONS = Assumption[HeadCase](
    "scores along few directions",
    "The variance of scores over queries is at most twice that along the widest direction: with "
    "more directions the exponent of long prompts shows at no length in use.",
    _few_directions,
    lambda: gaussian_case(*[np.eye(3)] * 3, about="of three"),
)


def _many_directions(case: HeadCase) -> Check:
    local, limit = case_exponent(case), float(error_exponent(case.horizon))
    return Check(abs(local - limit) >= _APART, f"the exponents are {local:.3g} and {limit:.3g}")


MANY_DIRECTIONS = Assumption[HeadCase](
    "scores along many directions",
    "Scores lie along so many directions that the exponent they give errors of 3e11 tokens is 0.25 "
    "or more from that of the widest direction alone.",
    _many_directions,
    lambda: line(1.0),
)


WIDE_HORIZON = Assumption[HeadCase](
    "horizon above 0.707",
    "The horizon is so large that the average of exp(s^2) over queries is infinite.",
    lambda case: Check(bool(case.horizon**2 > 0.5), f"the horizon is {case.horizon:.4g}"),
    lambda: line(0.5),
)


def rank_at_most(largest: int) -> Assumption:
    """Tokens lie in few dimensions, for quadrature."""

    def check(case: HeadCase) -> Check:
        rank = int(np.linalg.matrix_rank(case.token_moments[1], hermitian=True))
        return Check(rank <= largest, f"the covariance has rank {rank}")

    return Assumption[HeadCase](
        f"tokens in {largest} dimensions",
        f"The covariance of the tokens has rank {largest} at most, so that all of their space can "
        "be integrated over.",
        check,
        lambda: random_head(0, largest + 1),
    )


DISCRETE_TOKENS = Assumption[HeadCase](
    "discrete tokens",
    "The tokens take finitely many values, with the probabilities of the samples.",
    lambda case: Check(isinstance(case.tokens, Empirical), _what(case.tokens)),
    lambda: line(1.0),
)

HEAD_HYPOTHESES = (
    GAUSSIAN_TOKENS,
    CENTERED_TOKENS,
    GAUSSIAN_QUERIES,
    CENTERED_QUERIES,
    UNIT_QUERIES,
    INTEGRABLE_SCORES,
    WIDE_HORIZON,
    DISCRETE_TOKENS,
)
"""The hypotheses reported of a user's head."""
