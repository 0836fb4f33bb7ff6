"""The folder of a report: its page, its pictures, its numbers, all at once or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from attractor import plots
from attractor.report.page import FigureFile, Folded, Section, Words, render_page
from attractor.results.provenance import Provenance, embed_all
from attractor.support.storage import atomic_directory
from attractor.support.storage.markers import REPORT as MARKER
from attractor.version import __version__

FOOTER = (
    f"Written by Attractor {__version__}. What it shows lies beside it: figures as PNG and SVG, "
    "numbers as JSON, and as NetCDF or CSV."
)
"""The last line of a page."""


@dataclass
class ReportFolder:
    """The contents of the folder of a report, filled while it is made.

    Attributes:
        place: The folder, for data that lie beside the page.
        findings: What was found, in a sentence each, the most important first.
        sections: The rest of the page.
    """

    place: Path
    findings: list[Words | Folded] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    def picture(self, file: FigureFile, drawing: Figure, seen: str) -> FigureFile:
        """Writes a picture, and returns what a section shows it by.

        Args:
            file: Its name and caption.
            drawing: The picture.
            seen: What is seen in it, in numbers, for those who cannot see it.
        """
        plots.save_figure(drawing, self.place, file.name)
        return dataclasses.replace(file, seen=seen)


@contextlib.contextmanager
def report_folder(
    directory: str | os.PathLike[str],
    title: str,
    source: str,
    summary: dict[str, Any],
    command: str,
    *,
    provenance: Provenance | None = None,
    name: str = "summary.json",
    page: str = MARKER,
    marker: str = MARKER,
) -> Iterator[ReportFolder]:
    """Writes a report: what the block fills in, as a page with its numbers beside it.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        title: Title of the page.
        source: What was analyzed, a line below it.
        summary: The numbers; the block may add some.
        command: The command that writes such reports; no other's is replaced.
        provenance: Where it comes from; put into every file that can hold it.
        name: The file for the numbers.
        page: The file for the page.
        marker: The file by which the folder is known, which the block writes unless it is the page.

    Raises:
        InvalidInputError: If the folder holds something else, or the report of another command.
    """
    with atomic_directory(directory, marker, command) as place, plots.style():
        report = ReportFolder(place)
        yield report
        (place / name).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        text = render_page(
            title,
            source,
            report.findings,
            report.sections,
            figures=place,
            command=command,
            footer=FOOTER,
        )
        (place / page).write_text(text, encoding="utf-8")
        if provenance is not None:
            embed_all(place, provenance)
