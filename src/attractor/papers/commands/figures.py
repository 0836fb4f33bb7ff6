"""Draw the papers' figures, with the data behind them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Seed
from attractor.cli.session import session
from attractor.papers.ledger.index import listed
from attractor.support.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.table import Table

    from attractor.papers.drawing import DrawnFigure

SECONDS = 5
"""What a figure takes at size quick, in the mean; those that train models take minutes."""


def figures(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Figures to draw.")
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", metavar="PAPER", help="Draw every figure of a paper.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Draw every figure.")] = False,
    size: Annotated[
        str,
        typer.Option(help="quick: seconds a figure; small; paper: the published experiment."),
    ] = "quick",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Trials or data sets, in place of the size's.")
    ] = None,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="Draw what rounding or a solver did to the published figure beside the exact one.",
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FOLDER",
            help="Data of yours for figures that take some: a folder that holds aclImdb and "
            "cifar-10-batches-bin.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the figures.")] = Path(
        "attractor-figures"
    ),
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Lists or draws figures."""
    with session("figures", as_json=as_json, quiet=quiet) as current:
        if names and (of or everything):
            raise InvalidInputError(
                "NAME", "it was given beside --of or --all", "Give the one or the other"
            )

        if not (names or of or everything):
            why = "the figures are only listed without a name, --of or --all"
            _refuse_idle(why, data=data, seeds=seeds, as_published=as_published)
            lines = {name: one.summary for name, one in listed("figures").items()}
            current.list_names(lines)
            current.result(figures=lines)
            return

        from attractor.margin.solved_once import solved_once
        from attractor.papers.drawing import check_request, draw, figure_files
        from attractor.papers.ledger.packs import all_figures, get_figure
        from attractor.papers.pages.figures import GALLERY, write_gallery
        from attractor.support.storage import Input, OutputFile, OutputFolder, check_paths

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
                how = (
                    f"{time.perf_counter() - began:.1f} s" if done.computed else "of an earlier run"
                )
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
    from rich.text import Text

    from attractor.results import plain_table

    table = plain_table(f"{done.figure.name} ({how})")
    table.add_column("what the data show")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("expected", no_wrap=True)
    table.add_column("agrees", no_wrap=True)
    for reading in done.readings:
        mark = Text("yes", "green") if reading.agrees else Text("no", "bold red")
        table.add_row(reading.text, f"{reading.value:.6g}", reading.expected, mark)
    return table


COMMAND = Command(
    figures,
    "Draw the papers' figures: PNG, SVG and the labeled data behind them.",
    {
        "attractor figures max-margin/global-and-local --out figures": 4,
    },
    (
        "Without a name, --of or --all the figures are listed, a line each. Figures that the "
        "folder holds already, with the same settings, are not computed again, and long work that"
        " was killed goes on where it was. Exit codes: 0 done, 2 bad input, 130 interrupted.",
    ),
)
