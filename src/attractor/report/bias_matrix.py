"""The page on where optimizers go: the whole matrix, or the answer for a few of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attractor import plots
from attractor.analysis.bias import BiasMatrix, Cell, MedianInterval, NormAnswer, TunedAnswer
from attractor.provenance import Provenance
from attractor.report import seen
from attractor.report.folder import report_folder
from attractor.report.page import FigureFile, Folded, Section, Table, Words

HEAT_MAP = FigureFile(
    "matrix",
    "Median margin ratio of every optimizer in every norm; the norm of each optimizer is outlined "
    "where one is known.",
)
CURVES = FigureFile(
    "curves",
    "Margin ratio in every norm against iterations, median over data sets.",
)

_BEST = "Each optimizer in the norm in which its median ratio is largest, with 95 % intervals."
_MOST_ANSWERS = 6
"""Answers that are listed one by one; of more, optimizers are grouped by them."""
RULES = (
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
        matrix: What ``attractor.analysis.bias_matrix`` returned.
        title: Title of the page.
        source: What was trained, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    summary = matrix.summary()
    several = len(matrix.methods) > 1
    with report_folder(
        directory, title, source, summary, "matrix", provenance=provenance
    ) as report:
        matrix.save(report.place / "matrix.nc")
        matrix.save(report.place / "matrix.csv")
        heat_map = report.picture(HEAT_MAP, plots.bias_matrix_figure(matrix), _map_seen(matrix))
        curves = report.picture(CURVES, plots.ratio_curves_figure(matrix), curves_seen(matrix))
        report.findings += folded_findings(
            {method: matrix.answer(method) for method in matrix.methods}
        )
        report.sections += [
            _medians(matrix, heat_map) if several else _one_optimizer(matrix),
            Section("As training goes on", figure=curves),
            settings_section(summary, summary["optimizers"]),
            Section("How to read this", RULES),
        ]
    return summary


def folded_findings(answers: Mapping[str, NormAnswer | TunedAnswer]) -> list[Words | Folded]:
    """The answer of each optimizer; of many, who has which answer, and each folded away."""
    each = [f"{method}: {found}." for method, found in answers.items()]
    if len(each) <= _MOST_ANSWERS:
        return [*each]
    groups: dict[str, list[str]] = {}
    for method, found in answers.items():
        verdict = f"Maximizes the {found.norm} margin" if found.norm else found.verdict.capitalize()
        groups.setdefault(verdict, []).append(method)
    lines = [f"{verdict}: {', '.join(methods)}." for verdict, methods in groups.items()]
    return [*lines, Folded("Each of them, with its numbers", each)]


def ratio_text(found: MedianInterval | Cell) -> str:
    """A median ratio with its interval, which no line break parts."""
    space = "\N{NO-BREAK SPACE}"
    return f"{found.median:.4f}{space}[{found.low:.4f},{space}{found.high:.4f}]"


def _medians(matrix: BiasMatrix, heat_map: FigureFile) -> Section:
    """The whole matrix as a heat map, and what each optimizer does in its best norm."""
    rows = []
    for method in matrix.methods:
        best, own, enough = matrix.best(method), matrix.own_norm(method), matrix.enough(method)
        found, answer = matrix.ratio(method, best), matrix.answer(method)
        rows.append(
            (
                method,
                own or "not known",
                best,
                ratio_text(found),
                "-" if enough is None else str(enough),
                str(matrix.highest(method)[best]),
                answer.outcome if answer.norm else answer.verdict,
            )
        )
    header = (
        "optimizer", "its own norm", "best norm", "ratio there", "own ratio >= 0.97",
        "best in", "answer",
    )  # fmt: skip
    return Section(
        "Every optimizer in every norm", table=Table(header, rows, caption=_BEST), figure=heat_map
    )


def _map_seen(matrix: BiasMatrix) -> str:
    """Where each row of the heat map is largest."""
    places = {}
    for method in matrix.methods:
        best, own = matrix.best(method), matrix.own_norm(method)
        outlined = "outlined" if best == own else f"outlined: {own}" if own else "none outlined"
        places[method] = f"{matrix.ratio(method, best).median:.3f} in {best} ({outlined})"
    return f"The largest ratio of each optimizer. {seen.listed(places)}"


def curves_seen(matrix: BiasMatrix) -> str:
    """How the ratio goes in every norm; of several optimizers, in that with the highest."""
    courses = {}
    several = len(matrix.methods) > 1
    for method in matrix.methods:
        curves = matrix.data["margin_ratio_curve"].sel(optimizer=method)
        for norm in [matrix.best(method)] if several else matrix.compared(method):
            values = curves.sel(norm=norm).transpose("record", "instance").values
            known = np.isfinite(matrix.data["step"].sel(optimizer=method).values)
            name = f"{method} in {norm}" if several else norm
            courses[name] = f"margin ratio {seen.course(np.nanmedian(values[known], axis=1))}"
    return f"Medians over data sets. {seen.listed(courses)}"


def _one_optimizer(matrix: BiasMatrix) -> Section:
    """The ratios of a single optimizer, a line for each norm."""
    (method,) = matrix.methods
    counts = matrix.highest(method)
    halfway = matrix.data["margin_ratio_halfway"].sel(optimizer=method).median("instance")
    rows = []
    for norm in sorted(counts, key=lambda one: -matrix.ratio(method, one).median):
        found = matrix.ratio(method, norm)
        rows.append(
            (
                norm,
                f"{found.median:.4f}",
                f"[{found.low:.4f}, {found.high:.4f}]",
                f"{float(halfway.sel(norm=norm)):.4f}",
                str(counts[norm]),
            )
        )
    header = ("norm", "median ratio", "95 % interval", "halfway", "highest in data sets")
    return Section("Margin ratio in every norm", table=Table(header, rows))


def settings_section(summary: dict[str, Any], runs: Sequence[dict[str, Any]]) -> Section:
    """Step sizes, how gradients were read, and how runs ended.

    Args:
        summary: The whole of what is written.
        runs: What it says of each row that was run.
    """
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
        for row in runs
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
