"""Concentration of the output of a finite prompt: the bound as printed, and repaired."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.files.head import HeadCase
from attractor.papers.claim import Claim, Contrast, Measurement
from attractor.papers.large_prompt.claims import HEAD_CLAIMS
from attractor.papers.large_prompt.data import line, random_head, without_scores
from attractor.papers.large_prompt.finite_prompts import LENGTHS, average_errors
from attractor.papers.large_prompt.head_hypotheses import (
    CENTERED_QUERIES,
    CENTERED_TOKENS,
    GAUSSIAN_QUERIES,
    GAUSSIAN_TOKENS,
    INTEGRABLE_SCORES,
    UNIT_QUERIES,
)
from attractor.papers.once import once_a_case
from attractor.prompt.finite_length import FiniteLengthError, error_exponent

ASSUMPTIONS = (
    GAUSSIAN_TOKENS,
    CENTERED_TOKENS,
    GAUSSIAN_QUERIES,
    CENTERED_QUERIES,
    UNIT_QUERIES,
    INTEGRABLE_SCORES,
)
SHARE_OF_EXPONENT = 0.8
"""``c2`` over the exponent for sigma of one, with slack for powers of ``log L``."""


def scale(case: HeadCase) -> float:
    """The sub-Gaussian parameter ``sigma >= 1`` of the tokens."""
    return max(1.0, float(np.sqrt(np.linalg.norm(case.token_moments[1], 2))))


def rate(case: HeadCase) -> float:
    """The exponent ``c2 / sigma^2``, with ``c2`` from the norm of the score matrix alone."""
    c2 = SHARE_OF_EXPONENT * float(error_exponent(np.linalg.norm(case.U, 2)))
    return c2 / scale(case) ** 2


def size_of_scores(case: HeadCase) -> float:
    """``max(1, ||U||_F^2)``, in which constants grow."""
    return max(1.0, float((case.U**2).sum()))


def largest_ratio(
    case: HeadCase, errors: Float[np.ndarray, "length"], bound: Float[np.ndarray, "length"]
) -> Measurement:
    """The largest error over its bound, at the lengths that the case speaks of."""
    spoken = case.shortest_length <= LENGTHS
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(errors > 0, errors / bound, 0.0)[spoken]
    worst = int(ratios.argmax())
    return Measurement(
        float(ratios[worst]),
        int(spoken.sum()),
        {
            "at length": float(LENGTHS[spoken][worst]),
            "error": float(errors[spoken][worst]),
            "bound": float(bound[spoken][worst]),
        },
    )


def printed_and_repaired(
    name: str,
    what: str,
    logarithm: str,
    part: Callable[[FiniteLengthError], Float[np.ndarray, "length"]],
    constant: Callable[[HeadCase], float],
    power: int,
) -> tuple[Claim, Claim]:
    """The claim as printed, with ``log L``, and repaired, with ``1 + log L``.

    Args:
        name: Name of the claim, without the paper.
        what: The quantity that concentrates.
        logarithm: The bound, with the logarithm left open.
        part: The error that is bounded.
        constant: ``c1 sigma^6`` or ``c1 sigma^12``, of the case.
        power: Of the logarithm.
    """

    def ratio(case: HeadCase, seed: int, start: float, exponent: float) -> Measurement:
        bound = constant(case) * (start + np.log(LENGTHS)) ** power * LENGTHS**-exponent
        return largest_ratio(case, part(average_errors(case, seed)), bound)

    def made(start: float, words: str, **other: Any) -> Claim:
        return HEAD_CLAIMS.claim(
            name + ("-repaired" if start else ""),
            f"the squared error of {what} is at most {logarithm.format(words)}",
            statement=f"concentration of {what}" + (", with one token as well" if start else ""),
            assuming=ASSUMPTIONS,
            contrast=Contrast(
                f"largest squared error of {what} over the bound, up to 1e12 tokens",
                lambda case, seed: ratio(case, seed, start, rate(case)),
                "the same over a bound that falls like L^(-3/2), faster than plain averages do",
                lambda case, seed: ratio(case, seed, start, 1.5),
                bound=1.0,
                reason="the bound itself",
            ),
            **other,
        )

    printed = made(
        0.0,
        "log L",
        data=lambda seed: [without_scores(), *[from_two(case) for case in _short(seed)]],
        holding=lambda: from_two(line(1.0)),
        note="printed for every length, and at L = 1 the bound is zero while the error is not; "
        "nothing was found against it from L = 2 on. Published constants are not given: "
        "c2 is 0.8 of the exact exponent of sigma = 1, c1 depends on U, V and d alone",
    )
    repaired = made(
        1.0,
        "(1 + log L)",
        data=lambda seed: [*_short(seed), without_scores(), line(1.5), line(2.0), line(2.5)],
        note="with log L replaced by 1 + log L the bound covers prompts of one token",
    )
    return printed, repaired


@once_a_case
def from_two(case: HeadCase) -> HeadCase:
    """The case with prompts of two tokens and more."""
    return case.replace(shortest_length=2, about=f"{case.about}, two tokens or more")


def _short(seed: int) -> Sequence[HeadCase]:
    return [line(1.0), random_head(seed, 2, rank=1, horizon=0.5, centered=True)]


OUTPUT_CONCENTRATION, OUTPUT_CONCENTRATION_REPAIRED = printed_and_repaired(
    "output-concentration",
    "the output",
    "c1 sigma^6 {} / L^(c2/sigma^2)",
    lambda errors: errors.output,
    lambda case: 2.3 * float((case.V**2).sum()) * size_of_scores(case) * scale(case) ** 6,
    1,
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
