"""The record of training a linear decoder, in labeled arrays."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int, Real

from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.results import (
    RecordedRun,
    Rows,
    StoredRun,
    axis_of,
    check_records,
    reading_run,
    save_run,
)
from attractor.training.loop import Records
from attractor.training.stored.trajectory_check import TRIAL
from attractor.training.trajectory import trajectory_data

if TYPE_CHECKING:
    import xarray as xr


_KIND = "linear trajectory"
CONTEXT_ARRAYS = ("embeddings", "probabilities", "frequencies", "instance_numbers")
_BY_RECORD = ("loss", "excess_loss", "log_excess_loss", "norm")

_DESCRIPTIONS = {
    "loss": "cross-entropy",
    "excess_loss": "cross-entropy less the entropy of the contexts",
    "log_excess_loss": "logarithm of the cross-entropy less the entropy of the contexts",
    "W": "decoder",
}


@dataclass(frozen=True, eq=False, repr=False)
class LinearTrajectory(RecordedRun):
    """The record of training a linear decoder, trial by trial.

    A trial is an (instance, seed) pair; both axes are always there, of length one if need be.

    Attributes:
        data: Labeled arrays over instance, seed, step, row and column: ``loss``; ``excess_loss``,
            which is ``CE - H`` computed without subtracting, and its logarithm
            ``log_excess_loss``, exact where the excess itself is too small for a number; ``norm``
            in the geometry descended; ``log_gradient_norm``; ``log_time``, the logarithm of the
            equivalent raw time, NaN where there is none; ``W``, with a step axis if all were
            kept; ``status`` and ``steps_taken``. Of a regularization path ``radius`` takes the
            place of step.
        contexts: The data trained on.
        optimizer_name: The optimizer.
        geometry: Name of the norm of steepest descent, or "not known".
        settings: Every other argument.
    """

    data: xr.Dataset
    contexts: EmbeddedContexts
    optimizer_name: str
    geometry: str
    settings: dict[str, Any]

    @property
    def weights_kept(self) -> str:
        """``"all"`` if the decoders of every recorded step are here, ``"last"`` if not."""
        return self._kept("W")

    def W(self, step: float | None = None) -> Float[np.ndarray, "instance seed V d"]:
        """The decoders at a recorded step.

        Args:
            step: The step, or radius; None for the last.

        Raises:
            InvalidInputError: If the step was not recorded, or its decoders were not kept.
        """
        remedy = 'Train by train_linear(..., weights="all"), or with fewer recorded steps'
        return self._at("W", step, "decoders", remedy)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to one NetCDF file, which appears whole or not at all."""
        save_run(path, _KIND, self.stored())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LinearTrajectory:
        """Reads a file that ``save`` wrote.

        Raises:
            FileFormatError: If the file is not a whole trajectory of a linear decoder.
        """
        with reading_run(path, _KIND, ("contexts",)) as stored:
            return cls.of(stored)

    def stored(self) -> StoredRun:
        """The content of its file."""
        texts = {"optimizer": self.optimizer_name, "geometry": self.geometry}
        arrays = {name: getattr(self.contexts, name) for name in CONTEXT_ARRAYS}
        return StoredRun(self.data, texts, self.settings, {"contexts": arrays})

    @classmethod
    def of(cls, stored: StoredRun) -> LinearTrajectory:
        """Builds a trajectory from the content of a file, checked.

        Raises:
            InvalidInputError: If an array cannot be used.
            ValueError: If anything does not fit.
        """
        contexts = EmbeddedContexts.from_arrays(stored.arrays["contexts"])
        record, decoder = (*TRIAL, axis_of(stored.data)), ("row", "column")
        check_records(
            stored.data,
            numbered=record,
            arrays={
                **dict.fromkeys(_BY_RECORD, record),
                **dict.fromkeys(("status", "steps_taken"), TRIAL),
                "W": [(*TRIAL, *decoder), (*record, *decoder)],
            },
            sizes={
                "instance": len(contexts.instance_numbers),
                "row": contexts.classes,
                "column": contexts.dimension,
            },
        )
        texts = stored.texts
        return cls(stored.data, contexts, texts["optimizer"], texts["geometry"], stored.settings)

    def _summary(self) -> tuple[str, Rows]:
        last = self.data.isel({self.axis: -1})
        return "Linear trajectory", [
            ("trials", self._trials()),
            ("contexts", repr(self.contexts)),
            ("optimizer", self._optimizer(self.optimizer_name)),
            ("geometry", self.geometry),
            self._last_record(),
            self._kept_row("W", "decoders"),
            self._loss_row(),
            ("loss above the entropy, median", f"{float(last['excess_loss'].median()):.4g}"),
            ("norm, median", f"{float(last['norm'].median()):.4g}"),
        ]


def linear_data(
    records: Records,
    instance_numbers: Int[np.ndarray, "instance"],
    seeds: Int[np.ndarray, "seed"],
    values: Real[np.ndarray, "records"],
    axis: str = "step",
    last_only: frozenset[str] = frozenset(),
) -> xr.Dataset:
    """Labels the measurements; see ``trajectory_data``."""
    return trajectory_data(
        records, instance_numbers, seeds, values, axis, last_only, descriptions=_DESCRIPTIONS
    )
