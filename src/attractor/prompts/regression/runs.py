"""Training at several prompt lengths side by side, and the published experiment."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr
from rich.table import Table

from attractor.prompts.regression.risks.linear_attention import linear_attention_optimum, ridge_risk
from attractor.prompts.regression.task import RegressionTask
from attractor.prompts.regression.train import check_length, train_in_context
from attractor.prompts.regression.trajectory import InContextTrajectory
from attractor.results import Printed
from attractor.support.checks import (
    as_number,
    check_choice,
    check_count,
    check_items,
    check_kinds,
    check_path,
    check_steps,
    shown,
)
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_shaped
from attractor.support.progress import progress_bar
from attractor.support.storage import OutputFolder, check_paths
from attractor.support.threads import in_threads
from attractor.training.stored.checkpoint import MARKER

if TYPE_CHECKING:
    from rich.console import Console

ATTENTIONS = ("softmax", "linear")
"""Kinds of attention that can be trained."""
OFFICIAL_LENGTHS = (*range(10, 100, 10), *range(100, 1001, 100))
"""Prompt lengths of the published experiment."""
OFFICIAL_SEED = 327
"""Its seed."""


@dataclass(frozen=True, eq=False, repr=False)
class InContextRuns(Printed):
    """Training on one task at several lengths, with softmax attention, linear attention or both.

    Attributes:
        runs: One for each attention and length, in this order.
    """

    width: ClassVar[int] = 80
    runs: tuple[InContextTrajectory, ...]

    @property
    def task(self) -> RegressionTask:
        """The task trained on."""
        return self.runs[0].task

    def to_xarray(self) -> xr.Dataset:
        """Labeled arrays of all runs along ``run``, named by ``attention`` and ``length``."""
        data = xr.concat([run.data for run in self.runs], "run", combine_attrs="drop_conflicts")
        return data.assign_coords(
            attention=("run", [run.settings["attention"] for run in self.runs]),
            length=("run", [float(run.length) for run in self.runs]),
            verdict=("run", [run.verdict for run in self.runs]),
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes each run to a file of its own, named as ``softmax-100.nc``.

        A file that stands there is replaced; the folder may hold runs of other lengths.

        Raises:
            InvalidInputError: If the folder cannot be written.
        """
        place = check_path("folder", folder)
        names = [run_name(run.settings["attention"], run.length) for run in self.runs]
        check_paths([OutputFolder("folder", place)])
        place.mkdir(parents=True, exist_ok=True)
        for name, run in zip(names, self.runs, strict=True):
            run.save(place / f"{name}.nc")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> InContextRuns:
        """Reads the runs that ``save`` wrote to a folder: softmax first, by length.

        Raises:
            InvalidInputError: If there is no run, or runs are on different tasks.
            FileFormatError: If a file holds no training on in-context regression.
        """
        place = check_path("folder", folder)
        runs = [InContextTrajectory.load(file) for file in sorted(place.glob("*.nc"))]
        if not runs:
            raise InvalidInputError(
                "folder", f"{place} holds no run", "Give a folder that InContextRuns.save wrote"
            )
        if not all(run.task.equals(runs[0].task) for run in runs):
            raise InvalidInputError(
                "folder", f"the runs in {place} are on different tasks", "Give a folder for each"
            )
        return cls(
            tuple(
                sorted(runs, key=lambda run: (run.settings["attention"] != "softmax", run.length))
            )
        )

    def references(self) -> xr.Dataset:
        """Risks of the best head of linear attention and of ridge regression, by finite length.

        Ridge regression with the penalty of the task predicts best of all; its risk is a mean over
        sampled inputs, with the standard error ``ridge_error``.
        """
        lengths = sorted({int(run.length) for run in self.runs if math.isfinite(run.length)})
        linear = [linear_attention_optimum(self.task, length).risk for length in lengths]
        ridge = ridge_risk(self.task, np.array(lengths)) if lengths else None
        return xr.Dataset(
            {
                "linear": ("length", linear),
                "ridge": ("length", [] if ridge is None else ridge.risk),
                "ridge_error": ("length", [] if ridge is None else ridge.standard_error),
            },
            {"length": lengths},
        )

    def rows(self) -> list[dict[str, Any]]:
        """The last record of each run, medians over seeds, as plain numbers and words."""
        found = []
        for run in self.runs:
            last = run.data.isel(step=-1)
            heads = last.isel(head=0)
            found.append(
                {
                    "attention": run.settings["attention"],
                    "length": "inf" if math.isinf(run.length) else int(run.length),
                    "risk": float(last["risk"].median()),
                    "risk_error": float(last["risk_error"].median()),
                    "mean_squared_error": float(run.mean_squared_error.isel(step=-1).median()),
                    "infinite_risk": float(last["infinite_risk"].median()),
                    "gap": float(last["gap"].median()),
                    "b": float(heads["value_label"].median()),
                    "norm_A": float(heads["key_query_norm"].median()),
                    "balance": float(heads["balance"].median()),
                    "product_distance": float(last["product_distance"].median()),
                    "verdict": run.verdict,
                }
            )
        return found

    def table(self) -> str:
        """The last record of each run, as text."""
        return str(self)

    def _print(self, console: Console) -> None:

        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for title in ("attention", "length", "risk", "error", "MSE", "gap", "b", "|A|", "balance"):
            table.add_column(title, justify="left" if title == "attention" else "right")
        table.add_column("trend of risk")
        for row in self.rows():
            table.add_row(
                row["attention"],
                str(row["length"]),
                f"{row['risk']:.4g}",
                f"{row['risk_error']:.1g}" if row["risk_error"] else "exact",
                f"{row['mean_squared_error']:.4f}",
                f"{row['gap']:.3g}",
                f"{row['b']:.4f}",
                f"{row['norm_A']:.4f}",
                f"{row['balance']:+.3f}",
                row["verdict"].partition(":")[0],
            )
        console.print(table)


def run_name(attention: str, length: float) -> str:
    """The name of a run's file, and of its checkpoint folder: ``softmax-100``."""
    return f"{attention}-{length}"


def checkpoint_folders(
    checkpoint: str | os.PathLike[str], cases: Iterable[tuple[str, float]]
) -> dict[tuple[str, float], Path]:
    """The checkpoint folders of ``train_at_lengths``, by attention and length."""
    return {(name, length): Path(checkpoint) / run_name(name, length) for name, length in cases}


def train_at_lengths(
    task: RegressionTask,
    lengths: Sequence[float],
    *,
    steps: int,
    attentions: Sequence[str] = ("softmax",),
    seeds: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **settings: Any,
) -> InContextRuns:
    """Trains attention on prompts of several lengths, as many runs at once as there are processors.

    Args:
        task: The law of prompts and queries.
        lengths: Numbers of tokens of a prompt; ``math.inf`` may be among them.
        steps: Number of steps of each run.
        attentions: ``"softmax"``, ``"linear"`` or both.
        seeds: Number of seeds of each run.
        checkpoint: A folder with a folder for each run, from which the same call resumes.
        progress: Whether to show a progress bar over the steps of all runs.
        settings: Further arguments of ``train_in_context``.

    Raises:
        InvalidInputError: If an argument cannot be used.
    """
    check_kinds(task=(task, RegressionTask))
    lengths = _lengths(lengths)
    attentions = check_items("attentions", attentions, str, 1)
    checkpoint = None if checkpoint is None else check_path("checkpoint", checkpoint)
    if not len(lengths) or len(set(lengths)) < len(lengths):
        raise InvalidInputError(
            "lengths", f"{list(lengths)} is empty or repeats one", "Give different lengths"
        )
    if not attentions or len(set(attentions)) < len(attentions):
        raise InvalidInputError(
            "attentions", f"{list(attentions)} is empty or repeats one", "Give softmax, linear"
        )
    for attention in attentions:
        check_choice("attention", attention, ATTENTIONS)
    checked = [check_length(length, task.dimension, "lengths") for length in lengths]
    steps = check_steps("steps", steps)
    seeds = check_count("seeds", seeds)
    cases = [(attention, length) for attention in attentions for length in checked]
    folders = {} if checkpoint is None else checkpoint_folders(checkpoint, cases)
    check_paths(OutputFolder("checkpoint", folder, MARKER) for folder in folders.values())
    lock = threading.Lock()
    with progress_bar("training", len(cases) * seeds * steps, enabled=progress) as bar:

        def advance(amount: float) -> None:
            with lock:
                bar(amount)

        def train(case: tuple[str, float]) -> InContextTrajectory:
            attention, length = case
            return train_in_context(
                task,
                length=length,
                attention=attention,
                steps=steps,
                seeds=seeds,
                checkpoint=folders.get(case),
                progress=advance,
                **settings,
            )

        # The longest first, so that no processor is left with one of them at the end.
        order = sorted(cases, key=lambda case: (math.isfinite(case[1]), case[1]), reverse=True)
        found = dict(in_threads(train, order))
    return InContextRuns(tuple(found[case] for case in cases))


def official_experiment(
    *,
    as_run: bool = True,
    lengths: Sequence[float] = OFFICIAL_LENGTHS,
    steps: int = 300_000,
    seed: int = OFFICIAL_SEED,
    **settings: Any,
) -> InContextRuns:
    """The experiment published with the large-prompt paper: 38 runs of one head.

    Softmax and linear attention, 19 lengths, four linear layers as PyTorch starts them, gradient
    descent with rate 1e-3 on the mean squared error of 128 fresh prompts a step.

    Args:
        as_run: Whether data follow the published code as it runs; see ``RegressionTask.official``.
        lengths: Prompt lengths.
        steps: Steps of each run; published are 300,000.
        seed: The seed.
        settings: Further arguments of ``train_at_lengths``.

    Source:
        The code of Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt Regime"
        (arXiv 2512.11784).
    """
    lengths = _lengths(lengths)
    task = RegressionTask.official(as_run=as_run)
    return train_at_lengths(
        task, lengths, attentions=ATTENTIONS, steps=steps, seed=seed, **settings
    )


def _lengths(lengths: Any) -> list[float]:
    """Lengths of prompts, each a positive number or infinite."""
    if isinstance(lengths, np.ndarray):
        lengths = as_shaped("lengths", lengths, ("length",), finite=False).tolist()
    listed = check_items("lengths", lengths, int | float | np.integer | np.floating, 1)
    for length in listed:
        if not as_number(length) > 0:
            raise InvalidInputError("lengths", f"{shown(length)} is one", "Give numbers of tokens")
    return listed
