"""Calls of ``attractor.maps.sweeps``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from attractor.maps import sweeps
from fuzzing.arguments.table import Call, Lazy

_KEPT = Lazy(lambda: tempfile.TemporaryDirectory())
GRID = Lazy(lambda: sweeps.Grid({"n": [2, 3], "d": [2]}, instances=2))
EXPERIMENT = Lazy(lambda: sweeps.built_in("margins", T=2))
STORE = Lazy(lambda: _swept())
RESULTS = Lazy(lambda: sweeps.open_sweep(STORE.value).load())
SHARES = Lazy(lambda: sweeps.average_trials(RESULTS.value, "feasible", ["n"]))
PLAN = Lazy(lambda: _planned())


def _swept() -> Path:
    store = Path(_KEPT.value.name) / "s.zarr"
    sweeps.sweep(GRID.value, EXPERIMENT.value, store)
    return store


def _planned() -> Path:
    file = Path(_KEPT.value.name) / "plan.toml"
    file.write_text('experiment = "margins"\n[axes]\nd = [2]\n[trials]\ninstances = 2\n')
    return file


def calls() -> Iterator[Call]:
    """One call of each."""
    yield Call(sweeps.Grid, axes={"n": [2, 3]}, instances=2, takes={"axes": "mapping settings"})
    yield Call(
        sweeps.Experiment, name="margins", measures={"x": ("f8", "one")}, axes=["n"],
        takes={"axes": "sequence mapping settings array", "along": "mapping settings",
               "compiled_by": "sequence mapping settings array"},
    )  # fmt: skip
    yield Call(sweeps.Experiment.check_grid, self=EXPERIMENT, grid=GRID)
    yield Call(sweeps.built_in, name="margins", blames={"name": "experiment"})
    yield Call(
        sweeps.from_python, name="attractor.maps.sweeps.experiments.margins:margins",
        blames={"name": "experiment"},
    )  # fmt: skip
    yield Call(sweeps.sweep, grid=GRID, experiment=EXPERIMENT, store=STORE)
    yield Call(sweeps.open_sweep, store=STORE)
    yield Call(sweeps.sweep_status, store=STORE)
    yield Call(sweeps.check_sweep, store=STORE)
    yield Call(sweeps.average_trials, data=RESULTS, of="margin", axes=["n"], nan=True,
               blames={"axes": "at"})  # fmt: skip
    yield Call(sweeps.crossings, data=RESULTS, of="margin", along="n", axes=["d"], nan=True,
               blames={"axes": "at"})  # fmt: skip
    yield Call(sweeps.transition, averages=SHARES, along="n")
    yield Call(sweeps.load_plan, path=PLAN, blames={"path": "file"})
    yield Call(sweeps.example_plan, name="plan.toml")
