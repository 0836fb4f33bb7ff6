"""Several optimizers on a task. Figures share what is trained, and it stays on disk."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import xarray as xr

from attractor.models import save_model
from attractor.papers.drawing import read_data
from attractor.papers.figure import Request, stacked
from attractor.papers.mirror_descent.classifiers.contenders import CONTENDERS, Contender
from attractor.papers.mirror_descent.classifiers.task import ClassifierTask
from attractor.papers.mirror_descent.classifiers.trained import trained
from attractor.storage import save_netcdf
from attractor.threads import in_threads
from attractor.version import __version__


def experiment(
    request: Request,
    task: ClassifierTask,
    names: Sequence[str],
    *,
    kind: str,
    same_start: bool = False,
    searched: xr.Dataset | None = None,
) -> xr.Dataset:
    """Every optimizer with its own learning rate: what it knows, and what the task measures.

    Where figures share a folder, each optimizer's numbers and models are kept there, and are not
    trained again; all numbers together are in its ``results.nc``, which claims can be checked on.

    Args:
        request: Gives the seeds and the folder.
        task: The task.
        names: Which optimizers.
        kind: What the data are, "text" or "image"; the folder's name begins with it.
        same_start: Whether all seeds start from the model of the first, as published.
        searched: Results of the same task, whose learning rates are taken; None to search.
    """
    request.uses("data", **task.arrays)
    folder = _folder(request, task, kind, same_start)
    schedule = task.schedule
    batches = -(-len(task.data.train) // schedule.batch)
    tries = schedule.tries if searched is None else 0
    epochs = (tries + request.seeds) * schedule.epochs
    with request.bar(f"{kind} classifiers", len(names) * epochs * batches) as advance:

        def kept(name: str) -> xr.Dataset:
            known = None if searched is None else searched.sel(optimizer=name)
            return _kept(CONTENDERS[name], task, request, folder, advance, same_start, known)

        found = dict(in_threads(kept, names))
    test = task.data.test
    results = stacked([found[name] for name in names], "optimizer", list(names)).assign_attrs(
        data=kind,
        chance=1 / task.config.classes,
        test_examples=0 if test is None else len(test),
        same_start=int(same_start),
    )
    if folder is not None:
        save_netcdf(results, folder / "results.nc")
    return results


def _folder(request: Request, task: ClassifierTask, kind: str, same_start: bool) -> Path | None:
    """Where this very experiment is kept."""
    if request.shared is None:
        return None
    settings = {
        "attractor": __version__,
        "data": request.hashes["data"],
        "config": task.config.to_json(),
        "schedule": dataclasses.asdict(task.schedule),
        "seed": request.seed,
        "seeds": request.seeds,
        "same start": same_start,
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
    return request.shared / f"{kind}-models-{digest}"


def _kept(
    contender: Contender,
    task: ClassifierTask,
    request: Request,
    folder: Path | None,
    advance: Callable[[float], None],
    same_start: bool,
    searched: xr.Dataset | None,
) -> xr.Dataset:
    """What was found of an optimizer: read, or trained and written."""
    name = contender.name.replace(" ", "")
    file = None if folder is None else folder / f"{name}.nc"
    if file is not None and file.is_file():
        return read_data(file)
    place = None if folder is None else folder / f".{name}-unfinished"
    found, run = trained(
        contender,
        task,
        seed=request.seed,
        seeds=request.seeds,
        same_start=same_start,
        searched=searched,
        place=place,
        advance=advance,
    )
    if folder is None or file is None or place is None:
        return found
    for seed in found["seed"].values.tolist():
        save_model(folder / f"{name}-seed-{seed}.safetensors", run.model(seed))
    save_netcdf(found, file)
    shutil.rmtree(place, ignore_errors=True)
    return found
