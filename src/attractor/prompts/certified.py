"""What the certificate of a margin problem proves about attention at every scale of the weights."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attractor.margin.certificates.certificate import proven_margins
from attractor.margin.solution import Solution
from attractor.prompts.concentration import RowConcentration, as_broadcasting, of_gaps
from attractor.results import Rows, Summary
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import ArrayLike

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
        import xarray as xr

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
