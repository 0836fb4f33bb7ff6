"""``attractor example head``: a random head with the laws of its tokens."""

from __future__ import annotations

from typing import Annotated

import typer

from attractor.cli.example_files import ArrayPath, Folder, destination, quoted
from attractor.cli.options import Json, Quiet, Seed
from attractor.cli.session import session
from attractor.cli.texts import layout_lines
from attractor.prompts.files.head import HEAD_LAYOUT

SAMPLED_TOKENS = 10_000
"""The number of tokens in a head file of samples."""

LAWS = ("gaussian", "mixture", "product", "empirical")
"""The laws of tokens in a head file to choose from."""


def head(
    path: ArrayPath,
    samples: Annotated[
        bool,
        typer.Option("--samples", help="Tokens sampled from a sphere, in place of Gaussian ones."),
    ] = False,
    law: Annotated[str, typer.Option(help=f"The law of the tokens: {', '.join(LAWS)}.")] = LAWS[0],
    out: Folder = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a valid head file: a random attention head in R^8, with its tokens and queries."""
    with session("example head", as_json=as_json, quiet=quiet) as current:
        file = destination(path, out)

        from attractor.prompts import load_head, random_head, save_head

        count = SAMPLED_TOKENS if samples else None
        save_head(file, *random_head(samples=count, law=law, seed=seed))
        loaded = load_head(file)
        current.result(file=str(file.absolute()), seed=seed)
        current.say(f"Wrote {file.absolute()}", f"It holds {loaded.size_in_words}:")
        entries = loaded.to_arrays()[0]
        shown = {name: what for name, what in HEAD_LAYOUT.items() if name in entries}
        current.say_lines(f"  {line}" for line in layout_lines(shown))
        current.suggest(
            f"attractor prompt-length {quoted(file)} --error 0.1 --out prompt-length-report"
        )
