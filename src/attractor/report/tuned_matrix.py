"""The page on where optimizers go at the best of several step sizes."""

from __future__ import annotations

import os
from typing import Any

from attractor import plots
from attractor.analysis.bias import BiasMatrix, TunedMatrix
from attractor.provenance import Provenance
from attractor.report import seen
from attractor.report.bias_matrix import (
    CURVES,
    RULES,
    curves_seen,
    folded_findings,
    ratio_text,
    settings_section,
)
from attractor.report.folder import report_folder
from attractor.report.page import FigureFile, Section, Table

HEAT_MAP = FigureFile(
    "matrix",
    "Highest median margin ratio of every optimizer in every norm over the step sizes tried, below "
    "it the step size; hatched where it is not settled. The norm of each optimizer is outlined "
    "where one is known.",
)
_BEST = (
    "Each optimizer in the norm in which it reaches most. Intervals are joint over the settings, "
    "with 95 % confidence."
)
_RULES = (
    "Step sizes are constant, or fall like a power of the step, with the same mean over the run. "
    "All settings have intervals that hold at once; the interval of a cell is that of the largest "
    "of their medians.",
    "A cell is settled where the optimizer maximizes this margin at the best setting; or where at "
    "every setting that may be the best one the ratio has come to stand and attention is "
    "saturated, and the best step is not the first or the last that was tried.",
    "An optimizer is said to maximize a margin if at some setting it meets the rules below, with a "
    "confidence that is joint over the settings, and at no other setting another norm does.",
)


def write_tuned_report(
    directory: str | os.PathLike[str],
    matrix: TunedMatrix,
    *,
    title: str,
    source: str,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """Writes ``report.html``, figures as PNG and SVG, and all runs as NetCDF, CSV and JSON.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        matrix: What ``attractor.analysis.bias.tuned_matrix`` returned.
        title: Title of the page.
        source: What was trained, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    summary = matrix.summary()
    best = [matrix.best(method).row for method in matrix.methods]
    at_best = BiasMatrix(matrix.data.sel(optimizer=best))
    with report_folder(
        directory, title, source, summary, "matrix", provenance=provenance
    ) as report:
        matrix.save(report.place / "matrix.nc")
        matrix.save(report.place / "matrix.csv")
        heat_map = report.picture(HEAT_MAP, plots.tuned_matrix_figure(matrix), _map_seen(matrix))
        curves = report.picture(CURVES, plots.ratio_curves_figure(at_best), curves_seen(at_best))
        answers = {method: matrix.answer(method) for method in matrix.methods}
        report.findings += folded_findings(answers)
        report.sections += [
            Section("Every optimizer in every norm", table=_answers(matrix), figure=heat_map),
            _over_settings(matrix),
            Section("As training goes on, at the best setting", figure=curves),
            settings_section(summary, summary["settings"]),
            Section("How to read this", (*_RULES, *RULES)),
        ]
    return summary


def _answers(matrix: TunedMatrix) -> Table:
    rows = []
    for method in matrix.methods:
        best, found = matrix.best(method), matrix.answer(method)
        rows.append(
            (
                method,
                matrix.own_norm(method) or "not known",
                best.norm,
                ratio_text(best),
                best.setting or "-",
                found.outcome if found.norm else found.verdict,
            )
        )
    header = ("optimizer", "its own norm", "best norm", "ratio there", "step size", "answer")
    return Table(header, rows, caption=_BEST)


def _over_settings(matrix: TunedMatrix) -> Section:
    """The ratio of each optimizer in one norm, its own or the best, at every setting."""
    rows = []
    for method in matrix.methods:
        norm = matrix.own_norm(method) or matrix.best(method).norm
        answers = matrix.answers(method)
        for row in matrix.rows(method):
            found = matrix.runs.ratio(row, norm)
            rows.append(
                (
                    method,
                    norm,
                    matrix.setting(row) or "-",
                    f"{found.median:.4f}",
                    f"[{found.low:.4f}, {found.high:.4f}]",
                    answers[row].outcome if answers[row].norm else answers[row].verdict,
                )
            )
    header = ("optimizer", "norm", "step size", "median ratio", "95 % interval", "answer there")
    caption = "In the own norm of each, or in the best where none is known; intervals one by one."
    return Section("At every setting", table=Table(header, rows, caption=caption))


def _map_seen(matrix: TunedMatrix) -> str:
    """Where each row of the heat map is largest."""
    places = {}
    for method in matrix.methods:
        best = matrix.best(method)
        hatched = "" if best.settled else ", hatched"
        places[method] = (
            f"{best.median:.3f} in {best.norm} at {best.setting or 'its step'}{hatched}"
        )
    return f"The largest ratio of each optimizer. {seen.listed(places)}"
