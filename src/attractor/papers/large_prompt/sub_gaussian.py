"""Heads on sub-Gaussian tokens that are not Gaussian: exact errors, and bounds with constants."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float

from attractor.papers.large_prompt.data import gaussian_case, line, signs
from attractor.papers.large_prompt.finite_prompts import LENGTHS, Queries
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.prompts.files.head import HeadCase
from attractor.prompts.finite_length import ConcentrationBounds, measure_error, measure_output_error
from attractor.prompts.finite_length.bounds import Error
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.elliptical import Sphere
from attractor.prompts.measures.empirical import Empirical
from attractor.prompts.measures.gaussian import Gaussian
from attractor.prompts.measures.mixture import Mixture
from attractor.prompts.measures.products import Laplace, Product, Rademacher, Uniform
from attractor.support.errors import InvalidInputError

_ROUNDING = 1e-9
_MOST_QUERIES = 64
_WIDEST = 12.0
_NODES, _REACH = 40, 8.0
"""Quadrature of Gaussian queries on a line, so many of their standard deviations to both sides."""


@once
def queries_of(case: HeadCase) -> Queries:
    """All queries with their probabilities, or quadrature points where they lie on a line."""
    law = case.queries
    if isinstance(law, Empirical):
        weights = np.ones(len(law.points)) if law.weights is None else np.asarray(law.weights)
        points, group = np.unique(np.asarray(law.points), axis=0, return_inverse=True)
        return Queries(points, np.bincount(group.ravel(), weights / weights.sum()))
    x, weights = np.polynomial.legendre.leggauss(_NODES)
    x, deviation = _REACH * x, float(np.sqrt(case.query_moments[1][0, 0]))
    weights = weights * _REACH * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    return Queries(deviation * x[:, None], weights)


@once
def average_error(case: HeadCase, error: Error) -> Float[np.ndarray, "length"]:
    """An exact error at each of ``LENGTHS``, averaged over queries.

    Args:
        case: The data.
        error: Which one; no other is computed, as some are known for wider scores than others.

    Raises:
        InvalidInputError: If it is not known to 1e-6 for the scores of a query.
    """
    queries, weights = queries_of(case)
    head = case.head
    if error == "score_gradient":
        found = measure_error(case.tokens, head, queries[:, None], LENGTHS).score_gradient
    else:
        if error == "value_gradient":  # of each row of V it is the error of the mean of the tokens
            head = AttentionHead(head.score_matrix, np.eye(case.tokens.dimension))
        found = measure_output_error(case.tokens, head, queries[:, None], LENGTHS)
        if error == "value_gradient":
            found = case.V.shape[0] * found
    return weights @ found


@once
def bounds(case: HeadCase) -> ConcentrationBounds:
    """The bounds, with the moments of Assumption 3.3 as the law of the tokens has them."""
    queries, weights = queries_of(case)
    directions = queries @ case.U.T
    means = np.asarray(case.tokens.tilted_mean(directions))
    eighths = np.array([case.tokens.tilted_norm_moments(a)[4] for a in directions])
    lengths = np.linalg.norm(queries, axis=-1)
    sigma = scale(case)

    def fourth_root(vectors: Float[np.ndarray, "query n"]) -> float:
        return float(weights @ (vectors**2).sum(-1) ** 2) ** 0.25 / sigma**2

    return ConcentrationBounds(
        *case.U.shape,
        score_norm=float(np.linalg.norm(case.U, 2)),
        value_norm=float(np.linalg.norm(case.V, 2)),
        limit=fourth_root(means @ case.V.T),
        mean=fourth_root(means),
        tilted_moments=(
            float(weights @ (lengths**4 * eighths)) / sigma**16,
            float(weights @ lengths**4),
        ),
    )


@once
def scale(case: HeadCase) -> float:
    """The sub-Gaussian parameter ``sigma >= 1`` of the tokens, from above."""
    return max(1.0, case.tokens.sub_gaussian_parameter().upper)


def _tokens(law: Measure) -> Check:
    parameter = law.sub_gaussian_parameter()
    known = (
        "" if parameter.lower == parameter.upper else f" at most, {parameter.lower:.4g} at least"
    )
    return Check(parameter.upper < np.inf, f"their parameter is {parameter.upper:.4g}{known}")


SUB_GAUSSIAN_TOKENS = Assumption[HeadCase](
    "sub-Gaussian tokens",
    "The tokens have a sub-Gaussian parameter that their law bounds.",
    lambda case: _tokens(case.tokens),
    lambda: line(1.0).replace(tokens=Laplace(0.1, 1), about="Laplace tokens"),
)


def _queries(law: Measure) -> Check:
    upper = law.sub_gaussian_parameter().upper
    return Check(upper <= 1 + _ROUNDING, f"their parameter is {upper:.4g} at most")


UNIT_SUB_GAUSSIAN_QUERIES = Assumption[HeadCase](
    "queries of parameter 1",
    "The queries are sub-Gaussian with parameter 1.",
    lambda case: _queries(case.queries),
    lambda: gaussian_case([[1]], [[1]], [[1]], [[4]], about="z of 2"),
)


def _few(case: HeadCase) -> Check:
    if isinstance(case.queries, Empirical):
        count = len(np.unique(np.asarray(case.queries.points), axis=0))
        return Check(count <= _MOST_QUERIES, f"there are {count}")
    on_line = isinstance(case.queries, Gaussian) and case.U.shape[1] == 1
    return Check(on_line, f"their law is {type(case.queries).__name__} in R^{case.U.shape[1]}")


FEW_QUERIES = Assumption[HeadCase](
    "queries that can be averaged over",
    "The queries take 64 values at most, or are Gaussian on a line: averages over them are exact.",
    _few,
    lambda: gaussian_case(*[np.eye(2)] * 3, about="Gaussian queries in a plane"),
)


def narrow_scores(error: Error, what: str) -> Assumption[HeadCase]:
    """The assumption that an exact error is known, which is decided by computing it.

    How wide scores may be depends on the law of the tokens and on the error. Beyond a parameter of
    12 no error is looked at: exact ones are promised up to there.

    Args:
        error: The error.
        what: Of what it is, in words.
    """

    def check(case: HeadCase) -> Check:
        if not _few(case).met:
            return Check(False, "queries are not those that can be averaged over")
        longest = float(np.linalg.norm(queries_of(case).queries @ case.U.T, axis=-1).max())
        reach = longest * scale(case)
        found = f"scores have parameters up to {reach:.4g}"
        if not reach <= _WIDEST:
            return Check(False, found)
        try:
            average_error(case, error)
        except InvalidInputError as refused:
            return Check(False, f"{found}, and {refused.problem}")
        return Check(True, found)

    return Assumption(
        "scores that are not too wide",
        "The scores of every query have a sub-Gaussian parameter of 12 at most, and the error of "
        f"{what} can be computed for them: for some laws of tokens they must be narrower.",
        check,
        lambda: line(1.0, 4.0),
    )


def on_line(tokens: Measure, about: str, score: float = 0.1) -> HeadCase:
    """A head on a line with random signs as queries."""
    head = AttentionHead([[score]], [[1.0]])
    return HeadCase(head, tokens, Empirical([[-1.0], [1.0]]), about=f"{about}, queries +-1")


def in_space(tokens: Measure, about: str) -> HeadCase:
    """A head on tokens in three dimensions, with signed unit vectors as queries."""
    head = AttentionHead(0.1 * np.eye(3) + 0.1 * np.eye(3, k=1), np.eye(3))
    queries = Empirical(np.concatenate([np.eye(3), -np.eye(3)]))
    return HeadCase(head, tokens, queries, about=f"{about}, queries +-e_i")


@cache
def cases() -> tuple[HeadCase, ...]:
    """Tokens of several laws, on a line."""
    draws = np.random.default_rng(23)
    points = draws.uniform(-1, 1, size=(40, 1))
    points -= points.mean()
    two = Mixture([1, 1], [Gaussian([mean], [[0.36]]) for mean in (-0.8, 0.8)])
    gaussian_queries = on_line(Uniform(np.sqrt(3), 1), "uniform tokens", 0.5)
    return (
        on_line(Rademacher(1), "random signs"),
        on_line(Uniform(np.sqrt(3), 1), "uniform tokens"),
        on_line(two, "a mixture of two Gaussian laws"),
        on_line(Empirical(points).with_noise(0.4), "40 values with noise"),
        on_line(Uniform(3.0, 1), "uniform tokens of parameter 1.73"),
        gaussian_queries.replace(
            queries=Gaussian.isotropic(1), about="uniform tokens, Gaussian queries"
        ),
    )


@cache
def cases_in_space() -> tuple[HeadCase, ...]:
    """Tokens of several laws in three dimensions."""
    factors = [Uniform(np.sqrt(3), 1), Rademacher(1), Gaussian([0.0], [[1.0]])]
    return (
        in_space(Product(factors), "a uniform, a sign and a normal coordinate"),
        in_space(Sphere(3, np.sqrt(3)), "tokens on a sphere"),
    )


@cache
def signs_without_scores() -> HeadCase:
    """Random signs as samples, whose scores are all the same."""
    return on_line(signs(), "samples of random signs, K = 0", 0.0)
