"""Chunks of sweeps, and what is computed of their trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Results = Iterator[tuple[str, Callable[[], Any]]]
EXPERIMENTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "margins": ({"n": [2, 4], "d": [2, 3]}, {"T": 3}),
    "local_optima": ({"n": [2, 3]}, {"T": 3, "d": 4}),
    "train_and_verify": (
        {"optimizer": ["gradient descent", "sign descent"]},
        {"n": 2, "T": 3, "d": 4, "learning_rate": 0.1, "horizons": [10, 100]},
    ),
    "flow_and_verify": ({"n": [2]}, {"T": 3, "d": 4, "log_times": [2.0, 4.0]}),
    "in_context_risks": ({"length": [8, 32]}, {"covariance": "random"}),
}
"""The axes of each experiment, and its settings."""


def experiments() -> Results:
    """Every experiment on a small grid, in chunks of two trials, as the store has it."""
    for name in EXPERIMENTS:
        yield name, lambda name=name: swept(name)


def swept(name: str) -> Any:
    """The labeled data of a sweep."""
    from attractor.maps import sweeps

    axes, settings = EXPERIMENTS[name]
    store = Path(f"{name}.zarr")
    sweeps.sweep(sweeps.Grid(axes, instances=4, chunk=2), sweeps.built_in(name, **settings), store)
    return sweeps.open_sweep(store).load()


def averages() -> Results:
    """Averages over trials, and where they pass one half."""
    from attractor.maps import sweeps

    data = swept("margins").copy()
    yield "average", lambda: sweeps.average_trials(data, "feasible", ["n", "d"])
    yield "crossing", lambda: sweeps.crossings(data, "feasible", "n", at={"d": 2}, resamples=50)


ADAPTERS = {"experiment": experiments, "average": averages}
