"""How the time of a training step grows with the data, the dimension and the number of trials.

Draws ``docs/images/training_growth.png`` and writes its numbers to
``benchmarks/training_growth.csv``. Run as ``python -m benchmarks.training_growth``.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.experiments import EXPERIMENTS, Run, optimizer, random_data
from benchmarks.machine import ROOT, Worker, machine, seconds_of_steps, versions

PARTS = {run.parameterization: run for run in EXPERIMENTS["local convergence"]}
USUAL = {"n": 6, "T": 8, "d": 10, "trials": 100}
"""What stays as it is while one of them grows."""
SIZES = {
    "n": (2, 4, 8, 16, 32, 64, 128, 256),
    "T": (2, 4, 8, 16, 32, 64, 128, 256),
    "d": (4, 8, 16, 32, 64, 128, 256),
    "trials": (1, 4, 25, 100, 400, 1600),
}
FITTED = 3
"""Points at the large end that a slope is fitted to."""
SHORTEST = 0.5
"""Seconds that the steps of a timed call take at least."""
RUNS = 5


class Point(NamedTuple):
    """One point of the plot: microseconds are those of a step and trial."""

    trained: str
    grows: str
    n: int
    T: int
    d: int
    trials: int
    microseconds: float
    fastest: float
    slowest: float


def serve(part: Run) -> None:
    """For each line of four sizes: microseconds of a step and trial, ``RUNS`` times."""
    print(flush=True)
    for line in sys.stdin:
        n, length, d, trials = map(int, line.split())
        train = _training(part, random_data(trials, n, length, d))
        train(1)
        steps = 16
        while (taken := seconds_of_steps(train, steps)) < SHORTEST:
            steps = int(steps * min(1.2 * SHORTEST / max(taken, 1e-3), 8)) + 1
        found = [taken, *(seconds_of_steps(train, steps) for _ in range(RUNS - 1))]
        print(*(1e6 * one / (steps - 1) / trials for one in found), flush=True)


def _training(part: Run, drawn: tuple[Any, Any]) -> Callable[[int], object]:
    import attractor as at

    settings = {"parameterization": part.parameterization, "record": [0], "weights": "last"}
    return lambda steps: at.train(*drawn, optimizer(part), steps=steps, **settings)


def measured() -> list[Point]:
    """All points of the plot."""
    points = []
    for name, part in PARTS.items():
        worker = Worker("benchmarks.training_growth", name, single_thread=False)
        for grows, sizes in SIZES.items():
            for size in sizes:
                shape = USUAL | {grows: size}
                found = worker.run(" ".join(map(str, shape.values())))
                spread = (median(found), min(found), max(found))
                points.append(Point(part.name, grows, **shape, **_named(spread)))
                print(*points[-1], flush=True)
        worker.close()
    return points


def _named(spread: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip(("microseconds", "fastest", "slowest"), spread, strict=True))


def curve(points: list[Point], trained: str, grows: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes, with microseconds below them: median, smallest and largest."""
    chosen = [point for point in points if point[:2] == (trained, grows)]
    sizes = np.array([getattr(point, grows) for point in chosen], float)
    return sizes, np.array([point[-3:] for point in chosen]).T


def slope(sizes: np.ndarray, microseconds: np.ndarray) -> float:
    """The power that the time grows with, at the large end."""
    logs = np.log(sizes[-FITTED:]), np.log(microseconds[-FITTED:])
    return float(np.polyfit(*logs, 1)[0])


def draw(points: list[Point]) -> None:
    """Draws the points, a panel for each size that grows."""
    from matplotlib.figure import Figure

    from attractor.plots import save_figure, style
    from attractor.plots.design.look import SERIES

    titles = {
        "n": "sequences n",
        "T": "tokens T of a sequence",
        "d": "dimension d",
        "trials": "trials at once",
    }
    with style():
        figure = Figure(figsize=(7.2, 5.4))
        panels = figure.subplots(2, 2, sharey=True)
        for axes, (grows, label) in zip(panels.flat, titles.items(), strict=True):
            for part, look, marker in zip(PARTS.values(), SERIES, "os", strict=False):
                sizes, (middle, fastest, slowest) = curve(points, part.name, grows)
                power = f": slope {slope(sizes, middle):.2f}" if grows != "trials" else ""
                axes.errorbar(
                    sizes,
                    middle,
                    (middle - fastest, slowest - middle),
                    marker=marker,
                    markersize=4,
                    capsize=2,
                    label=f"{part.name}{power}",
                    **look,
                )
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xticks(SIZES[grows], [f"{size:,}" for size in SIZES[grows]])
            axes.minorticks_off()
            fixed = ", ".join(f"{k} = {v}" for k, v in USUAL.items() if k != grows)
            axes.set_title(fixed, fontsize=9)
            axes.set_xlabel(label)
            # The bars are shorter than the markers nearly everywhere: a plain line tells enough.
            handles, labels = axes.get_legend_handles_labels()
            where = "upper right" if grows == "trials" else "upper left"
            axes.legend([handle[0] for handle in handles], labels, loc=where)
        for axes in panels[:, 0]:
            axes.set_ylabel("time of a step and trial, µs")
        save_figure(figure, ROOT / "docs" / "images", "training_growth")
        (ROOT / "docs" / "images" / "training_growth.svg").unlink()


def section() -> str:
    """Measures, draws, and returns a section of RESULTS.md."""
    points = measured()
    with (ROOT / "benchmarks" / "training_growth.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Point._fields)
        writer.writerows(points)
    draw(points)
    lines = [
        f"| {part.name} | "
        + " | ".join(
            f"{slope(sizes, middle):.2f}"
            for sizes, (middle, *_) in (curve(points, part.name, grows) for grows in SIZES)
        )
        + " |"
        for part in PARTS.values()
    ]
    return f"""## Growth of the time of a training step

![Time of a step and trial against n, T, d and trials](../docs/images/training_growth.png)

`train`, warm, normalized gradient descent, float64, default threads, on Gaussian keys and queries:
what many steps take beyond a call of one step, so that drawing the start and measuring both ends,
which do not grow with the steps, are left out. Each point is the median of {RUNS} calls with at
least {SHORTEST:g} seconds of steps; bars reach from the fastest to the slowest. Trials run in
blocks of 25, so that fewer cost as much as 25. The numbers are in
[training_growth.csv](training_growth.csv). Slopes, the powers that the time of a step and trial
grows with, are fitted to the {FITTED} largest sizes:

| trained | n | T | d | trials |
| --- | --- | --- | --- | --- |
{chr(10).join(lines)}

{machine()}; {versions("jax", "optax", "numpy")}
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(PARTS[sys.argv[1]])
    else:
        print(section())
