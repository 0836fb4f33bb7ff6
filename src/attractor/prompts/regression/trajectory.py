"""The record of training on in-context regression, in labeled arrays."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Int

from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks.linear_attention import check_length
from attractor.prompts.regression.task import RegressionTask
from attractor.results import RecordedRun, Rows, StoredRun, check_records, reading_run, save_run
from attractor.support.errors import TrialStatus
from attractor.training.loop import Records

_KIND = "in-context trajectory"
_BY_RECORD = ("risk", "risk_error", "infinite_risk", "gap", "product_distance")
_SETTINGS = {
    "attention": str, "heads": int, "parameterization": str, "initialization": str,
    "optimizer": dict, "batch": int, "learning_rate": float | None, "half": bool,
}  # fmt: skip
"""The settings that are read again."""
_PER_HEAD = {
    "key_query": ("row", "column"),
    "label_row": ("column",),
    "value_inputs": ("row",),
    "value_label": (),
    "key_query_norm": (),
    "balance": (),
}
_DESCRIPTIONS = {
    "risk": "half the mean squared error, without the noise of the query's label",
    "risk_error": "standard error of the risk; zero where it is exact",
    "infinite_risk": "risk of the same heads on infinite prompts",
    "gap": "risk above the least of linear attention of this length; of softmax, above zero",
    "product_distance": "relative distance of sum b A from the product of least risk",
    "key_query_norm": "Frobenius norm of A",
    "balance": "squared norm of A and c, less that of v and b",
    "key_query": "A, which scores inputs",
    "label_row": "c, which scores labels",
    "value_inputs": "v, what inputs add to the prediction",
    "value_label": "b, what labels add to the prediction",
    "status": "how the trial ended",
    "steps_taken": "steps taken before it ended",
}
PLATEAU = (0.8, 1.2)
"""Error on infinite prompts over that of predicting zero, in which training has hardly begun."""
_SETTLED = 0.02


@dataclass(frozen=True, eq=False, repr=False)
class InContextTrajectory(RecordedRun):
    """The record of training on in-context regression, seed by seed.

    Attributes:
        data: Labeled arrays over seed, step, head, row and column: ``risk``, its standard error
            ``risk_error`` (zero where it is exact), ``infinite_risk`` of the same heads on
            infinite prompts, ``gap``, ``product_distance``, ``key_query_norm``, ``balance``, and
            the blocks ``key_query``, ``label_row``, ``value_inputs``, ``value_label``; ``status``
            and ``steps_taken``.
        task: The task trained on.
        length: Number of tokens of a prompt; may be infinite.
        settings: Every other argument.
    """

    data: xr.Dataset
    task: RegressionTask
    length: float
    settings: dict[str, Any]

    @property
    def mean_squared_error(self) -> xr.DataArray:
        """Mean squared error on noisy labels of queries, ``2 risk + query_noise``."""
        return self.task.mean_squared_error(self.data["risk"])

    @property
    def on_plateau(self) -> xr.DataArray:
        """Of which seeds training ended where it had hardly improved on predicting zero.

        Default layers stay long near a saddle, where labels enter by the score alone; what a run
        reached there does not show its limit. The criterion is the error of the same heads on
        infinite prompts, because short prompts keep the error of trained heads high as well.
        """
        error = self.task.mean_squared_error(self.data["infinite_risk"].isel(step=-1))
        share = error / self.task.mean_squared_error(self.task.risk_of_zero)
        return (share > PLATEAU[0]) & (share < PLATEAU[1])

    @property
    def verdict(self) -> str:
        """Whether training came to an end, by the median over seeds.

        ``"on the plateau: unfinished"``; ``"still falling: unfinished"`` if the risk fell by more
        than two percent, and more than its error, over the last third of the steps;
        ``"settled"``; or ``"diverged"``.
        """
        if (self.data["status"] == TrialStatus.DIVERGED).mean() > 0.5:
            return "diverged"
        if self.on_plateau.mean() > 0.5:
            return "on the plateau: unfinished"
        risk = self.data["risk"].median("seed")
        before = risk.sel(step=2 * self.steps[-1] // 3, method="nearest")
        fell = float(before - risk.isel(step=-1))
        noise = 2 * float(self.data["risk_error"].isel(step=-1).median())
        falling = fell > max(_SETTLED * float(risk.isel(step=-1)), noise)
        return "still falling: unfinished" if falling else "settled"

    @property
    def time_of_step(self) -> float:
        """Time of gradient flow on the risk that equals a step of gradient descent."""
        return self.settings["learning_rate"] * (1 if self.settings["half"] else 2)

    def blocks(self, step: float | None = None) -> Blocks:
        """The blocks at a recorded step, with axes of seeds and heads.

        Args:
            step: A recorded step; None for the last.

        Raises:
            InvalidInputError: If the step was not recorded.
        """
        number = self._record_number(step)
        found = self.data.isel(step=number)
        return Blocks(*(found[name].to_numpy() for name in Blocks._fields))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything to one NetCDF file, which appears whole or not at all."""
        task = {
            field.name: np.asarray(getattr(self.task, field.name)) for field in fields(self.task)
        }
        arrays = {"task": {**task, "length": np.float64(self.length)}}
        save_run(path, _KIND, StoredRun(self.data, {}, self.settings, arrays))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> InContextTrajectory:
        """Reads a file that ``save`` wrote.

        Raises:
            FileFormatError: If the file holds no training on in-context regression.
        """
        with reading_run(path, _KIND, ("task",)) as stored:
            arrays = dict(stored.arrays["task"])
            length = float(arrays.pop("length"))
            check_length(length)
            covariances = arrays.pop("covariance"), arrays.pop("query_covariance")
            task = RegressionTask(*covariances, **{k: float(v) for k, v in arrays.items()})
            record, data = ("seed", "step"), stored.data
            check_records(
                data,
                numbered=record,
                arrays={
                    **dict.fromkeys(_BY_RECORD, record),
                    **{name: (*record, "head", *own) for name, own in _PER_HEAD.items()},
                    **dict.fromkeys(("status", "steps_taken"), ("seed",)),
                },
                sizes={"row": task.dimension, "column": task.dimension},
            )
            for name, kind in _SETTINGS.items():
                if not isinstance(stored.settings[name], kind):
                    raise ValueError(f"its setting {name} is not of the type {kind}")
            if not isinstance(stored.settings["optimizer"].get("name"), str):
                raise ValueError("its optimizer has no name")
        return cls(data, task, length if math.isinf(length) else int(length), stored.settings)

    def _summary(self) -> tuple[str, Rows]:
        first, last = self.data.isel(step=0), self.data.isel(step=-1)
        settings, error = self.settings, float(last["risk_error"].median())
        tokens = "infinitely many" if math.isinf(self.length) else f"{self.length:.0f}"
        risk = f"{float(first['risk'].median()):.4g} -> {float(last['risk'].median()):.4g}"
        return "In-context training", [
            ("seeds", self._trials()),
            ("prompts", f"{tokens} tokens of {self.task.dimension} inputs and a label"),
            ("attention", f"{settings['attention']}, {settings['heads']} head(s), trained as "
             f"{settings['parameterization']} from the {settings['initialization']} start"),
            ("optimizer", f"{settings['optimizer']['name']}, {settings['batch']} prompts a step"),
            ("last step", f"{self.steps[-1]}, {len(self.steps)} recorded"),
            ("risk, median", risk + (f" (standard error {error:.1g})" if error else " (exact)")),
            ("above the optimum, median", f"{float(last['gap'].median()):.4g}"),
            ("b, median", f"{float(last['value_label'].median()):.4g}"),
            ("balance, median", f"{float(last['balance'].median()):.3g}"),
            ("verdict", self.verdict),
        ]  # fmt: skip


def in_context_data(
    records: Records, seeds: Int[np.ndarray, "seed"], steps: Int[np.ndarray, "records"]
) -> xr.Dataset:
    """Labels the measurements.

    Args:
        records: Measurements over (seed, record, ...).
        seeds: The seeds.
        steps: The recorded steps.
    """
    variables: dict[str, Any] = {}
    for name, array in records.series.items():
        own = ("head", *_PER_HEAD[name]) if name in _PER_HEAD else ()
        variables[name] = (("seed", "step", *own), array)
    variables["status"] = ("seed", records.status)
    variables["steps_taken"] = ("seed", records.steps_taken)
    data = xr.Dataset(variables, {"seed": seeds, "step": steps})
    for name, description in _DESCRIPTIONS.items():
        data[name].attrs["description"] = description
    return data
