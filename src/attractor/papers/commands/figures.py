"""Draw the papers' figures, with the data behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Seed
from attractor.cli.session import session
from attractor.papers.ledger.index import listed
from attractor.support.errors import InvalidInputError


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
            idle = {"data": data, "seeds": seeds, "as_published": as_published}
            for name in (name for name, value in idle.items() if value):
                why = "the figures are only listed without a name, --of or --all"
                raise InvalidInputError(name, why, "Leave it out")
            lines = {name: one.summary for name, one in listed("figures").items()}
            current.list_names(lines)
            current.result(figures=lines)
            return

        from attractor.papers.commands.drawing import draw_all  # which loads JAX

        draw_all(
            current, names, of, out,
            size=size, seeds=seeds, seed=seed, as_published=as_published, data=data,
        )  # fmt: skip


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
