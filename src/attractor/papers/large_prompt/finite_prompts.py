"""Exact errors of finite prompts, averaged over the queries of a case."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.papers.ledger.claim import once
from attractor.prompts.files.head import HeadCase, root
from attractor.prompts.finite_length import (
    FiniteLengthError,
    averaged_error_of_output,
    error_exponent,
    finite_length_error,
)
from attractor.prompts.measures.gaussian import Gaussian

LENGTHS = np.array([1, 2, 3, 10, 1e2, 1e3, 1e4, 1e6, 1e8, 1e10, 1e12])
LONG = (1e11, 1e12)
"""Lengths at which limits are measured, and exponents between them."""
EXTRAPOLATED = (1e12, 1e24, 1e36)
"""Lengths from which exponents are extrapolated."""
_NODES = 3
"""Quadrature nodes for every standard deviation of queries on a line."""
_SAMPLED = 48
_NEGLIGIBLE = 14.0
"""Minus the logarithm of the share of an average that is left out."""


class Queries(NamedTuple):
    """Quadrature points of a law of queries, with their weights."""

    queries: Float[np.ndarray, "query e"]
    weights: Float[np.ndarray, "query"]


@once
def average_errors(case: HeadCase, seed: int) -> FiniteLengthError:
    """The errors of output and gradients at each of ``LENGTHS``, averaged over queries.

    Exact but for the average over queries, which is by quadrature where they lie on a line, and
    over so many drawn ones elsewhere.

    Args:
        case: A head with Gaussian tokens.
        seed: Names the queries that are drawn.
    """
    queries, weights = _queries(case, seed)
    found = finite_length_error(case.token_moments[1], case.U, case.V, queries[:, None], LENGTHS)
    return FiniteLengthError(*(weights @ errors for errors in found))


@once
def long_prompt_errors(
    case: HeadCase, lengths: tuple[float, ...] = LONG
) -> Float[np.ndarray, "length"]:
    """The error of the output at some lengths, averaged over Gaussian queries."""
    covariance, query_covariance = case.token_moments[1], case.query_moments[1]
    return averaged_error_of_output(covariance, case.U, case.V, query_covariance, np.array(lengths))


def extrapolated_exponent(errors: Float[np.ndarray, "3"]) -> float:
    """The ``alpha`` of ``c L^-alpha (log L)^p`` through errors at the ``EXTRAPOLATED`` lengths.

    Powers of ``log L`` die out so slowly that the slope between 1e11 and 1e12 tokens is off by up
    to 0.09, and that between 1e35 and 1e36 still by 0.03.
    """
    logs = np.log(EXTRAPOLATED)
    terms = np.stack([np.ones(3), -logs, np.log(logs)], axis=1)
    return float(np.linalg.solve(terms, np.log(errors))[1])


def _queries(case: HeadCase, seed: int) -> Queries:
    if isinstance(case.queries, Gaussian):
        mean, covariance = case.query_moments
        factor = root(covariance)
        if factor.shape[1] == 0:
            return Queries(mean[None], np.ones(1))
        if factor.shape[1] == 1:
            return _on_line(case, factor[:, 0])
    drawn = case.queries.sample(_SAMPLED, seed=seed)
    return Queries(drawn, np.full(len(drawn), 1 / len(drawn)))


def _on_line(case: HeadCase, factor: Float[np.ndarray, "e"]) -> Queries:
    """Centered queries on a line: Gauss-Legendre up to where the longest prompt needs it."""
    smallest = float(error_exponent(case.horizon)) * np.log(LENGTHS[-1])
    end = np.sqrt(2 * (smallest + _NEGLIGIBLE))
    x, weights = np.polynomial.legendre.leggauss(math.ceil(_NODES * end))
    x = (x + 1) * end / 2
    weights = weights * end * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)  # of both sides
    return Queries(x[:, None] * factor, weights)
