"""All commands in one application."""

from __future__ import annotations

from typing import Annotated

import typer

import attractor
from attractor.cli import (
    basins,
    check,
    claims,
    corpus,
    demo,
    example,
    figures,
    in_context,
    matrix,
    prompt_length,
    reproduce,
    solve,
    train,
    verify,
)

app = typer.Typer(
    help="Where softmax attention goes when you train it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo.demo)
app.command(help=check.HELP)(check.check)
app.command(help=corpus.HELP)(corpus.corpus)
app.command("prompt-length", help=prompt_length.HELP)(prompt_length.prompt_length)
app.command(help=solve.HELP)(solve.solve)
app.command(help=train.HELP)(train.train)
app.command(help=verify.HELP)(verify.verify)
app.command(help=matrix.HELP)(matrix.matrix)
app.command(help=basins.HELP)(basins.basins)
app.command(name="in-context", help=in_context.HELP)(in_context.in_context)
app.command(help=claims.HELP)(claims.claims)
app.command(help=figures.HELP)(figures.figures)
app.command(help=reproduce.HELP)(reproduce.reproduce)
app.add_typer(example.app, name="example")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"attractor {attractor.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass
