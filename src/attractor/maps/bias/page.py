"""The page on where optimizers go: the whole matrix, or the answer for a few of them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from attractor.maps import plots
from attractor.maps.bias import BiasMatrix, Cell, MedianInterval
from attractor.report import seen
from attractor.report.folder import report_folder
from attractor.report.page import FigureFile, Folded, Section, Table, Words
from attractor.results.provenance import Provenance

_HEAT_MAP = FigureFile(
    "matrix",
    "Median margin ratio of every optimizer in every norm, its interval and step size, the best of "
    "several; hatched where it is not settled. The norm of each optimizer is outlined where one is "
    "known.",
)
_CURVES = FigureFile(
    "curves",
    "Margin ratio in every norm against iterations, median over data sets.",
)
_BEST = "Each optimizer in the norm in which its median ratio is largest, with 95 % intervals"
_MOST_ANSWERS = 6
"""Answers that are listed one by one; of more, optimizers are grouped by them."""
_RULES = (
    "Margin ratio: the smallest margin of the trained matrix divided by its norm, relative to the "
    "best possible for the tokens that the run attends to at its end. It is at most 1 in any norm.",
    "Intervals of medians are order statistics of the data sets and hold for any distribution. A "
    "norm is named only if its median ratio is 0.97 or more and goes to one: what is missing falls "
    "like one over the norm of W, to 0.005 or to a fifth of it. Besides, its paired lead over "
    "every other norm is above zero with a joint confidence of 95 % and not about to be lost, and "
    "the ratio is no higher in a norm of its family whose exponent is beside its own.",
    "Where the ratio has come to stand short of one, the answer is that it is none of these norms, "
    "and which is the closest; otherwise, that it is not settled.",
    "Runs that terminated before their end, because true gradients fell below what floating "
    "point holds or below a constant of the optimizer, are left out; if more than a quarter did, "
    "nothing is settled.",
)


_OVER_SETTINGS = (
    "Step sizes are constant, or fall like a power of the step, with the same mean over the run. "
    "All settings have intervals that hold at once; the interval of a cell is that of the largest "
    "of their medians.",
    "A cell is settled where the optimizer maximizes this margin at the best setting; or where at "
    "every setting that may be the best one the ratio has come to stand and attention is "
    "saturated, and the best step is not the first or the last that was tried.",
    "An optimizer is said to maximize a margin if at some setting it meets the rules below, with a "
    "confidence that is joint over the settings, and at no other setting another norm does.",
)


def write_bias_report(
    directory: str | os.PathLike[str],
    matrix: BiasMatrix,
    *,
    title: str,
    source: str,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """Writes ``report.html``, figures as PNG and SVG, and the matrix as NetCDF, CSV and JSON.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        matrix: What ``attractor.maps.bias_matrix`` returned.
        title: Title of the page.
        source: What was trained, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    summary = matrix.summary()
    several, tuned = len(matrix.methods) > 1, matrix.tuned
    with report_folder(
        directory, title, source, summary, "matrix", provenance=provenance
    ) as report:
        matrix.save(report.place / "matrix.nc")
        matrix.save(report.place / "matrix.csv")
        heat_map = report.picture(_HEAT_MAP, plots.bias_matrix_figure(matrix), _map_seen(matrix))
        curves = report.picture(_CURVES, plots.ratio_curves_figure(matrix), _curves_seen(matrix))
        report.findings += _findings(matrix)
        report.sections += [
            Section(
                "Every optimizer in every norm" if several else "Margin ratio in every norm",
                table=_optimizers(matrix) if several else _norms(matrix),
                figure=heat_map if several or tuned else None,
            ),
            *([_settings(matrix)] if tuned else []),
            Section(
                f"As training goes on{', at the best setting' if tuned else ''}", figure=curves
            ),
            _how_it_was_run(summary),
            Section("How to read this", (*(_OVER_SETTINGS if tuned else ()), *_RULES)),
        ]
    return summary


def _findings(matrix: BiasMatrix) -> list[Words | Folded]:
    """The answer of each optimizer; of many, who has which answer, and each folded away."""
    answers = {method: matrix.answer(method) for method in matrix.methods}
    each = [f"{method}: {found}." for method, found in answers.items()]
    if len(each) <= _MOST_ANSWERS:
        return [*each]
    groups: dict[str, list[str]] = {}
    for method, found in answers.items():
        verdict = f"Maximizes the {found.norm} margin" if found.norm else found.verdict.capitalize()
        groups.setdefault(verdict, []).append(method)
    lines = [f"{verdict}: {', '.join(methods)}." for verdict, methods in groups.items()]
    return [*lines, Folded("Each of them, with its numbers", each)]


def _ratio_text(found: MedianInterval | Cell) -> str:
    """A median ratio with its interval, which no line break parts."""
    space = "\N{NO-BREAK SPACE}"
    return f"{found.median:.4f}{space}[{found.low:.4f},{space}{found.high:.4f}]"


def _optimizers(matrix: BiasMatrix) -> Table:
    """What each optimizer does in its best norm."""
    rows = []
    for method in matrix.methods:
        best, found = matrix.best(method), matrix.answer(method)
        enough = matrix.enough(best.row)
        rows.append(
            (
                method,
                matrix.own_norm(method) or "not known",
                best.norm,
                _ratio_text(best),
                best.setting or "-",
                "-" if enough is None else str(enough),
                str(matrix.highest(best.row)[best.norm]),
                found.outcome if found.norm else found.verdict,
            )
        )
    header = (
        "optimizer", "its own norm", "best norm", "ratio there", "step size", "own ratio >= 0.97",
        "best in", "answer",
    )  # fmt: skip
    joint = ", joint over the settings" if matrix.tuned else ""
    return Table(header, rows, caption=f"{_BEST}{joint}.")


def _norms(matrix: BiasMatrix) -> Table:
    """The ratios of a single optimizer in every norm, the highest first."""
    (method,) = matrix.methods
    cells = [matrix.cell(method, norm) for norm in matrix.compared(method)]
    halfway = matrix.data["margin_ratio_halfway"].median("instance")
    rows = [
        (
            cell.norm,
            f"{cell.median:.4f}",
            f"[{cell.low:.4f}, {cell.high:.4f}]",
            cell.setting or "-",
            f"{float(halfway.sel(optimizer=cell.row, norm=cell.norm)):.4f}",
            str(matrix.highest(cell.row)[cell.norm]),
        )
        for cell in sorted(cells, key=lambda one: -one.median)
    ]
    header = (
        "norm", "median ratio", "95 % interval", "step size", "halfway", "highest in data sets"
    )  # fmt: skip
    return Table(header, rows)


def _settings(matrix: BiasMatrix) -> Section:
    """The ratio of each optimizer in one norm, its own or the best, at every setting."""
    rows = []
    for method in matrix.methods:
        norm = matrix.own_norm(method) or matrix.best(method).norm
        for row, answer in matrix.answers(method).items():
            found = matrix.ratio(row, norm)
            rows.append(
                (
                    method,
                    norm,
                    matrix.setting(row) or "-",
                    f"{found.median:.4f}",
                    f"[{found.low:.4f}, {found.high:.4f}]",
                    answer.outcome if answer.norm else answer.verdict,
                )
            )
    header = ("optimizer", "norm", "step size", "median ratio", "95 % interval", "answer there")
    caption = "In the own norm of each, or in the best where none is known; intervals one by one."
    return Section("At every setting", table=Table(header, rows, caption=caption))


def _map_seen(matrix: BiasMatrix) -> str:
    """Where each row of the heat map is largest."""
    places = {}
    for method in matrix.methods:
        best, own = matrix.best(method), matrix.own_norm(method)
        outlined = "outlined" if best.norm == own else f"outlined: {own}" if own else "not outlined"
        step = f" at {best.setting}" if best.setting else ""
        hatched = "" if best.settled else ", hatched"
        places[method] = f"{best.median:.3f} in {best.norm}{step} ({outlined}{hatched})"
    return f"The largest ratio of each optimizer. {seen.listed(places)}"


def _curves_seen(matrix: BiasMatrix) -> str:
    """How the ratio goes in every norm; of several optimizers, in that with the highest."""
    courses = {}
    several = len(matrix.methods) > 1
    for method in matrix.methods:
        best = matrix.best(method)
        run = matrix.data.sel(optimizer=best.row)
        known = np.isfinite(run["step"].values)
        for norm in [best.norm] if several else matrix.compared(method):
            values = run["margin_ratio_curve"].sel(norm=norm).transpose("record", "instance").values
            name = f"{best.row} in {norm}" if several else norm
            courses[name] = f"margin ratio {seen.course(np.nanmedian(values[known], axis=1))}"
    return f"Medians over data sets. {seen.listed(courses)}"


def _how_it_was_run(summary: dict[str, Any]) -> Section:
    """Step sizes, how gradients were read, and how runs ended."""
    rows = [
        (
            row["optimizer"],
            row["parameterization"],
            row["settings"],
            row["reads"],
            f"{row['steps']:,}",
            ", ".join(f"{count} {status}" for status, count in row["status"].items()),
            "-" if row["final_norm"] is None else f"{row['final_norm']:.5g}",
        )
        for row in summary.get("settings", summary["optimizers"])
    ]
    header = (
        "optimizer", "trained", "settings", "reads", "steps", "how runs ended", "norm of W",
    )  # fmt: skip
    start = summary["start"]
    sets, same = summary["data_sets"], summary["same_selection"]
    agree = f" All of them ended on the same tokens in {same} of {sets} data sets."
    words = (
        f"Initial weights: {start}, seed {summary['seed']}; {summary['loss']} loss."
        f"{agree if len(rows) > 1 else ''} Largest certified gap of the margin problems: "
        f"{summary['largest_gap']:.1e}."
    )
    return Section("How it was run", [words], table=Table(header, rows, words=True))
