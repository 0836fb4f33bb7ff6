"""Trajectory: what training did, in labeled arrays."""

from __future__ import annotations

import html
import io
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from rich.console import Console
from rich.table import Table

from attractor.attention import Head
from attractor.errors import InvalidInputError, TrialStatus
from attractor.tokens import Tokens
from attractor.training.loop import Records

_TRIAL = ("instance", "seed")
_DIMENSIONS = {
    "loss": (),
    "norm": (),
    "log_gradient_norm": (),
    "attended": ("sequence", "query"),
    "attended_probability": ("sequence", "query"),
    "W": ("row", "column"),
}
_DESCRIPTIONS = {
    "loss": "training loss",
    "norm": "norm of W in the geometry descended",
    "log_gradient_norm": "logarithm of the Euclidean norm of the gradient",
    "attended": "token with the highest attention weight",
    "attended_probability": "attention weight of that token",
    "W": "attention matrix",
    "status": "how the trial ended",
    "steps_taken": "steps that changed the trial before it ended or froze",
}


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """What training did, trial by trial.

    A trial is an (instance, seed) pair; both axes are always there, of length one if need be.

    Attributes:
        data: Labeled arrays over instance, seed, step, sequence, query, row and column: ``loss``,
            ``norm``, ``log_gradient_norm``, ``attended``, ``attended_probability``, ``W`` (with a
            step axis if all were kept), ``status`` and ``steps_taken``.
        tokens: What was trained on.
        head: The fixed head.
        optimizer_name: The optimizer.
        geometry: Name of the norm of ``W`` that training descended, or "not known".
        settings: Every other argument of ``train``.
    """

    data: xr.Dataset
    tokens: Tokens
    head: Head
    optimizer_name: str
    geometry: str
    settings: dict[str, Any]

    @property
    def steps(self) -> Int[np.ndarray, "records"]:
        """The recorded steps."""
        return self.data["step"].to_numpy()

    @property
    def weights_kept(self) -> str:
        """``"all"`` if the matrices of every recorded step are here, ``"last"`` if not."""
        return "all" if "step" in self.data["W"].dims else "last"

    def W(self, step: int = -1) -> Float[np.ndarray, "instance seed d e"]:
        """The attention matrices at a recorded step.

        Args:
            step: The step; -1 for the last.

        Raises:
            InvalidInputError: If the step was not recorded, or its matrices were not kept.
        """
        matrices = self.data["W"]
        if step in (-1, self.steps[-1]):
            return (matrices.isel(step=-1) if "step" in matrices.dims else matrices).to_numpy()
        if step not in self.steps:
            nearest = self.steps[np.abs(self.steps - step).argmin()]
            raise InvalidInputError(
                "step", f"step {step} was not recorded", f"The nearest one recorded is {nearest}"
            )
        if self.weights_kept == "last":
            raise InvalidInputError(
                "step",
                f"the matrices of step {step} were not kept, to save memory",
                'Train with weights="all", or with fewer recorded steps',
            )
        return matrices.sel(step=step).to_numpy()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to one NetCDF file, which appears whole or not at all."""
        from attractor.training.trajectory_file import save  # which imports this module

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trajectory:
        """Reads a file that ``save`` wrote.

        Raises:
            FileFormatError: If the file is not a whole trajectory.
        """
        from attractor.training.trajectory_file import load  # which imports this module

        return load(path)

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
        last = data.isel(step=-1)
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
            ("steps", f"{self.steps[-1]}, {len(self.steps)} recorded"),
            ("matrices kept", kept),
            ("loss, median", f"{float(data['loss'].isel(step=0).median()):.4g} -> "
             f"{float(last['loss'].median()):.4g}"),
            ("norm, median", f"{float(last['norm'].median()):.4g}"),
            ("highest weight, mean", f"{float(last['attended_probability'].mean()):.6f}"),
        ]  # fmt: skip


def trajectory_data(
    records: Records,
    instance_numbers: Int[np.ndarray, "instance"],
    seeds: Int[np.ndarray, "seed"],
    steps: Int[np.ndarray, "records"],
) -> xr.Dataset:
    """Labels what the loop measured."""
    trials = (len(instance_numbers), len(seeds))
    variables: dict[str, Any] = {}
    for name, array in records.series.items():
        own = _DIMENSIONS[name]
        step = ("step",) if array.ndim == 2 + len(own) else ()
        variables[name] = ((*_TRIAL, *step, *own), array.reshape(*trials, *array.shape[1:]))
    variables["status"] = (_TRIAL, records.status.reshape(trials))
    variables["steps_taken"] = (_TRIAL, records.steps_taken.reshape(trials))
    coordinates = {"instance": instance_numbers, "seed": seeds, "step": steps}
    data = xr.Dataset(variables, coordinates)
    for name, description in _DESCRIPTIONS.items():
        data[name].attrs["description"] = description
    return data
