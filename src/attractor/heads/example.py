"""``attractor example heads``: heads with known rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.example_files import Folder, destination, quoted
from attractor.cli.options import Json, Quiet, Seed
from attractor.cli.session import session
from attractor.support.errors import InvalidInputError


def heads(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A .nc file.")],
    documents: Annotated[int, typer.Option(min=2, help="Sentences, with a query each.")] = 240,
    out: Folder = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write heads as captured from a model, three layers of four, with known rules."""
    with session("example heads", as_json=as_json, quiet=quiet) as current:
        file = destination(path, out)
        if file.suffix != ".nc":
            raise InvalidInputError("path", f"{file} is no .nc file", "Give a name like heads.nc")

        from attractor.heads import planted_heads
        from attractor.heads.captured.planted import PLANTED

        captured = planted_heads(documents, seed=seed)
        captured.save(file)
        current.result(file=str(file.absolute()), seed=seed)
        current.say(f"Wrote {file.absolute()}")
        current.say(f"It holds heads on {documents:,} sentences. What each head follows:")
        current.list_names(
            {
                f"  {layer}.{head}": rule
                for layer, rules in enumerate(PLANTED)
                for head, rule in enumerate(rules)
            }
        )
        current.suggest(f"attractor audit {quoted(file)} --out audit-report")
