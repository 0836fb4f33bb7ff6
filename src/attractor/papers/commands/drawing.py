"""What ``attractor figures`` does once it knows which figures to draw."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from attractor.cli.session import Session
from attractor.margin.solved_once import solved_once
from attractor.papers.drawing import DrawnFigure, check_request, draw, figure_files
from attractor.papers.ledger.packs import all_figures, get_figure
from attractor.papers.pages.figures import GALLERY, write_gallery
from attractor.results import plain_table
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, OutputFile, OutputFolder, check_paths

SECONDS = 5
"""What a figure takes at size quick, in the mean; those that train models take minutes."""


def draw_all(
    current: Session,
    names: Sequence[str] | None,
    of: str | None,
    out: Path,
    *,
    size: str,
    seeds: int | None,
    seed: int,
    as_published: bool,
    data: Path | None,
) -> None:
    """Draws figures, shows their readings and writes the gallery.

    Args:
        current: The session of the command.
        names: The figures; None for all.
        of: The paper or pack whose figures are drawn; None for all.
        out: The folder.
        size: ``"quick"``, ``"small"`` or ``"paper"``.
        seeds: Number of trials or data sets; None for that of the size.
        seed: The first seed.
        as_published: Whether artifacts of the published figures are drawn, where there are any.
        data: The user's own data, for figures that take some.
    """
    chosen = {name: get_figure(name) for name in names} if names else all_figures(of)
    if not any(figure.takes for figure in chosen.values()):
        _refuse_idle("none of these figures is made of data of yours", data=data)
    if not any(figure.artifact for figure in chosen.values()):
        _refuse_idle("none of these figures has an artifact", as_published=as_published)
    for figure in chosen.values():
        published = as_published and bool(figure.artifact or names)
        check_request(figure, size, seeds, published, data if figure.takes or names else None)
    files = [out / GALLERY]
    for figure in chosen.values():
        files += figure_files(figure, out, as_published and bool(figure.artifact)).values()
    outputs = [
        OutputFolder("out", out, command="figures"),
        *(OutputFile("out", file) for file in files),
    ]
    check_paths(outputs, [Input("data", data)])
    if size == "quick":
        current.takes(f"{len(chosen)} figures", SECONDS * len(chosen), out)
    else:
        current.say(f"At size {size} a figure takes minutes, some hours.")
    drawn = []
    with solved_once():  # which figures share, too
        for number, figure in enumerate(chosen.values(), start=1):
            began = time.perf_counter()
            done = draw(
                figure,
                out,
                size=size,
                seeds=seeds,
                seed=seed,
                as_published=as_published and bool(figure.artifact),
                progress=current.progress,
                source=data if figure.takes else None,
            )
            drawn.append(done)
            how = f"{time.perf_counter() - began:.1f} s" if done.computed else "of an earlier run"
            current.say(_readings(done, f"{number} of {len(chosen)}, {how}"))
    page = write_gallery(out, drawn)
    current.say(f"Figures: {page.absolute()}")
    current.result(
        page=str(page.absolute()),
        figures={done.figure.name: done.summary() for done in drawn},
    )


def _refuse_idle(why: str, **options: Any) -> None:
    """Refuses options that would do nothing."""
    for name, value in options.items():
        if value:
            raise InvalidInputError(name, why, "Leave it out")


def _readings(done: DrawnFigure, how: str) -> Table:
    """The readings of a figure as a table."""
    table = plain_table(f"{done.figure.name} ({how})")
    table.add_column("what the data show")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("expected", no_wrap=True)
    table.add_column("agrees", no_wrap=True)
    for reading in done.readings:
        mark = Text("yes", "green") if reading.agrees else Text("no", "bold red")
        table.add_row(reading.text, f"{reading.value:.6g}", reading.expected, mark)
    return table
