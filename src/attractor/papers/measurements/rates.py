"""How fast loss, norm and direction go where they go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from attractor.analysis import verify
from attractor.attention import get_parameterization
from attractor.files.case import Case
from attractor.papers.measurements.directions import step_length, trained

DECADE = float(np.log(10))
_NOTHING = 1e-12


@dataclass(frozen=True)
class Curves:
    """What a run from zero is measured by, held against the tokens that it reached.

    Attributes:
        data: Along the recorded steps, as ``verify`` measures them; ``log_time`` in the units of
            keys and queries of ordinary size, as steps of ``step_length`` are.
        solution_norm: Norm of the margin solution of those tokens.
        settled: 1 if they are locally optimal, else 0: rates are claimed of nothing else.
    """

    data: xr.Dataset
    solution_norm: float
    settled: int

    def along(self, name: str) -> np.ndarray:
        """A measure at all records; ``"angle"`` is that with the margin solution."""
        if name == "angle":  # to 1e-15, where 1 - cos is not
            return np.sqrt(2 * self.data["directional_bregman_divergence"].to_numpy())
        return self.data[name].to_numpy().astype(float)

    def slope(self, name: str, against: str, *, before_end: float) -> float:
        """Mean slope of a measure against another, over at least the last of the latter.

        Args:
            name: The measure.
            against: The other.
            before_end: By how much the earlier of two records is to lie before the last.
        """
        return _slope(self.along(name), self.along(against), before_end)

    def exponent(self, name: str, against: str) -> float:
        """Slope between the logarithms, since the other measure was half of what it is at the end.

        Minus infinity where the measure is zero, up to rounding.
        """
        if self.along(name)[-1] < _NOTHING:
            return -np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            values, places = np.log(self.along(name)), np.log(self.along(against))
        return _slope(values, places, np.log(2))


def curves(case: Case, seed: int, **settings: Any) -> Curves:
    """Trains from zero, unless the case has a start, and measures the run.

    Args:
        case: The data.
        seed: Named in the run.
        **settings: Arguments of ``trained``.
    """
    tokens = case.tokens
    shapes = get_parameterization(case.parameterization).shapes(
        tokens.key_dimension, tokens.query_dimension
    )
    run = trained(
        case, seed, initial={name: np.zeros(shape) for name, shape in shapes.items()}, **settings
    )

    def measure() -> Curves:
        verdict = verify(run)
        data = verdict.data.isel(instance=0, seed=0)
        data["log_time"] = data["log_time"] + 2 * np.log(0.1 / step_length(case))
        norm = float(np.ravel(verdict.data["solution_norm"])[0])
        settled = bool(np.ravel(verdict.data["locally_optimal"])[0]) and norm > 0
        return Curves(data, norm, int(settled))

    return case.once(("curves", id(run)), measure)


def _slope(values: np.ndarray, places: np.ndarray, before_end: float) -> float:
    early = np.flatnonzero(places <= places[-1] - before_end)
    if not early.size or not np.isfinite(places[-1]):
        return np.nan
    return float((values[-1] - values[early[-1]]) / (places[-1] - places[early[-1]]))
