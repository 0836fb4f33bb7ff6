"""The page of figures: every drawing with its caption and what it shows as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attractor.papers.drawing import DrawnFigure
from attractor.report.folder import FOOTER
from attractor.report.page import FigureFile, Section, Table, render_page
from attractor.storage import write_file

GALLERY = "index.html"


def write_gallery(folder: Path, drawn: Sequence[DrawnFigure]) -> Path:
    """Writes ``index.html`` beside figures that have been drawn; returns where it is."""
    agreeing = sum(each.agrees for each in drawn)
    page = render_page(
        "Figures",
        f"{len(drawn)} figures",
        [f"{agreeing} of {len(drawn)} show what they are drawn for."],
        [_section(each, folder) for each in drawn],
        figures=folder,
        footer=FOOTER,
    )
    write_file(folder / GALLERY, page)
    return folder / GALLERY


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
    return Section(figure.name, words, table, FigureFile(place, drawn.caption))
