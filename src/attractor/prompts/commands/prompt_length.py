"""How long a prompt must be for a head to be affine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor import prompts
from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Report, Seed, recorded, report_output
from attractor.cli.session import session
from attractor.cli.texts import layout_block
from attractor.prompts.files.head import HEAD_LAYOUT, HeadCase
from attractor.results.paper import LARGE_PROMPT
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, check_paths, existing_file
from attractor.support.storage.markers import REPORT

ERROR = 0.1
"""The relative error required where none is given."""
QUERIES = 1000
"""The number of queries drawn where the file has no samples of them."""


def prompt_length(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An attention head, .npz or .safetensors.")
    ],
    error: Annotated[
        float, typer.Option(help="The relative root-mean-square error to find lengths for.")
    ] = ERROR,
    length: Annotated[
        list[int] | None,
        typer.Option(min=1, help="A length to report the error of; may be given several times."),
    ] = None,
    queries: Annotated[
        int, typer.Option(min=1, help="Queries to draw, where the file has no samples of them.")
    ] = QUERIES,
    out: Report = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reads a head, finds how long its prompts must be, and reports."""
    arguments = recorded(locals())
    with session("prompt-length", as_json=as_json, quiet=quiet, out=[out]) as current:
        if not error > 0:
            raise InvalidInputError("error", f"{error:g} is not above 0", "Give 0.1 for 10 %")
        check_paths([report_output("prompt-length", out)], [Input("FILE", file)])
        existing_file(file, HeadCase.missing)

        from attractor.prompts.length.how_long import ERRORS, LENGTHS, prompt_length as find

        loaded = prompts.load_head(file)
        found = find(
            loaded.head, loaded.tokens, loaded.queries, errors=(*ERRORS, error),
            lengths=length or LENGTHS, drawn_queries=queries, seed=seed,
        )  # fmt: skip
        current.show(found)
        if out is None:
            current.result(**found.summary())
            current.unwritten()
            return
        from attractor.cli.provenance import report_provenance
        from attractor.prompts.length.page import write_prompt_length_report

        cited = LARGE_PROMPT.bibtex("attention over Gaussian tokens is affine")
        made = report_provenance(
            "prompt-length", arguments, source=loaded, seeds=[seed], bibtex=[cited]
        )
        source = f"{file.name}: {loaded.size_in_words}"
        written = write_prompt_length_report(out, found, error, source=source, provenance=made)
        current.wrote("report", out / REPORT, **written)


COMMAND = Command(
    prompt_length,
    "Say how long a prompt must be for an attention head to act as over infinitely "
    "many tokens, where over Gaussian tokens it is affine, and how far it is from "
    "affine however long the prompt is.",
    {
        "attractor prompt-length head.npz --error 0.1": 2,
    },
    (
        "FILE is a .npz or .safetensors file with these arrays:",
        layout_block(HEAD_LAYOUT),
        "The law of the tokens is that of samples, Gaussian, a mixture, or one of independent "
        "coordinates; for all but samples errors over prompts of it are exact. Texts are an array"
        " of texts in .npz, a JSON list in the metadata of .safetensors. `attractor example head "
        "head.npz` writes such a file, with --law one of each. Exit codes: 0 done, whatever was "
        "found; 2 bad input; 130 interrupted.",
    ),
)
