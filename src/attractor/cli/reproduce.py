"""``attractor reproduce``: a result run again from its own file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.options import Json, Quiet, UnusedSeed
from attractor.cli.session import session
from attractor.errors import InvalidInputError

HELP = (
    "Run a figure, outcomes of claims or a report again, and say what differs.\n\n"
    "FILE is any file that Attractor wrote for it: a picture, its data, a page or its JSON. It "
    "says which version made it, on which data, with which seeds and settings. Exit codes: 0 "
    "done, whether or not anything differs; 2 bad input; 130 interrupted."
)


def reproduce(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .png, .svg, .nc, .json or .html file.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="The token file, corpus or saved run that it was made from.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    seed: UnusedSeed = 0,
) -> None:
    """Runs a result again and compares."""
    with session("reproduce", as_json=as_json, quiet=quiet) as current:
        from attractor.cli.claims import claims_provenance
        from attractor.cli.provenance import reproduce_report
        from attractor.files import load
        from attractor.papers.data_files import data_sets
        from attractor.papers.reproduction import reproduce_claims, reproduce_figure
        from attractor.provenance import read_provenance

        provenance = read_provenance(file)
        current.say(
            f"{file.name}: {provenance.kind} {provenance.name}, made by Attractor "
            f"{provenance.version} on {provenance.platform}"
        )
        if provenance.arguments.get("data") and data is None:
            kind = "saved run" if provenance.name == "verify" else "file of yours"
            raise InvalidInputError(
                "data", f"it was made from a {kind}", "Give that file with --data"
            )
        if provenance.kind == "figure":
            found = reproduce_figure(file, provenance, progress=current.progress)
        elif provenance.kind == "claim":
            cases = None if data is None else data_sets(load(data), data.name)
            made = claims_provenance(
                provenance.arguments["names"], cases, provenance.arguments["seed"]
            )
            found = reproduce_claims(file, provenance, cases, made)
        else:
            found = reproduce_report(file, provenance, data)
        same = "all the same" if found.same else f"{len(found.differing)} differ"
        current.say(f"Compared {found.compared} results: {same}.")
        current.say(*(f"  {name}: {words}" for name, words in found.differing.items()))
        if found.changed:
            current.say("What has changed since:", *(f"  {words}" for words in found.changed))
        current.result(
            kind=provenance.kind,
            name=provenance.name,
            same=found.same,
            compared=found.compared,
            differing=dict(found.differing),
            changed=list(found.changed),
        )
