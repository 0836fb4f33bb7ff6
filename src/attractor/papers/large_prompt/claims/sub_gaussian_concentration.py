"""Concentration over finite prompts of sub-Gaussian tokens, with the constants of a proof."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.papers.claim import Claim, Comparison, Measurement
from attractor.papers.large_prompt.claims import HEAD_CLAIMS
from attractor.papers.large_prompt.claims.concentration import error_over_bound, from_two
from attractor.papers.large_prompt.finite_prompts import LENGTHS
from attractor.papers.large_prompt.head_hypotheses import CENTERED_QUERIES, CENTERED_TOKENS
from attractor.papers.large_prompt.sub_gaussian import (
    FEW_QUERIES,
    SUB_GAUSSIAN_TOKENS,
    UNIT_SUB_GAUSSIAN_QUERIES,
    average_error,
    bounds,
    cases,
    cases_in_space,
    narrow_scores,
    scale,
    signs_without_scores,
)
from attractor.papers.ledger.claim import Assumption, Check
from attractor.prompts.files.head import HeadCase
from attractor.prompts.finite_length import BoundShape
from attractor.prompts.finite_length.bounds import Error

_ROUNDING = 1e-9
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
        return c1 * shape(scale(case), LENGTHS, c2)

    def hundredth(self, case: HeadCase, start: float) -> Float[np.ndarray, "length"]:
        """A hundredth of it that grows no faster with ``sigma`` than the error."""
        return self.proven(case, start) / (100 * scale(case) ** (self.power - self.growth))

    def largest_ratio(
        self, case: HeadCase, seed: int, bound: Float[np.ndarray, "length"]
    ) -> Measurement:
        """The largest error over its bound, at the lengths that the case speaks of."""
        errors = average_error(case, self.error)
        if self.error == "value_gradient":
            errors = errors / case.V.shape[0]  # of each row of V
        return error_over_bound(case, errors, bound, sigma=scale(case))

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
