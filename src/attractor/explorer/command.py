"""A page to drag tokens on: the attractor follows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor import explorer
from attractor.cli.command import Command
from attractor.cli.inputs import need_head, one_data_set, read_tokens, select
from attractor.cli.options import (
    Json,
    OptionalLearningRate,
    Quiet,
    SelectedTokens,
    TokenFile,
    UnusedSeed,
)
from attractor.cli.session import session
from attractor.cli.texts import about_tokens
from attractor.explorer.state import scene_named
from attractor.files.token_file import LoadedTokens
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, OutputFile, check_paths, existing_file, write_file

STEPS = 2000
"""Steps where neither the file nor the command line says it."""


def explore(
    file: TokenFile = None,  # pyright: ignore[reportArgumentType]
    out: Annotated[
        Path, typer.Option("--out", metavar="PAGE", help="The page, an .html file.")
    ] = Path("explorer.html"),
    scene: Annotated[
        str | None,
        typer.Option(help="In place of FILE: the name of a scene, which makes a point of a paper."),
    ] = None,
    optimizer: Annotated[
        list[str] | None,
        typer.Option(
            help="The optimizer; twice for two side by side; default: that of the file, or "
            "normalized gradient descent: gd, ngd, md:p=1.5, sign, greedy, spectral. A page "
            "computes these alone."
        ),
    ] = None,
    lr: OptionalLearningRate = None,
    parameterization: Annotated[
        str | None,
        typer.Option(
            help="What is trained: W, its factors KQ, a prompt p, or (v, p); default: what the "
            "file says, or W."
        ),
    ] = None,
    loss: Annotated[
        str, typer.Option(help="The loss: logistic, exponential, linear.")
    ] = "logistic",
    steps: Annotated[
        int | None, typer.Option(min=1, help="Training steps; default: those of the file, or 2000.")
    ] = None,
    norm: Annotated[
        str | None,
        typer.Option(help="The norm to minimize; default: the one that the optimizer descends."),
    ] = None,
    selection: SelectedTokens = None,
    projection: Annotated[
        str,
        typer.Option(
            help="What tokens of more than two numbers are seen in: the plane of two solutions, or "
            "of the two principal directions.",
        ),
    ] = "solutions",
    data_set: Annotated[
        int | None,
        typer.Option(min=0, help="Which of several data sets in the file, counted from 0."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    seed: UnusedSeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Writes the page."""
    with session("explore", as_json=as_json, quiet=quiet) as current:
        given = [] if file is None else [Input("FILE", file)]
        check_paths([OutputFile("out", out, ".html")], given)
        if (file is None) == (scene is None):
            raise InvalidInputError(
                "file",
                "neither it nor a scene is given" if file is None else "a scene is given, too",
                "Give a token file, or --scene with a name",
            )
        if file is not None:
            existing_file(file, LoadedTokens.missing)

        from attractor.explorer.explorer import page_of

        if scene is not None:
            state = scene_named(scene)
        else:
            from attractor.cli.plans import plan

            loaded = one_data_set(read_tokens(file, loss, parameterization), file, data_set)
            plans = [plan(loaded, optimizer=one, lr=lr) for one in optimizer or [None]]
            named = selection is not None or loaded.selection is not None
            state = explorer.state_of(
                loaded.tokens,
                need_head(loaded, file),
                [one.optimizer for one in plans],
                parameterization=loaded.parameterization,
                start=loaded.initial,
                steps=steps or loaded.steps or STEPS,
                loss=loss,
                norm=norm,
                selection=select(loaded, file, selection)[0] if named else None,
                projection=projection,
                title=title or file.stem,
            )
        write_file(out, page_of(state, title))
        count = sum(map(len, state["keys"]))
        sequences = len(state["keys"])
        current.say(f"{sequences} sequence{'s' * (sequences > 1)} with {count} tokens.")
        plane = state.get("projection")
        if plane is not None:
            current.say(
                f"Seen in {plane['words']}; {plane['hidden']:.1%} of the squared distances between "
                "tokens are hidden. Nothing can be dragged there; --scene NAME writes a page on "
                "which everything can."
            )
        current.wrote(
            "page",
            out,
            parameterization=state["parameterization"],
            trainings=state["trainings"],
            steps=state["steps"],
            projection=plane and {"words": plane["words"], "hidden": plane["hidden"]},
        )


COMMAND = Command(
    explore,
    "Write a page on which tokens are dragged: the solution, the basins and the path "
    "of training follow at once.",
    {
        "attractor explore tokens.npz --out tokens.html": 3,
        "attractor explore --scene two-basins": 1,
    },
    about_tokens(
        "The page is one file that any browser opens; it makes no request. Tokens of two numbers "
        "are dragged. Tokens of more are seen in a plane, with solutions and paths that are "
        "computed here."
    ),
)
