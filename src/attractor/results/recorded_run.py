"""``RecordedRun``: the records of a run, along any axis."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Real

from attractor.results.printed import Summary
from attractor.support.checks import as_number, shown
from attractor.support.errors import InvalidInputError, TrialStatus

if TYPE_CHECKING:
    import xarray as xr

AXES = ("step", "radius", "time", "logarithmic_time", "epoch")
"""Steps of training, radii of a regularization path, time of a flow and its logarithm, epochs."""


class RecordedRun(Summary):
    """The records of a run, trial by trial.

    Attributes:
        data: Labeled arrays over the axes of trials and that of the records; ``status`` is
            the ``TrialStatus`` of each.
        settings: The settings of the run.
    """

    data: xr.Dataset
    settings: dict[str, Any]

    @property
    def axis(self) -> str:
        """The axis of the records: one of ``attractor.results.AXES``."""
        return axis_of(self.data)

    @property
    def steps(self) -> Real[np.ndarray, "records"]:
        """The recorded steps, or radii, times, logarithms of times, epochs."""
        return self.data[self.axis].to_numpy()

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to one NetCDF file, which appears whole or not at all.

        Raises:
            InvalidInputError: If the path cannot be written.
        """

    @classmethod
    @abstractmethod
    def load(cls, path: str | os.PathLike[str]) -> RecordedRun:
        """Reads a file that ``save`` wrote; nothing in it is run.

        Raises:
            FileFormatError: If it is none, or not whole.
        """

    def to_xarray(self) -> xr.Dataset:
        """The labeled arrays."""
        return self.data

    def _record_number(self, step: float | None) -> int:
        """The place of a recorded step among the records.

        Args:
            step: The step, radius, time, ...; None for the last.

        Raises:
            InvalidInputError: If it was not recorded.
        """
        steps = self.steps
        if step is None:
            return len(steps) - 1
        number = as_number(step)  # which may be the logarithm of zero
        if math.isnan(number):
            raise InvalidInputError("step", f"{shown(step)} is not a number", "Give one recorded")
        found = np.flatnonzero(steps == number)
        if found.size:
            return int(found[0])
        nearest = steps[np.abs(steps - number).argmin()]
        raise InvalidInputError(
            "step",
            f"{self.axis} {step} was not recorded",
            f"The nearest one recorded is {nearest}",
        )

    def _at(self, name: str, step: float | None, what: str, remedy: str) -> Real[np.ndarray, "..."]:
        """An array at a recorded step, of which only the last may have been kept."""
        number, array = self._record_number(step), self.data[name]
        if self.axis in array.dims:
            return array.isel({self.axis: number}).to_numpy()
        if number == len(self.steps) - 1:
            return array.to_numpy()
        raise InvalidInputError(
            "step", f"the {what} of {self.axis} {step} were not kept, to save memory", remedy
        )

    def _kept(self, name: str) -> str:
        """``"all"`` if an array of every recorded step is here, ``"last"`` if not."""
        return "all" if self.axis in self.data[name].dims else "last"

    def _trials(self) -> str:
        """Number of trials, and of those with each status, in words."""
        status, sizes = self.data["status"], self.data.sizes
        crossed = ""
        if len(status.dims) > 1:
            crossed = f" ({' x '.join(f'{sizes[axis]} {axis}s' for axis in status.dims)})"
        found = status.to_numpy()
        counts = [f"{int((found == s).sum())} {s}" for s in TrialStatus if (found == s).any()]
        return f"{status.size}{crossed}: {', '.join(counts)}"

    def _last_record(self) -> tuple[str, str]:
        """A row with the last value of the axis and the number of records."""
        return f"last {self.axis}", f"{self.steps[-1]:g}, {len(self.steps)} recorded"

    def _kept_row(self, name: str, what: str) -> tuple[str, str]:
        """A row that says at which records an array was kept."""
        if self._kept(name) == "all":
            return f"{what} kept", f"at every recorded {self.axis.replace('_', ' ')}"
        return f"{what} kept", "at the last record only; those of earlier ones cannot be had"

    def _loss_row(self) -> tuple[str, str]:
        """A row with the median loss at the first and at the last record."""
        first, last = (float(self.data["loss"].isel({self.axis: k}).median()) for k in (0, -1))
        return "loss, median", f"{first:.4g} -> {last:.4g}"

    def _optimizer(self, name: str) -> str:
        """An optimizer with its settings, in words."""
        settings = ", ".join(f"{k}={v}" for k, v in self.settings.get("optimizer", {}).items())
        return f"{name} ({settings})" if settings else name


def axis_of(data: xr.Dataset | xr.DataArray, argument: str = "data") -> str:
    """The axis that records run along.

    Args:
        data: The records.
        argument: The name to use in the error.

    Raises:
        InvalidInputError: If they run along none, or along several.
    """
    found = [axis for axis in AXES if axis in data.dims]
    if len(found) == 1:
        return found[0]
    known = f"{', '.join(AXES[:-1])} or {AXES[-1]}"
    along = f"{' and '.join(found)}" if found else "nothing"
    raise InvalidInputError(argument, f"they run along {along}", f"Give curves over a {known}")
