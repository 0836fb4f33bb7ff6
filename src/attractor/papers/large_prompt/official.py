"""The heads of the published experiment, which several figures show and none trains again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Sequence
from typing import Any

from attractor.errors import InvalidInputError
from attractor.papers.figure import Request
from attractor.prompt.regression.runs import (
    ATTENTIONS,
    OFFICIAL_SEED,
    InContextRuns,
    checkpoint_folders,
    official_experiment,
    run_name,
)
from attractor.prompt.regression.task import RegressionTask
from attractor.prompt.regression.trajectory import InContextTrajectory
from attractor.training import adam
from attractor.version import __version__

PATHS = {"as run": True, "as intended": False}
"""Ways the data are drawn: as the published code draws them, or as it means to."""
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "as published": {},
    "Adam": {"optimizer": adam(0.01)},
}
"""Settings of training beside those published; with Adam few steps leave the plateau."""
TRAINED: dict[str, Any] = {
    "seeds": 1,
    "steps": [1000, 20_000, 300_000],
    "optimizer": ["Adam", "as published", "as published"],
}
"""Sizes of training, which figures share so that they can share runs."""
TAKES = "a folder of runs of the published experiment, as InContextRuns.save writes it"


def official_runs(request: Request, lengths: Sequence[int]) -> InContextRuns:
    """The runs of the published experiment with some lengths, on data as the published code runs.

    They are the user's own, those that a figure in the same folder has trained, or new ones, which
    stay in the folder. Training that is killed goes on from its last checkpoint.

    Args:
        request: Names steps and optimizer in its settings.
        lengths: The lengths to show; of runs of the user's own, those that are there.

    Raises:
        InvalidInputError: If runs of the user's own are not on the published task, do not all
            have the same steps, or none has one of the lengths.
    """
    if request.source is not None:
        runs = _given(InContextRuns.load(request.source), lengths)
        request.uses(
            "runs",
            **{
                run_name(run.settings["attention"], run.length): run.data["key_query"].values
                for run in runs.runs
            },
        )
        return runs
    request.uses("task", covariance=RegressionTask.official(as_run=True).covariance)
    settings = {name: request.settings[name] for name in ("steps", "optimizer", "seeds")}
    text = json.dumps({"attractor": __version__, "seed": request.seed, **settings}, sort_keys=True)
    name = f"official-runs-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    folder = None if request.shared is None else request.shared / name
    files = {
        (attention, length): folder / f"{run_name(attention, length)}.nc"
        for attention in ATTENTIONS
        for length in lengths
        if folder is not None
    }
    known = {case: InContextTrajectory.load(file) for case, file in files.items() if file.is_file()}
    missing = [L for L in lengths if any((kind, L) not in known for kind in ATTENTIONS)]
    if missing:
        place = request.checkpoint("runs") if folder is None else folder / ".unfinished"
        new = official_experiment(
            lengths=missing,
            steps=settings["steps"],
            seed=OFFICIAL_SEED + request.seed,
            seeds=request.seeds,
            checkpoint=place,
            progress=request.progress,
            **OPTIMIZERS[settings["optimizer"]],
        )
        known |= {(run.settings["attention"], int(run.length)): run for run in new.runs}
        if folder is not None:
            new.save(folder)
            for case in checkpoint_folders(folder / ".unfinished", known).values():
                shutil.rmtree(case, ignore_errors=True)
            with contextlib.suppress(OSError):  # another figure's checkpoints are still there
                (folder / ".unfinished").rmdir()
    return InContextRuns(tuple(known[kind, length] for kind in ATTENTIONS for length in lengths))


def path_of(runs: InContextRuns) -> str:
    """The way that data were drawn for some runs, a key of ``PATHS``.

    Raises:
        InvalidInputError: If they are not on the published task.
    """
    for path, as_run in PATHS.items():
        if runs.task.equals(RegressionTask.official(as_run=as_run)):
            return path
    raise InvalidInputError(
        "data", "its runs are not on the published task", "Give runs of official_experiment"
    )


def optimizer_of(runs: InContextRuns) -> str:
    """The optimizer of some runs and its rate, in words."""
    optimizer = runs.runs[0].settings["optimizer"]
    name = optimizer["name"].split(",")[0]  # its further settings are those usual
    return f"{name} with rate {optimizer['learning_rate']:g}"


def _given(runs: InContextRuns, lengths: Sequence[int]) -> InContextRuns:
    """Runs of the user's own with some lengths."""
    path_of(runs)
    chosen = tuple(run for run in runs.runs if run.length in lengths)
    if not chosen:
        raise InvalidInputError(
            "data", "none of its runs has a length that is shown", f"Give some of {list(lengths)}"
        )
    if any(list(run.steps) != list(chosen[0].steps) for run in chosen):
        raise InvalidInputError(
            "data", "its runs have different steps", "Give runs of one official_experiment"
        )
    return InContextRuns(chosen)
