"""Runs of a matrix that are done, kept in a folder, so that one that was ended goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attractor.maps.bias.result import BiasMatrix
from attractor.results import load_data, save_data
from attractor.training.own.method import Method

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from attractor.training import Trajectory

_KIND = "run of a bias matrix"
_MEASURED = ["W", "norm", "loss", "log_gradient_norm", "status"]


class FinishedRun(NamedTuple):
    """What a matrix takes of a run.

    Attributes:
        data: Labeled arrays, as in ``Trajectory``.
        steps: The steps recorded.
    """

    data: xr.Dataset
    steps: np.ndarray


@dataclass
class FinishedRuns:
    """The runs that are done, a file each; of none where there is no folder.

    Attributes:
        folder: Where they are kept; None keeps nothing.
        runs: Those of this call with their rows, in the order in which they were done.
        measure: Makes a matrix of rows and their runs.
    """

    folder: Path | None = None
    runs: list[tuple[Method, FinishedRun]] = field(default_factory=list)
    measure: Callable[[list[Method], list[FinishedRun]], BiasMatrix] | None = None

    def run(self, method: Method, steps: int, train: Callable[[], Trajectory]) -> FinishedRun:
        """The run of a row: from its file, or trained now and kept.

        Args:
            method: The row.
            steps: Its number of steps.
            train: Trains it.

        Raises:
            FileFormatError: If its file is damaged.
            WriteError: If it cannot be written.
        """
        file = None if self.folder is None else self.folder / f"{_digest(method, steps)}.nc"
        if file is not None and file.exists():
            data = load_data(file, _KIND)
        else:
            data = train().data[_MEASURED]
            if file is not None:
                save_data(data, file, _KIND)
        run = FinishedRun(data, data["step"].to_numpy())
        self.runs.append((method, run))
        return run

    def matrix(self) -> BiasMatrix | None:
        """The matrix of the rows that are done; None where there are none."""
        by_name = {method.name: (method, run) for method, run in self.runs}
        if not by_name or self.measure is None:
            return None
        return self.measure(*map(list, zip(*by_name.values(), strict=True)))


def _digest(method: Method, steps: int) -> str:
    """Names a row by all that tells it from the others of one command."""
    told = (
        method.name, method.layer.name, method.settings, method.step_size, method.decay, steps,
    )  # fmt: skip
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]
