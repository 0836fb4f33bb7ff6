"""How concentrated attention is: a row of scores, and every row by a certified margin.

Of a row alone: let ``g_l = max s - s_l`` be the gaps of the scores of one query, and ``N(t)`` the
number of tokens whose gap is at most ``t``. The *rate* of the row is

    Lambda = sup_{t > 0} log N(t) / t,

so that the ``k``-th smallest gap is at least ``log(k) / Lambda``. Two bounds on attention follow,
whatever law the scores are of (after *A Unified Framework for Critical Scaling of Inverse
Temperature in Self-Attention*, arXiv 2605.12697, where the rate is the critical scale):

* Above it, for ``beta = r Lambda`` with ``r > 1``, summing by parts gives
  ``1 / p_top = sum_l exp(-beta g_l) = int_0^inf beta exp(-beta t) N(t) dt <= r / (r - 1)``.
  That is not sharp: summing the least gaps gives ``1 / p_top <= sum_{k <= T} k^-r``, for every
  ``r >= 0``, with equality for ``g_k = log(k) / Lambda``.
* Below it, the tokens up to the gap ``t`` where the supremum is attained, ``k = exp(Lambda t)`` of
  them, give ``1 / p_top >= k exp(-beta t) = k^(1 - r)``.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from attractor.margin.certificates.certificate import proven_margins
from attractor.margin.solution import Solution
from attractor.results import Rows, Summary
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_plain, check_broadcast

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import ArrayLike


_LARGEST = 1e300
"""Scores whose gaps are finite."""
_LARGEST_RATIO = 1e3
"""A ratio to the rate beyond which the second token has nothing left."""
_SUMMED = 32
"""Terms of a sum that are added one by one."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RowConcentration(Summary):
    """The inverse temperatures at which rows of attention scores are concentrated.

    Attributes:
        rate: ``Lambda``; zero for a token alone, infinite where a second one ties with the top.
        gap: The gap where the supremum is attained, the largest of several; infinite for a token
            alone.
        count: The tokens up to that gap, ``N(gap)``.
        tokens: The tokens of the row.
    """

    rate: Float[np.ndarray, "*rows"]
    gap: Float[np.ndarray, "*rows"]
    count: Int[np.ndarray, "*rows"]
    tokens: Int[np.ndarray, "*rows"]

    def bound(self, inverse_temperature: ArrayLike | Any = 1.0) -> Float[np.ndarray, "*rows"]:
        """``r / (r - 1)``, which one over the top probability does not exceed.

        It is infinite for ``r <= 1``, where nothing is known from above; see
        ``top_probability_ceiling`` for what is known there. A token alone has the bound 1.

        Args:
            inverse_temperature: ``beta = r Lambda >= 0``, by which scores are multiplied before
                softmax; broadcasts against the rows.

        Raises:
            InvalidInputError: If it is negative or not finite, or its shape does not fit.
        """
        beta = as_broadcasting("inverse_temperature", inverse_temperature, self.rate.shape)
        above = beta > self.rate
        found = np.where(above, beta, np.inf) / np.where(above, beta - self.rate, 1)
        return np.where(self.rate == 0, 1.0, found)

    def sharp_bound(self, inverse_temperature: ArrayLike | Any = 1.0) -> Float[np.ndarray, "*rows"]:
        """``sum_{k <= T} k^-r``, which one over the top probability does not exceed at any ``r``.

        No smaller bound follows from the rate and the number of tokens alone.

        Arguments and errors are those of ``bound``.
        """
        return _partial_zeta(self._ratio(inverse_temperature), self.tokens)

    def top_probability_bound(
        self, inverse_temperature: ArrayLike | Any = 1.0
    ) -> Float[np.ndarray, "*rows"]:
        """One over ``sharp_bound``, which the top probability is at least: above ``1 - 1 / r``.

        Arguments and errors are those of ``bound``.
        """
        return 1 / self.sharp_bound(inverse_temperature)

    def top_probability_ceiling(
        self, inverse_temperature: ArrayLike | Any = 1.0
    ) -> Float[np.ndarray, "*rows"]:
        """``count^(r - 1)``, which the top probability is at most; one for ``r >= 1``.

        Arguments and errors are those of ``bound``.
        """
        below = np.minimum(self._ratio(inverse_temperature), 1)
        return np.exp((below - 1) * np.log(self.count))

    def inverse_temperature_for(self, probability: ArrayLike | Any) -> Float[np.ndarray, "*rows"]:
        """``Lambda / (1 - p)``: from there on the top token has at least a probability ``p``.

        It is infinite where tokens tie.

        Args:
            probability: ``p`` in [0, 1); broadcasts against the rows.

        Raises:
            InvalidInputError: If it is outside, or its shape does not fit.
        """
        p = as_broadcasting("probability", probability, self.rate.shape)
        if not (p < 1).all():
            raise InvalidInputError(
                "probability", f"{p.max():.6g} is not below 1", "Give 0.5 for half of all attention"
            )
        return self.rate / (1 - p)

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays; axes of rows are ``row``, or ``row_0``, ``row_1``, ..."""
        axes = self.rate.ndim
        names = ("row",) if axes == 1 else tuple(f"row_{axis}" for axis in range(axes))
        fields = (field.name for field in dataclasses.fields(self))
        return xr.Dataset({name: (names, getattr(self, name)) for name in fields})

    def _ratio(self, inverse_temperature: Any) -> Float[np.ndarray, "*rows"]:
        """``r``, as far as it makes a difference; that of a token alone does not."""
        beta = as_broadcasting("inverse_temperature", inverse_temperature, self.rate.shape)
        some = self.rate > 0
        with np.errstate(over="ignore"):
            return np.where(
                some, np.minimum(beta / np.where(some, self.rate, 1), _LARGEST_RATIO), 1
            )

    def _summary(self) -> tuple[str, Rows]:
        rates, tied = self.rate.ravel(), int(np.isinf(self.rate).sum())
        if not rates.size:
            return "Concentration of no rows of scores", []
        fewest, most = int(self.tokens.min()), int(self.tokens.max())
        of = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
        rows = [("tokens", of), ("rate", _spread(rates))]
        if tied:
            rows.append(("tied at the top", f"{tied:,}, which never concentrate on one token"))
        half = self.inverse_temperature_for(0.5).ravel()
        rows.append(("half on the top token from", f"inverse temperature {_spread(half)}"))
        words = "a row" if rates.size == 1 else f"{rates.size:,} rows"
        return f"Concentration of {words} of scores", rows


def row_concentration(
    scores: Float[ArrayLike, "*rows token"] | Any,
    mask: Bool[ArrayLike, "*#rows token"] | Any | None = None,
) -> RowConcentration:
    """Finds the rate of rows of attention scores, with the bounds on attention that follow.

    Args:
        scores: Scores of tokens, a row for each query; at inverse temperature 1 attention is their
            softmax. Entries in masked places are never used.
        mask: True where there is a token; broadcasts to the shape of the scores.

    Raises:
        InvalidInputError: If scores in use are not finite or beyond 1e300, the mask does not fit,
            or a row has no token.
    """
    s = as_float64("scores", scores, finite=mask is None)
    if not s.ndim or not s.shape[-1]:
        raise InvalidInputError("scores", f"the shape is {s.shape}", "Give (..., tokens)")
    present = np.ones(s.shape, dtype=bool) if mask is None else _fitting(mask, s.shape)
    s = as_float64("scores", np.where(present, s, 0.0), largest=_LARGEST)
    if not present.any(-1).all():
        raise InvalidInputError("mask", "a row has no token", "Leave such rows out")
    top = np.where(present, s, -np.inf).max(-1, keepdims=True)
    return of_gaps(np.where(present, top - s, np.inf))


def _fitting(mask: Any, shape: tuple[int, ...]) -> Bool[np.ndarray, "*rows token"]:
    array = as_plain("mask", mask)
    if array.dtype != bool:
        raise InvalidInputError("mask", f"the data type is {array.dtype}", "Give booleans")
    check_broadcast("mask", array.shape, shape)
    whole = np.broadcast_shapes(array.shape, shape) == shape
    if not whole or array.shape[-1:] != shape[-1:]:
        raise InvalidInputError("mask", f"the shape is {array.shape}", f"Give {shape}")
    return np.broadcast_to(array, shape)


def of_gaps(gaps: Float[np.ndarray, "*rows token"]) -> RowConcentration:
    """The concentration of rows of gaps; the smallest of each is zero, infinite is no token."""
    ordered = np.sort(gaps, axis=-1)
    logarithms = np.log(np.arange(1, gaps.shape[-1] + 1))
    ratios = np.full(gaps.shape, np.inf)
    with np.errstate(over="ignore"):  # of gaps that are as good as ties
        np.divide(logarithms, ordered, out=ratios, where=ordered > 0)
    ratios[..., 0] = 0
    # The last of equal ratios: of tied tokens the one that counts them all.
    place = gaps.shape[-1] - 1 - ratios[..., ::-1].argmax(-1)
    rate = np.take_along_axis(ratios, place[..., None], -1)[..., 0]
    gap = np.take_along_axis(ordered, place[..., None], -1)[..., 0]
    alone = rate == 0
    return RowConcentration(
        rate, np.where(alone, np.inf, gap), np.where(alone, 1, place + 1), np.isfinite(gaps).sum(-1)
    )


def _partial_zeta(
    r: Float[np.ndarray, "..."], terms: Int[np.ndarray, "..."]
) -> Float[np.ndarray, "..."]:
    """``sum_{k <= T} k^-r``, beyond the first terms by the formula of Euler and Maclaurin."""
    k = np.arange(1.0, _SUMMED + 1)
    first = np.where(k <= terms[..., None], k ** -r[..., None], 0).sum(-1)
    m, end = float(_SUMMED), np.maximum(terms, float(_SUMMED))
    width = np.log(end / m)
    slope = (1 - r) * width
    steep = np.where(slope == 0, 1.0, slope)
    integral = m ** (1 - r) * width * np.where(slope == 0, 1.0, np.expm1(steep) / steep)
    rest = integral + (end**-r - m**-r) / 2
    rising = r
    for order, coefficient in ((1, 1 / 12), (3, -1 / 720), (5, 1 / 30240)):
        rest = rest + coefficient * rising * (m ** (-r - order) - end ** (-r - order))
        rising = rising * (r + order) * (r + order + 1)
    return first + rest


def as_broadcasting(argument: str, value: Any, rows: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Returns numbers of zero and more that broadcast against rows of a shape.

    Raises:
        InvalidInputError: If one is negative or not finite, or they do not broadcast.
    """
    numbers = as_float64(argument, value)
    check_broadcast(argument, numbers.shape, rows)
    if (numbers < 0).any():
        raise InvalidInputError(
            argument, f"{numbers.min():.6g} is negative", "Give numbers of 0 and more"
        )
    return numbers


def _spread(values: Float[np.ndarray, "row"]) -> str:
    if values.size == 1:
        return f"{values[0]:.4g}"
    ordered = np.sort(values)  # quantiles by position: differences of infinities are not numbers
    return f"{ordered[0]:.4g} to {ordered[-1]:.4g}, median {ordered[values.size // 2]:.4g}"


_BISECTIONS = 60


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CertifiedConcentration(Summary):
    """Proven bounds on the attention of every row to its selected token, along a direction.

    The weights are ``c W / ||W||``, for the matrix ``W`` of a margin problem and any norm ``c``:
    scores are then those of ``W`` at the inverse temperature ``c / ||W||``.

    Attributes:
        norm: ``||W||``, in the norm of the problem.
        gaps: Proven lower bounds on the gaps of the scores under ``W`` below the selected token,
            which has zero, as have those tied with it; infinite where there is no token.
    """

    norm: float
    gaps: Float[np.ndarray, "sequence query token"]

    @cached_property
    def rows(self) -> RowConcentration:
        """The concentration of every row under ``W``, with rates that are upper bounds."""
        return of_gaps(self.gaps)

    def top_probability_bound(self, norm: ArrayLike | Any) -> Float[np.ndarray, "sequence query"]:
        """The least probability that the selected token of each row can have.

        It is ``1 / sum_l exp(-c g_l / ||W||)``; with all gaps at the margin 1,
        ``1 / (1 + (T - 1) exp(-c / ||W||))``.

        Args:
            norm: ``c``, the norm of the weights, at least 0; broadcasts against the rows.

        Raises:
            InvalidInputError: If it is negative or not finite, or does not fit the rows.
        """
        return self._at(as_broadcasting("norm", norm, self.gaps.shape[:-1]) / self.norm)

    def norm_for(self, probability: ArrayLike | Any) -> Float[np.ndarray, "sequence query"]:
        """The norm from which on the selected token of each row has a probability at least.

        It is the root of ``top_probability_bound``, below ``||W|| Lambda / (1 - p)``, and infinite
        where tokens tie with the selected one.

        Args:
            probability: ``p`` in [0, 1); broadcasts against the rows.

        Raises:
            InvalidInputError: If it is outside, or does not fit the rows.
        """
        probability = as_float64("probability", probability)
        enough = self.rows.inverse_temperature_for(probability)
        reached = np.isfinite(enough)
        low, high = np.zeros_like(enough), self.norm * np.where(reached, enough, 0)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            short = self._at(middle / self.norm) < probability  # the bound itself, to the last bit
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.where(reached, high, np.inf)

    def to_xarray(self) -> xr.Dataset:
        """Everything as labeled arrays."""
        rows = ("sequence", "query")
        data = {"norm": ((), self.norm), "gaps": ((*rows, "token"), self.gaps)}
        return xr.Dataset(data | {
            name: (rows, getattr(self.rows, name)) for name in ("rate", "gap", "count", "tokens")
        })  # fmt: skip

    def _at(self, beta: Float[np.ndarray, "..."]) -> Float[np.ndarray, "sequence query"]:
        """``1 / sum_l exp(-beta g_l)``."""
        present = np.isfinite(self.gaps)
        exponents = np.where(present, self.gaps, 0) * -beta[..., None]
        return 1 / np.where(present, np.exp(exponents), 0).sum(-1)

    def _summary(self) -> tuple[str, Rows]:
        rows = [
            ("norm of the direction", f"{self.norm:.6g}"),
            ("least gap", f"{self.gaps[self.gaps > 0].min():.6g}"),
            ("largest rate", f"{self.rows.rate.max():.4g}"),
        ]
        for p in (0.5, 0.9, 0.99):
            rows.append(
                (f"{100 * p:.3g} % in every row", f"from norm {self.norm_for(p).max():.4g}")
            )
        n, k = self.gaps.shape[:2]
        return f"Proven concentration of {n * k:,} rows", rows


def certified_concentration(solution: Solution) -> CertifiedConcentration:
    """Proves how concentrated attention is, from the solution of a margin problem.

    Every token that is not selected has a score at least the margin below the selected one, so
    that a row of ``T`` tokens has the rate ``log T`` over the margin at most; gaps that are
    proven larger make it smaller. Nothing is taken from the solver but the matrix itself.

    Args:
        solution: The solution for a selection of tokens, of one data set.

    Raises:
        InvalidInputError: If there are several instances, the problem does not come from a
            selection, or no matrix, or a zero one, or one whose margins are not proven to be
            positive, was found.
    """
    check_kinds(solution=(solution, Solution))
    problem = solution.problem
    if problem.instances is not None:
        raise InvalidInputError("solution", "it has several instances", "Give one: solution[0]")
    if problem.selection is None or problem.sequence is None:
        raise InvalidInputError(
            "solution",
            "its problem does not come from a selection of tokens",
            "Build the problem by MarginProblem.from_selection",
        )
    remedy = "Give a solution whose status is optimal, of a row with a choice at least"
    if not np.isfinite(solution.W).all() or not solution.norm > 0:
        raise InvalidInputError("solution", f"it has no matrix: {solution.status}", remedy)
    proven = proven_margins(problem.batched(), solution.W[None])[0]
    if not (proven[~problem.equality] > 0).all():
        raise InvalidInputError("solution", "its margins are not proven to be positive", remedy)
    mask = problem.selection.mask
    gaps = np.full(mask.shape, np.inf)
    gaps[(*np.indices(mask.shape[:2]), mask.argmax(-1))] = 0
    place = (problem.sequence, problem.query, problem.token)
    gaps[place] = np.where(problem.equality, 0.0, proven)
    return CertifiedConcentration(float(solution.norm), gaps)
