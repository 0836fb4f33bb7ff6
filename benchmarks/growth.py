"""How the time of a solve grows with constraints and dimensions: ``python -m benchmarks.growth``.

Draws ``docs/images/growth.png`` and writes its numbers to ``benchmarks/growth.csv``.
"""

from __future__ import annotations

import csv
import time
from statistics import median

from benchmarks import large_problems
from benchmarks.machine import ROOT, machine
from benchmarks.problems import unit_gaussian

NAMES = ("frobenius", "l_1", "l_1.5", "l_3", "l_inf", "nuclear", "spectral")
SEQUENCES = (2, 4, 8, 16, 32, 64, 128)
DIMENSIONS = (4, 8, 16, 32, 64, 128)
LENGTH = 8
LONGEST = 20.0
"""Seconds of one solve from which larger ones are left out."""
RUNS = 3

Row = tuple[str, str, int, int, float]
"""Geometry, what grows, constraints, dimension, seconds an instance."""


def seconds(name: str, n: int, d: int) -> float:
    """Seconds an instance, in a batch that takes about a second."""
    import attractor as at
    from attractor.geometry import get_geometry

    geometry, batch = get_geometry(name), 1
    while True:
        tokens, selection = unit_gaussian(batch, n, LENGTH, d)
        problem = at.MarginProblem.from_selection(tokens, selection)
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            at.solve(problem, geometry)
            times.append(time.perf_counter() - start)
            if times[-1] > 2:
                break
        if median(times) > 0.2 or batch >= 256:
            return median(times) / batch
        batch *= 4


def measured() -> list[Row]:
    """All points of the plot."""
    rows: list[Row] = []
    for name in NAMES:
        for what, sizes in (("constraints", SEQUENCES), ("dimension", DIMENSIONS)):
            for size in sizes:
                n, d = (size, 32) if what == "constraints" else (6, size)
                taken = seconds(name, n, d)
                rows.append((name, what, n * (LENGTH - 1), d, taken))
                print(*rows[-1], flush=True)
                if taken > LONGEST:
                    break
    for d, found in large_problems.growth():
        rows.append(("frobenius", "large", found.constraints, d, found.seconds))
        print(*rows[-1], flush=True)
    return rows


def draw(rows: list[Row]) -> None:
    """Draws the points."""
    from itertools import cycle

    from matplotlib.figure import Figure

    from attractor.plots import COLORS, geometry_label, save_figure, style

    with style():
        figure = Figure(figsize=(7.2, 3.2))
        panels = figure.subplots(1, 2, sharey=True)
        titles = {
            "constraints": "32 x 32 matrix (stars: 768 x 768)",
            "dimension": "42 constraints, d x d matrix",
        }
        for axes, (what, title) in zip(panels, titles.items(), strict=True):
            looks = zip(cycle(COLORS.values()), "osD^v<>")
            for name, (color, marker) in zip(NAMES, looks, strict=False):
                chosen = [row for row in rows if row[:2] == (name, what)]
                x = [row[2] if what == "constraints" else row[3] for row in chosen]
                y = [1e3 * row[4] for row in chosen]
                axes.loglog(
                    x, y, marker=marker, markersize=4, color=color, label=geometry_label(name)
                )
            if what == "constraints":
                large = [row for row in rows if row[1] == "large" and row[3] == 768]
                axes.loglog(
                    [row[2] for row in large],
                    [1e3 * row[4] for row in large],
                    marker="*",
                    linestyle=":",
                    color=COLORS["blue"],
                    label="Frobenius, 768 x 768",
                )
            axes.set_title(title)
            axes.set_xlabel("constraints" if what == "constraints" else "dimension d")
        panels[0].set_ylabel("time of a problem, ms")
        handles, labels = panels[0].get_legend_handles_labels()
        panels[1].legend(handles, labels, fontsize=7, ncols=2, loc="upper left")
        save_figure(figure, ROOT / "docs" / "images", "growth")
        (ROOT / "docs" / "images" / "growth.svg").unlink()


def section() -> str:
    """Measures, draws, and returns a section of RESULTS.md."""
    rows = measured()
    with (ROOT / "benchmarks" / "growth.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("geometry", "grows", "constraints", "dimension", "seconds"))
        writer.writerows(rows)
    draw(rows)
    return f"""## Growth of time with constraints and dimensions

![Time of a solve against constraints and against dimension](../docs/images/growth.png)

Sequences of {LENGTH} unit Gaussian tokens, certificates to 1e-9 included, in batches of up to 256;
the dotted line is one instance of sequences of 64 tokens in 768 dimensions to 1e-6, in a process
of its own. Median of {RUNS} runs, or one where it took more than two seconds; default threads.
The numbers are in [growth.csv](growth.csv). {machine()}.
"""


if __name__ == "__main__":
    print(section())
