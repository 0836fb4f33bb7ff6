"""Files that an earlier version wrote, which both trees read: those of the base."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools.golden.collect import command

Results = Iterator[tuple[str, Callable[[], Any]]]
DATA = ("tokens.npz", "tokens.safetensors", "corpus.txt", "corpus.npz", "corpus.safetensors",
        "head.npz", "regression.npz", "classifiers.nc")  # fmt: skip
RUNS = ("run.nc", "path.nc", "flow.nc")


def data(stored: Path, **_: Any) -> Results:
    """Files of data: their numbers by name, as far as they have some."""
    import attractor as at

    for name in DATA:
        yield name, lambda name=name: [_numbers(one) for one in at.load(stored / name).data_sets()]


def _numbers(case: Any) -> dict[str, Any]:
    """The arrays that a data set holds, and those one level below."""
    found: dict[str, Any] = {}
    for name in ("tokens", "head", "corpus", "queries", "task", "data", "initial", "embeddings"):
        value = getattr(case, name, None)
        inner = [value] if isinstance(value, np.ndarray) else []
        for key in (
            "keys", "queries", "labels", "mask", "weight", "tokens", "starts", "counts",
            "score_matrix", "value_matrix", "covariance", "data_vars",
        ):  # fmt: skip
            one = getattr(value, key, None)
            inner += [one] if isinstance(one, np.ndarray) else []
        variables = getattr(value, "data_vars", {})
        found[name] = [*inner, *(variables[key].to_numpy() for key in sorted(variables))]
    return found


def runs(stored: Path, **_: Any) -> Results:
    """Runs, what they are compared with, and everything else in NetCDF."""
    import xarray as xr

    import attractor as at

    for name in RUNS:
        load = functools.partial(at.Trajectory.load, stored / name)
        yield name, lambda load=load: load().data
        yield f"{name}, verified", lambda load=load: at.verify(load()).data
    for file in sorted(stored.rglob("*.nc")):
        name = str(file.relative_to(stored))
        if name not in RUNS:
            read = functools.partial(xr.load_dataset, file, engine="h5netcdf")
            yield name, read


def commands(stored: Path, **_: Any) -> Results:
    """Commands on stored files."""
    yield "solve", functools.partial(command, "solve", stored / "tokens.npz")
    yield "verify", functools.partial(command, "verify", stored / "run.nc")
    steps = ("--steps", 50, "--seeds", 2)
    yield "check", functools.partial(command, "check", stored / "tokens.npz", *steps)
    starts = ("--starts", 8, "--steps", 50)
    yield "basins", functools.partial(command, "basins", stored / "tokens.npz", *starts)
    queries = ("--queries", 20)
    yield (
        "prompt-length",
        functools.partial(command, "prompt-length", stored / "head.npz", *queries),
    )
    run = ("--dimension", 2, "--lengths", "8,inf", "--steps", 50, "--batch", 4)
    yield "in-context", functools.partial(command, "in-context", *run)
    yield "compare", functools.partial(command, "compare", stored / "run.nc", stored / "run.nc")


ADAPTERS = {"data": data, "run": runs, "command": commands}
WITH_OPTIONS = {"data", "run", "command"}
