"""The page of two results side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from attractor import plots
from attractor.records import axis_of
from attractor.report import seen
from attractor.report.folder import ReportFolder, report_folder
from attractor.report.page import FigureFile, Folded, Section, Table, Words
from attractor.report.run_comparison import ComparedNumber, RunComparison, in_words
from attractor.report.sides import MATRIX, VERDICT
from attractor.report.write import direction_picture, training_picture

NUMBERS = "comparison.json"
_MOST_FINDINGS = 8
_MOST_ROWS = 400
RATIOS = FigureFile(
    "ratios",
    "Left: median margin ratios of both with their 95 % intervals. Right: the second less the "
    "first, with its interval; where zero is inside, they are not told apart.",
)


def write_comparison_report(directory: str | os.PathLike[str], comparison: RunComparison) -> None:
    """Writes ``report.html``, its pictures as PNG and SVG, and ``comparison.json``.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        comparison: What ``compare`` returned.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    first, second = comparison.names
    title = f"{second} against {first}"
    source = f"Two results of kind {comparison.kind}. {comparison.pairing}"
    numbers = comparison.summary()
    with report_folder(directory, title, source, numbers, "compare", name=NUMBERS) as report:
        report.findings += _findings(comparison.findings())
        if comparison.settings:
            rows = [(name, *values) for name, values in comparison.settings.items()]
            table = Table(("setting", first, second), rows, words=True)
            report.sections.append(Section("Settings that differ", table=table))
        if comparison.texts:
            rows = [(name, *values) for name, values in comparison.texts.items()]
            table = Table(("", first, second), rows, words=True)
            report.sections.append(Section("Words that differ", table=table))
        if comparison.numbers:
            report.sections.append(_numbers(comparison))
        if comparison.kind == MATRIX:
            report.sections.append(_ratios(comparison, report))
        elif comparison.kind == VERDICT:
            report.sections += _curves(comparison, report)


def _findings(found: Sequence[str]) -> list[Words | Folded]:
    shown: list[Words | Folded] = [*found[:_MOST_FINDINGS]]
    rest = found[_MOST_FINDINGS:]
    return [*shown, Folded(f"{len(rest)} more", rest)] if rest else shown


def _numbers(comparison: RunComparison) -> Section:
    shown = comparison.numbers[:_MOST_ROWS]
    rows = [
        (
            one.name, *map(in_words, (one.first, one.second, one.difference)),
            str(one.pairs or "-"), one.word,
        )
        for one in shown
    ]  # fmt: skip
    left = len(comparison.numbers) - len(shown)
    words = [f"{left:,} more numbers are in {NUMBERS}."] if left else []
    header = ("", *comparison.names, "difference", "pairs", f"{comparison.names[1]} is")
    return Section("Numbers", words, table=Table(header, rows))


def _ratios(comparison: RunComparison, report: ReportFolder) -> Section:
    shown = [one for one in comparison.numbers if _drawn(one)]
    figure = plots.compared_figure(
        comparison.names,
        [one.name for one in shown],
        np.array([[one.first, one.second, one.difference] for one in shown]),
    )
    said = {one.name: f"difference {in_words(one.difference)}" for one in shown}
    return Section("Margin ratios", figure=report.picture(RATIOS, figure, seen.listed(said)))


def _drawn(one: ComparedNumber) -> bool:
    return bool(np.isfinite([one.first.median, one.second.median]).all())


def _curves(comparison: RunComparison, report: ReportFolder) -> list[Section]:
    """The curves of both over one another, of each study."""
    sections = []
    for name, both in comparison.studies.items():
        axes = {axis_of(one["norm"]) for one in both}
        if len(axes) > 1:  # steps and times have no axis in common
            continue
        runs = dict(zip(comparison.names, both, strict=True))
        ending = f", {name}" if name else ""
        for title, picture in (
            ("Where the matrices point", direction_picture),
            ("How training went", training_picture),
        ):
            figure = picture(report, runs, f"_{len(sections)}" if sections else "")
            sections.append(Section(f"{title}{ending}", figure=figure))
    return sections
