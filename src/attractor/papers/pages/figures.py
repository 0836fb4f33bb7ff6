"""The page of figures: every drawing with its caption and what it shows as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attractor.papers.drawing import DrawnFigure, drawn_before
from attractor.report.folder import FOOTER
from attractor.report.page import FigureFile, Folded, Link, Section, Table, Words, render_page
from attractor.report.seen import listed
from attractor.support.storage import write_file

GALLERY = "index.html"


def write_gallery(folder: Path, drawn: Sequence[DrawnFigure]) -> Path:
    """Writes ``index.html`` beside all figures that lie in a folder; returns where it is.

    Args:
        folder: The folder, which may hold figures of earlier runs.
        drawn: Those drawn now.
    """
    now = {each.files["svg"]: each for each in drawn}
    every = list(({each.files["svg"]: each for each in drawn_before(folder)} | now).values())
    every.sort(key=lambda each: each.agrees)
    page = render_page(
        "Figures",
        f"{len(every)} figure{'s' if len(every) > 1 else ''}",
        _findings(every),
        [_section(each, folder) for each in every],
        figures=folder,
        command="figures",
        footer=FOOTER,
    )
    write_file(folder / GALLERY, page)
    return folder / GALLERY


def _findings(every: Sequence[DrawnFigure]) -> list[Words | Folded]:
    """Which figures do not show what they are drawn for, and how many do."""
    found: list[Words | Folded] = [
        (Link(_title(each)), " does not show what it is drawn for.")
        for each in every
        if not each.agrees
    ]
    count = len(every) - len(found)
    found.append(f"{count} of {len(every)} show what they are drawn for.")
    return [*found, Folded("All figures", [Link(_title(each)) for each in every])]


def _title(drawn: DrawnFigure) -> str:
    as_published = drawn.files["svg"].stem != drawn.figure.name.split("/")[-1]
    return f"{drawn.figure.name}{', as published' if as_published else ''}"


def _section(drawn: DrawnFigure, folder: Path) -> Section:
    figure = drawn.figure
    place = drawn.files["svg"].relative_to(folder).with_suffix("").as_posix()
    rows = [
        (reading.text, f"{reading.value:.6g}", reading.expected, "yes" if reading.agrees else "no")
        for reading in drawn.readings
    ]
    words = [
        f"{figure.paper.citation}, {figure.statement}.",
        f"The published figure: {figure.published}.",
    ]
    table = Table(("what the data show", "value", "expected", "agrees"), rows)
    numbers: dict[str, str] = {}
    for reading in drawn.readings:  # "the same" is the number before, held against another bound
        if not reading.text.endswith("the same"):
            numbers[reading.text] = f"{reading.value:.4g}"
    seen = listed(numbers)
    shown = FigureFile(place, drawn.caption, f"{figure.summary}. {seen}")
    return Section(_title(drawn), words, table, shown)
