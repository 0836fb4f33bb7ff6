"""How the gradients of a finite prompt concentrate: the bounds as printed, and repaired."""

from __future__ import annotations

from attractor.files.head import HeadCase
from attractor.papers.large_prompt.claims.concentration import (
    printed_and_repaired,
    scale,
    size_of_scores,
)


def _value_constant(case: HeadCase) -> float:
    outputs, dimension = case.V.shape
    return 2.3 * outputs * dimension * size_of_scores(case) * scale(case) ** 6


def _score_constant(case: HeadCase) -> float:
    dimension, queries = case.U.shape
    size = float((case.V**2).sum()) * dimension * queries
    return 6.0 * size * size_of_scores(case) * scale(case) ** 12


VALUE_GRADIENT_CONCENTRATION, VALUE_GRADIENT_CONCENTRATION_REPAIRED = printed_and_repaired(
    "value-gradient-concentration",
    "the gradient in V",
    "c1 sigma^6 {} / L^(c2/sigma^2)",
    lambda errors: errors.value_gradient,
    _value_constant,
    1,
)
SCORE_GRADIENT_CONCENTRATION, SCORE_GRADIENT_CONCENTRATION_REPAIRED = printed_and_repaired(
    "score-gradient-concentration",
    "the gradient in U",
    "c1 sigma^12 {}^2 / L^(c2/sigma^2)",
    lambda errors: errors.score_gradient,
    _score_constant,
    2,
)
