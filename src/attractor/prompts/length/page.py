"""The page on how long a prompt must be for a head."""

from __future__ import annotations

import os
from typing import Any

from attractor.plots.design.description import description
from attractor.prompts import plots
from attractor.prompts.length import PromptLength
from attractor.prompts.length.result import TITLE, facts, table
from attractor.report.folder import report_folder
from attractor.report.page import FigureFile, Section, Table
from attractor.results.provenance import Provenance
from attractor.support.storage import save_netcdf

ERRORS = FigureFile(
    "error_by_length",
    "Relative root-mean-square error over prompts of independent Gaussian tokens, exact at every "
    "length, along the scores and of the whole output.",
)


def write_prompt_length_report(
    directory: str | os.PathLike[str],
    found: PromptLength,
    error: float,
    *,
    source: str,
    provenance: Provenance | None = None,
) -> dict[str, Any]:
    """Writes ``report.html``, the picture as PNG and SVG, and the numbers as JSON and NetCDF.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        found: What was found.
        error: The error required, one of its errors.
        source: What was read, a line for the page.
        provenance: Where it comes from; put into every file that can hold it.

    Returns:
        What ``summary.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    numbers = found.summary()
    with report_folder(
        directory, TITLE, source, numbers, "prompt-length", provenance=provenance
    ) as report:
        data = found.to_xarray()
        save_netcdf(data, report.place / "prompt_length.nc")
        report.findings += [
            f"{name[0].upper()}{name[1:]}: {value}." for name, value in facts(found)
        ]
        header, *rows = table(found)
        figure = plots.error_by_length_figure(data, error=error)
        picture = report.picture(ERRORS, figure, description(figure))
        report.sections.append(
            Section(
                "Tokens by error, and errors by length", table=Table(header, rows), figure=picture
            )
        )
    return numbers
