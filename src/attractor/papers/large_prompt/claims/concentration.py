"""Concentration of finite prompts, for Gaussian and for sub-Gaussian tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.papers.claim import Claim, Comparison, Exponent, Measurement
from attractor.papers.large_prompt.claims import HEAD_CLAIMS
from attractor.papers.large_prompt.data import gaussian_case, line, random_head, without_scores
from attractor.papers.large_prompt.finite_prompts import LENGTHS, average_errors
from attractor.papers.large_prompt.head_hypotheses import (
    CENTERED_QUERIES,
    CENTERED_TOKENS,
    GAUSSIAN_QUERIES,
    GAUSSIAN_TOKENS,
    INTEGRABLE_SCORES,
    UNIT_QUERIES,
)
from attractor.papers.large_prompt.sub_gaussian import (
    FEW_QUERIES,
    SUB_GAUSSIAN_TOKENS,
    UNIT_SUB_GAUSSIAN_QUERIES,
    average_error,
    bounds,
    cases,
    cases_in_space,
    narrow_scores,
    scale as sub_gaussian_scale,
    signs_without_scores,
)
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.prompts.files.head import HeadCase
from attractor.prompts.finite_length import BoundShape, FiniteLengthError, error_exponent
from attractor.prompts.finite_length.bounds import Error

_ROUNDING = 1e-9


@once
def at_unit_scale(case: HeadCase) -> HeadCase:
    """The head on the widest tokens of ``sigma = 1`` and the widest queries: standard normal."""
    U, V = case.U, case.V
    return gaussian_case(U, V, *map(np.eye, U.shape), about=f"{case.about}, standard normal laws")


INTEGRABLE_AT_UNIT_SCALE = Assumption[HeadCase](
    "scores within reach at unit scale",
    "The horizon is as small over standard normal tokens and queries, where constants are from.",
    lambda case: INTEGRABLE_SCORES.check(at_unit_scale(case)),
    lambda: line(0.1, 10.0),
)
ASSUMPTIONS = (
    GAUSSIAN_TOKENS,
    CENTERED_TOKENS,
    GAUSSIAN_QUERIES,
    CENTERED_QUERIES,
    UNIT_QUERIES,
    INTEGRABLE_SCORES,
    INTEGRABLE_AT_UNIT_SCALE,
)
_CONSTANTS = (
    "Published constants are not given: c2 is the exact exponent of the head over standard normal "
    "tokens, c1 the least that serves them, and other tokens are the test. On a line with U = 1 "
    "and sigma = 1 the bound of the output is attained at the shortest length and 40 times the "
    "error at 1e12 tokens, as log L is; sigma^6 is loose, for sigma = 2.5 by a factor of 11 or "
    "more. Beyond a line, averages over queries are over 48 drawn ones, which miss the rare "
    "queries that decide the errors of very long prompts"
)


class Bounded(NamedTuple):
    """What concentrates, and the shape ``sigma^p log(L)^k / L^(c2 / sigma^2)`` of its bound.

    Attributes:
        what: In words.
        bound: The bound, with the logarithm left open.
        part: Which of the errors it is.
        power: The power ``p`` of the scale of the tokens.
        logarithms: The power ``k`` of the logarithm.
    """

    what: str
    bound: str
    part: Callable[[FiniteLengthError], Float[np.ndarray, "length"]]
    power: int
    logarithms: int

    def shape(self, case: HeadCase, start: float, exponent: float) -> Float[np.ndarray, "length"]:
        """The bound at ``LENGTHS`` over ``c1``, with ``start + log L`` for the logarithm."""
        return BoundShape(self.power, self.logarithms, start)(scale(case), LENGTHS, exponent)


def scale(case: HeadCase) -> float:
    """The sub-Gaussian parameter ``sigma >= 1`` of the tokens."""
    return max(1.0, float(np.sqrt(np.linalg.norm(case.token_moments[1], 2))))


def exponent_at_unit_scale(case: HeadCase) -> Exponent:
    """``c2``: the exponent of the head's errors over standard normal tokens and queries."""
    return Exponent(error_exponent(np.linalg.norm(case.U, 2)))


def largest_ratio(
    case: HeadCase, seed: int, bounded: Bounded, start: float, exponent: float
) -> Measurement:
    """The largest error over its bound, at the lengths that the case speaks of."""
    unit = at_unit_scale(case)
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = bounded.shape(unit, start, exponent_at_unit_scale(case))
        ratios = bounded.part(average_errors(unit, seed)) / shape
        constant = ratios[np.isfinite(ratios)].max()  # of one token log L is zero
        errors = bounded.part(average_errors(case, seed))
        bound = constant * bounded.shape(case, start, exponent)
    return error_over_bound(case, errors, bound)


def error_over_bound(
    case: HeadCase,
    errors: Float[np.ndarray, "length"],
    bound: Float[np.ndarray, "length"],
    **details: float,
) -> Measurement:
    """The largest error over its bound at ``LENGTHS``, of those that the case speaks of."""
    spoken = case.shortest_length <= LENGTHS
    with np.errstate(divide="ignore", invalid="ignore"):  # of one token log L is zero
        ratios = np.where(errors > 0, errors / bound, 0.0)[spoken]
    worst = int(ratios.argmax())
    return Measurement(
        float(ratios[worst]),
        int(spoken.sum()),
        {
            "at length": float(LENGTHS[spoken][worst]),
            "error": float(errors[spoken][worst]),
            "bound": float(bound[spoken][worst]),
            "error over bound at 1e12 tokens": float(ratios[-1]),
            **details,
        },
    )


def printed_and_repaired(name: str, bounded: Bounded) -> tuple[Claim, Claim]:
    """The claim as printed, with ``log L``, and repaired, with ``1 + log L``."""

    def made(start: float, words: str, **other: Any) -> Claim:
        return HEAD_CLAIMS.claim(
            name + ("-repaired" if start else ""),
            f"for Gaussian tokens the squared error of {bounded.what} is <= "
            f"{bounded.bound.format(words)}",
            statement=f"concentration of {bounded.what}"
            + (", with one token as well" if start else ""),
            assuming=ASSUMPTIONS,
            contrast=Comparison(
                f"largest squared error of {bounded.what} over the bound, up to 1e12 tokens",
                lambda case, seed, c2: largest_ratio(case, seed, bounded, start, c2),
                lambda case, seed: exponent_at_unit_scale(case),
                "the same over a bound whose c2 is larger by a quarter",
                lambda case, seed: Exponent(exponent_at_unit_scale(case) + 0.25),
                bound=1 + _ROUNDING,
                reason="the bound itself, which standard normal tokens attain",
            ),
            exchange="one",
            **other,
        )

    printed = made(
        0.0,
        "log L",
        data=lambda seed: [without_scores(), *[from_two(case) for case in _heads(seed)]],
        holding=lambda: from_two(line(1.1)),
        note="printed for every length, and at L = 1 the bound is zero while the error is not; "
        "nothing was found against it from L = 2 on. " + _CONSTANTS,
    )
    repaired = made(
        1.0,
        "(1 + log L)",
        data=lambda seed: [*_heads(seed), without_scores(), *map(line, (1.0, 1.5, 2.0, 2.5))],
        note="with log L replaced by 1 + log L the bound covers prompts of one token. "
        + _CONSTANTS,
    )
    return printed, repaired


@once
def from_two(case: HeadCase) -> HeadCase:
    """The case with prompts of two tokens and more."""
    return case.replace(shortest_length=2, about=f"{case.about}, two tokens or more")


def _heads(seed: int) -> Sequence[HeadCase]:
    return [line(1.1), random_head(seed, 2, rank=1, horizon=0.5, centered=True)]


OUTPUT_CONCENTRATION, OUTPUT_CONCENTRATION_REPAIRED = printed_and_repaired(
    "output-concentration",
    Bounded("the output", "c1 sigma^6 {} / L^(c2/sigma^2)", lambda errors: errors.output, 6, 1),
)
VALUE_GRADIENT_CONCENTRATION, VALUE_GRADIENT_CONCENTRATION_REPAIRED = printed_and_repaired(
    "value-gradient-concentration",
    Bounded(
        "the gradient in V",
        "c1 sigma^6 {} / L^(c2/sigma^2)",
        lambda errors: errors.value_gradient,
        6,
        1,
    ),
)
SCORE_GRADIENT_CONCENTRATION, SCORE_GRADIENT_CONCENTRATION_REPAIRED = printed_and_repaired(
    "score-gradient-concentration",
    Bounded(
        "the gradient in U",
        "c1 sigma^12 {}^2 / L^(c2/sigma^2)",
        lambda errors: errors.score_gradient,
        12,
        2,
    ),
)


_ASSUMING = (
    SUB_GAUSSIAN_TOKENS,
    CENTERED_TOKENS,
    CENTERED_QUERIES,
    UNIT_SUB_GAUSSIAN_QUERIES,
    FEW_QUERIES,
)
_TOKENS_ON_LINE = Assumption[HeadCase](
    "tokens on a line",
    "Tokens have one entry, where the error of the gradient in U is known exactly.",
    lambda case: Check(case.U.shape[0] == 1, f"tokens have {case.U.shape[0]} entries"),
    lambda: cases_in_space()[0],
)
_NOTE = (
    "c1 and c2 = min(1/16, 1/(32 u^2)), u the norm of U, are those of a proof that holds for "
    "every sub-Gaussian law, from the dimensions, the norms of U and V and the moments of "
    "Assumption 3.3 as the law has them (attractor.prompts.finite_length.ConcentrationBounds); "
    "the paper says that some exist. Where sigma is 1 exact errors of one token are within a "
    "factor of 10 of the repaired bound; sigma^6 is loose beyond. Long prompts of bounded queries"
    " have errors like 1/L, which the shape L^(-c2) does not follow"
)


class _Concentrating(NamedTuple):
    """What concentrates, and its bound.

    Attributes:
        name: A short name.
        what: In words.
        form: The bound, with the logarithm left open.
        error: Which error it is of.
        power: The power of ``sigma`` in its shape.
        growth: That of the error itself at few tokens.
        logarithms: The power of the logarithm.
    """

    name: str
    what: str
    form: str
    error: Error
    power: int
    growth: int
    logarithms: int

    def proven(self, case: HeadCase, start: float) -> Float[np.ndarray, "length"]:
        """The bound with its constants, at ``LENGTHS``."""
        shape = BoundShape(self.power, self.logarithms, start)
        c1, c2 = bounds(case).constants(self.error, shape)
        return c1 * shape(sub_gaussian_scale(case), LENGTHS, c2)

    def hundredth(self, case: HeadCase, start: float) -> Float[np.ndarray, "length"]:
        """A hundredth of it that grows no faster with ``sigma`` than the error."""
        return self.proven(case, start) / (
            100 * sub_gaussian_scale(case) ** (self.power - self.growth)
        )

    def largest_ratio(
        self, case: HeadCase, seed: int, bound: Float[np.ndarray, "length"]
    ) -> Measurement:
        """The largest error over its bound, at the lengths that the case speaks of."""
        errors = average_error(case, self.error)
        if self.error == "value_gradient":
            errors = errors / case.V.shape[0]  # of each row of V
        return error_over_bound(case, errors, bound, sigma=sub_gaussian_scale(case))

    def claims(self, further: tuple[Assumption[HeadCase], ...], data: Any) -> tuple[Claim, Claim]:
        """The claim as printed, with ``log L``, and repaired, with ``1 + log L``."""

        def made(start: float, words: str, **other: Any) -> Claim:
            return HEAD_CLAIMS.claim(
                f"sub-gaussian-{self.name}" + ("-repaired" if start else ""),
                f"sub-Gaussian tokens: the squared error of {self.what} is <= "
                f"{self.form.format(words)}",
                statement=f"concentration of {self.what}"
                + (", with one token as well" if start else ""),
                assuming=(*_ASSUMING, *further, narrow_scores(self.error, self.what)),
                contrast=Comparison(
                    f"largest squared error of {self.what} over the bound, up to 1e12 tokens",
                    self.largest_ratio,
                    lambda case, seed: self.proven(case, start),
                    f"the same over a hundredth of the bound with sigma^{self.growth} in place of "
                    f"sigma^{self.power}",
                    lambda case, seed: self.hundredth(case, start),
                    bound=1 + _ROUNDING,
                    reason="the bound itself",
                ),
                exchange="a bound with the constants of a proof, of which twice is one as well",
                **other,
            )

        printed = made(
            0.0,
            "log L",
            data=lambda seed: [signs_without_scores(), *map(from_two, data())],
            holding=lambda: from_two(data()[0]),
            note="printed for every length, and of one token the bound is zero while the error is "
            "not; it holds from two tokens on. " + _NOTE,
        )
        repaired = made(
            1.0, "(1 + log L)", data=lambda seed: [*data(), signs_without_scores()], note=_NOTE
        )
        return printed, repaired


OUTPUT_OF_SUB_GAUSSIAN, OUTPUT_OF_SUB_GAUSSIAN_REPAIRED = _Concentrating(
    "output-concentration",
    "the output",
    "c1 sigma^6 {} / L^(c2/sigma^2)",
    "output",
    6,
    2,
    1,
).claims((), lambda: [*cases(), *cases_in_space()])
VALUE_GRADIENT_OF_SUB_GAUSSIAN, VALUE_GRADIENT_OF_SUB_GAUSSIAN_REPAIRED = _Concentrating(
    "value-gradient-concentration",
    "the gradient in V",
    "c1 sigma^6 {} / L^(c2/sigma^2)",
    "value_gradient",
    6,
    2,
    1,
).claims((), lambda: [*cases(), *cases_in_space()])
SCORE_GRADIENT_OF_SUB_GAUSSIAN, SCORE_GRADIENT_OF_SUB_GAUSSIAN_REPAIRED = _Concentrating(
    "score-gradient-concentration",
    "the gradient in U",
    "c1 sigma^12 {}^2 / L^(c2/sigma^2)",
    "score_gradient",
    12,
    4,
    2,
).claims((_TOKENS_ON_LINE,), lambda: list(cases()))
