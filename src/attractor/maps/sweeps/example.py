"""``attractor example sweep``: a plan with every key explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.example_files import Folder, destination, quoted
from attractor.cli.options import Json, Quiet, UnusedSeed
from attractor.cli.session import session
from attractor.maps import sweeps
from attractor.support.errors import InvalidInputError
from attractor.support.storage import write_file


def sweep(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A .toml file.")],
    out: Folder = None,
    seed: UnusedSeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a plan of a sweep: three optimizers at five learning rates, every key explained."""
    with session("example sweep", as_json=as_json, quiet=quiet) as current:
        file = destination(path, out)
        if file.suffix != ".toml":
            raise InvalidInputError(
                "path", f"{file} is no .toml file", "Give a name like plan.toml"
            )

        write_file(file, sweeps.example_plan(file.name))
        current.result(file=str(file.absolute()))
        current.say(f"Wrote {file.absolute()}")
        current.suggest(
            f"attractor sweep {quoted(file)} --store {quoted(file.with_suffix('.zarr'))}"
        )
