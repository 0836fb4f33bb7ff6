"""Files that an earlier version wrote, which both trees read: those of the base."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.golden.collect import command

Results = Iterator[tuple[str, Callable[[], Any]]]
DATA = ("tokens.npz", "tokens.safetensors", "corpus.txt", "corpus.npz", "corpus.safetensors",
        "head.npz", "regression.npz", "classifiers.nc")  # fmt: skip
RUNS = ("run.nc", "path.nc", "flow.nc")


def data(stored: Path, **_: Any) -> Results:
    """Files of data: the arrays that the hashes of their data sets are of."""
    import attractor as at

    for name in DATA:
        yield name, lambda name=name: [one.arrays() for one in at.load(stored / name).data_sets()]


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
