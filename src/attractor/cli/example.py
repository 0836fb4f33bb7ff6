"""``attractor example``: files to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor.attention import LinearHead
from attractor.cli.options import Json, Quiet, Seed
from attractor.cli.session import session
from attractor.datasets.unit_tokens import unit_tokens
from attractor.files import LAYOUT, save_tokens
from attractor.tokens import Tokens

app = typer.Typer(help="Write an example file.", no_args_is_help=True)


@app.command()
def tokens(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A .npz or .safetensors file.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder that PATH is counted from.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a valid token file: 6 sequences of 8 random unit tokens in R^10, with a head."""
    with session("example tokens", as_json=as_json, quiet=quiet) as current:
        file = path if out is None else out / path
        drawn, heads = unit_tokens(6, 8, 10, seeds=[seed])
        assert drawn.labels is not None
        one = Tokens(drawn.keys[0], drawn.queries[0], drawn.labels[0])
        save_tokens(file, one, LinearHead(heads.weight[0]))
        current.result(file=str(file.absolute()), seed=seed)
        current.say(f"Wrote {file.absolute()}", f"It holds {one!r}:")
        for name, (shape, meaning) in LAYOUT.items():
            if name in ("keys", "queries", "labels", "head"):
                current.say(f"  {name:<8} {shape:<10} {meaning}")
        current.say(f"Next: attractor check {file}")
