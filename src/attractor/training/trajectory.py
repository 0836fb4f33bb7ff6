"""Trajectory: what training did, in labeled arrays."""

from __future__ import annotations

import html
import io
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int, Real
from rich.console import Console
from rich.table import Table

from attractor.attention import Head
from attractor.checks import check_number, check_path
from attractor.errors import InvalidInputError, TrialStatus
from attractor.tokens import Tokens
from attractor.training.loop import Records

_TRIAL = ("instance", "seed")
AXES = ("step", "radius", "time", "logarithmic_time")
"""What records may run along."""
_DIMENSIONS = {
    "loss": (),
    "norm": (),
    "log_gradient_norm": (),
    "log_time": (),
    "conserved_drift": (),
    "attended": ("sequence", "query"),
    "attended_probability": ("sequence", "query"),
    "W": ("row", "column"),
    "K": ("row", "width"),
    "Q": ("column", "width"),
    "p": ("row",),
}
_DESCRIPTIONS = {
    "loss": "training loss",
    "norm": "norm of W in the geometry descended",
    "log_gradient_norm": "logarithm of the Euclidean norm of the gradient",
    "log_time": "logarithm of the time the algorithm would have taken unnormalized",
    "conserved_drift": "change of what gradient flow conserves, relative to its scale",
    "attended": "token with the highest attention weight",
    "attended_probability": "attention weight of that token",
    "W": "attention matrix",
    "K": "key matrix",
    "Q": "query matrix",
    "p": "prompt vector",
    "status": "how the trial ended",
    "steps_taken": "steps that changed the trial before it ended or froze",
}
RECORDED = frozenset({*_DESCRIPTIONS, "instance", "seed", *AXES})
"""Names that the data of a trajectory may have by itself."""


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """What training did, trial by trial.

    A trial is an (instance, seed) pair; both axes are always there, of length one if need be.

    Attributes:
        data: Labeled arrays over instance, seed, step, sequence, query, row and column: ``loss``,
            ``norm``, ``log_gradient_norm``, ``log_time``, ``attended``, ``attended_probability``,
            ``W`` (with a step axis if all were kept; likewise ``K`` and ``Q``, ``p``, and
            ``head_...``, where they were trained), ``status``, ``steps_taken``, and metrics of the
            user. ``log_time`` is the logarithm of the equivalent raw time: of what the step sizes
            of the same algorithm without normalization would add up to; NaN where it is none.
            Of paths and flows, ``radius``, ``time`` or ``logarithmic_time`` takes the place of
            step; flows have ``conserved_drift``, too.
        tokens: What was trained on.
        head: The head: fixed, or where its training started; None if a file could not keep it.
        optimizer_name: The optimizer.
        geometry: Name of the norm of ``W`` that training descended, or "not known".
        settings: Every other argument of ``train``.
    """

    data: xr.Dataset
    tokens: Tokens
    head: Head | None
    optimizer_name: str
    geometry: str
    settings: dict[str, Any]

    @property
    def axis(self) -> str:
        """What the records run along: ``"step"``, or ``"radius"`` or ``"time"`` of a path."""
        return next(axis for axis in AXES if axis in self.data.dims)

    @property
    def steps(self) -> Real[np.ndarray, "records"]:
        """The recorded steps, or radii or times."""
        return self.data[self.axis].to_numpy()

    @property
    def weights_kept(self) -> str:
        """``"all"`` if the matrices of every recorded step are here, ``"last"`` if not."""
        return "all" if self.axis in self.data["W"].dims else "last"

    def W(self, step: float = -1) -> Float[np.ndarray, "instance seed d e"]:
        """The attention matrices at a recorded step.

        Args:
            step: The step; -1 for the last.

        Raises:
            InvalidInputError: If the step was not recorded, or its matrices were not kept.
        """
        step = check_number("step", step)
        matrices = self.data["W"]
        if step in (-1, self.steps[-1]):
            kept = matrices.isel({self.axis: -1}, missing_dims="ignore")
            return kept.to_numpy()
        if step not in self.steps:
            nearest = self.steps[np.abs(self.steps - step).argmin()]
            raise InvalidInputError(
                "step",
                f"{self.axis} {step} was not recorded",
                f"The nearest one recorded is {nearest}",
            )
        if self.weights_kept == "last":
            raise InvalidInputError(
                "step",
                f"the matrices of {self.axis} {step} were not kept, to save memory",
                'Train by train(..., weights="all"), or with fewer recorded steps',
            )
        return matrices.sel({self.axis: step}).to_numpy()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to one NetCDF file, which appears whole or not at all."""
        path = check_path("path", path)
        from attractor.training.trajectory_file import save  # which imports this module

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], head: Any = None) -> Trajectory:
        """Reads a file that ``save`` wrote.

        Args:
            path: The file.
            head: The head it was trained with, where the file cannot tell: of an Equinox module,
                or a head of the user's own class, a file keeps the arrays but no code. Without it
                such a trajectory has None for a head.

        Raises:
            FileFormatError: If the file is not a whole trajectory.
            InvalidInputError: If the head is not the one in the file.
        """
        path = check_path("path", path)
        from attractor.training.trajectory_file import load  # which imports this module

        return load(path, head)

    def to_xarray(self) -> xr.Dataset:
        """The labeled arrays."""
        return self.data

    def __str__(self) -> str:
        table = Table(title="Trajectory", show_header=False)
        for label, value in self._summary():
            table.add_row(label, value)
        text = io.StringIO()
        Console(file=text, width=100).print(table)
        return text.getvalue().rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th>{html.escape(label)}</th><td>{html.escape(value)}</td></tr>"
            for label, value in self._summary()
        )
        return f"<table><caption>Trajectory</caption>{cells}</table>"

    def _summary(self) -> list[tuple[str, str]]:
        data = self.data
        first, last = data.isel({self.axis: 0}), data.isel({self.axis: -1})
        hyper = ", ".join(f"{k}={v}" for k, v in self.settings.get("optimizer", {}).items())
        status = data["status"].to_numpy()
        counts = [f"{int((status == s).sum())} {s}" for s in TrialStatus if (status == s).any()]
        sizes = data.sizes
        kept = "at the last step only; those of earlier steps cannot be had"
        if self.weights_kept == "all":
            kept = "at every recorded step"
        trials = f"{sizes['instance']} instances x {sizes['seed']} seeds"
        return [
            ("trials", f"{status.size} ({trials}): {', '.join(counts)}"),
            ("optimizer", f"{self.optimizer_name} ({hyper})" if hyper else self.optimizer_name),
            ("geometry", self.geometry),
            (f"last {self.axis}", f"{self.steps[-1]:g}, {len(self.steps)} recorded"),
            ("matrices kept", kept),
            ("loss, median", f"{float(first['loss'].median()):.4g} -> "
             f"{float(last['loss'].median()):.4g}"),
            ("norm, median", f"{float(last['norm'].median()):.4g}"),
            ("highest weight, mean", f"{float(last['attended_probability'].mean()):.6f}"),
        ]  # fmt: skip


def trajectory_data(
    records: Records,
    instance_numbers: Int[np.ndarray, "instance"],
    seeds: Int[np.ndarray, "seed"],
    values: Real[np.ndarray, "records"],
    axis: str = "step",
    last_only: frozenset[str] = frozenset(),
) -> xr.Dataset:
    """Labels what was measured.

    Args:
        records: Measurements over (trial, record, ...).
        instance_numbers: Numbers of the instances.
        seeds: The seeds.
        values: Where the records were taken.
        axis: What these values are: ``"step"``, ``"radius"`` or ``"time"``.
        last_only: Names of measurements of the last record alone.
    """
    trials = (len(instance_numbers), len(seeds))
    variables: dict[str, Any] = {}
    for name, array in records.series.items():
        along = () if name in last_only else (axis,)
        unnamed = tuple(f"{name}_{place}" for place in range(array.ndim - 1 - len(along)))
        own = _DIMENSIONS.get(name, unnamed)
        variables[name] = ((*_TRIAL, *along, *own), array.reshape(*trials, *array.shape[1:]))
    variables["status"] = (_TRIAL, records.status.reshape(trials))
    variables["steps_taken"] = (_TRIAL, records.steps_taken.reshape(trials))
    data = xr.Dataset(variables, {"instance": instance_numbers, "seed": seeds, axis: values})
    for name, description in _DESCRIPTIONS.items():
        if name in data:
            data[name].attrs["description"] = description
    return data
