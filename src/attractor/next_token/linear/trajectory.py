"""What training did to a linear decoder, in labeled arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int, Real

from attractor.checks import check_number
from attractor.errors import InvalidInputError, TrialStatus
from attractor.margin.tables import html_table, text_table
from attractor.next_token.linear.contexts import Contexts
from attractor.training.loop import Records
from attractor.training.trajectory import trajectory_data

_DESCRIPTIONS = {
    "loss": "cross-entropy",
    "excess_loss": "cross-entropy less the entropy of the contexts",
    "log_excess_loss": "logarithm of the cross-entropy less the entropy of the contexts",
    "W": "decoder",
}


@dataclass(frozen=True, eq=False, repr=False)
class LinearTrajectory:
    """What training did to a linear decoder, trial by trial.

    A trial is an (instance, seed) pair; both axes are always there, of length one if need be.

    Attributes:
        data: Labeled arrays over instance, seed, step, row and column: ``loss``; ``excess_loss``,
            which is ``CE - H`` computed without subtracting, and its logarithm
            ``log_excess_loss``, exact where the excess itself is too small for a number; ``norm``
            in the geometry descended; ``log_gradient_norm``; ``log_time``, the logarithm of the
            equivalent raw time, NaN where there is none; ``W``, with a step axis if all were
            kept; ``status`` and ``steps_taken``. Of a regularization path ``radius`` takes the
            place of step.
        contexts: What was trained on.
        optimizer_name: The optimizer.
        geometry: Name of the norm that training descended, or "not known".
        settings: Every other argument.
    """

    data: xr.Dataset
    contexts: Contexts
    optimizer_name: str
    geometry: str
    settings: dict[str, Any]

    @property
    def axis(self) -> str:
        """What the records run along: ``"step"``, or ``"radius"`` of a path."""
        return "radius" if "radius" in self.data.dims else "step"

    @property
    def steps(self) -> Real[np.ndarray, "records"]:
        """The recorded steps, or radii."""
        return self.data[self.axis].to_numpy()

    @property
    def weights_kept(self) -> str:
        """``"all"`` if the decoders of every recorded step are here, ``"last"`` if not."""
        return "all" if self.axis in self.data["W"].dims else "last"

    def W(self, step: float = -1) -> Float[np.ndarray, "instance seed V d"]:
        """The decoders at a recorded step.

        Args:
            step: The step, or radius; -1 for the last.

        Raises:
            InvalidInputError: If the step was not recorded, or its decoders were not kept.
        """
        step = check_number("step", step)
        decoders = self.data["W"]
        if step in (-1, self.steps[-1]):
            return decoders.isel({self.axis: -1}, missing_dims="ignore").to_numpy()
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
                f"the decoders of {self.axis} {step} were not kept, to save memory",
                'Train by train_linear(..., weights="all"), or with fewer recorded steps',
            )
        return decoders.sel({self.axis: step}).to_numpy()

    def to_xarray(self) -> xr.Dataset:
        """The labeled arrays."""
        return self.data

    def __repr__(self) -> str:
        return text_table("Linear trajectory", self._summary())

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html_table("Linear trajectory", self._summary())

    def _summary(self) -> list[tuple[str, str]]:
        data = self.data
        first, last = data.isel({self.axis: 0}), data.isel({self.axis: -1})
        hyper = ", ".join(f"{k}={v}" for k, v in self.settings.get("optimizer", {}).items())
        status = data["status"].to_numpy()
        counts = [f"{int((status == s).sum())} {s}" for s in TrialStatus if (status == s).any()]
        kept = "at the last step only; those of earlier steps cannot be had"
        if self.weights_kept == "all":
            kept = f"at every recorded {self.axis}"
        sizes = data.sizes
        trials = f"{sizes['instance']} instances x {sizes['seed']} seeds"
        return [
            ("trials", f"{status.size} ({trials}): {', '.join(counts)}"),
            ("contexts", repr(self.contexts)),
            ("optimizer", f"{self.optimizer_name} ({hyper})" if hyper else self.optimizer_name),
            ("geometry", self.geometry),
            (f"last {self.axis}", f"{self.steps[-1]:g}, {len(self.steps)} recorded"),
            ("decoders kept", kept),
            ("loss, median", f"{float(first['loss'].median()):.4g} -> "
             f"{float(last['loss'].median()):.4g}"),
            ("loss above the entropy, median", f"{float(last['excess_loss'].median()):.4g}"),
            ("norm, median", f"{float(last['norm'].median()):.4g}"),
        ]  # fmt: skip


def linear_data(
    records: Records,
    instance_numbers: Int[np.ndarray, "instance"],
    seeds: Int[np.ndarray, "seed"],
    values: Real[np.ndarray, "records"],
    axis: str = "step",
    last_only: frozenset[str] = frozenset(),
) -> xr.Dataset:
    """Labels what was measured; see ``trajectory_data``."""
    data = trajectory_data(records, instance_numbers, seeds, values, axis, last_only)
    for name, description in _DESCRIPTIONS.items():
        data[name].attrs["description"] = description
    return data
