"""Check the papers' statements on their data or yours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.command import Command
from attractor.cli.options import Json, Quiet, Report, Seed, report_output
from attractor.cli.session import Session, session
from attractor.files.reading import ANY
from attractor.papers.ledger.index import listed
from attractor.papers.statement import all_statements, by_paper
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, check_paths, existing_file


def claims(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Claims to check; module:claim for one of your own."
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(
            "--of", metavar="PAPER", help="Check every claim of a paper, or of an installed pack."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Check every claim.")] = False,
    statements: Annotated[
        bool,
        typer.Option(
            "--statements",
            help="List every statement, figure and table of the papers, with what checks it.",
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="Token file, corpus, head, in-context tasks or classifier results.",
        ),
    ] = None,
    out: Report = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Lists or checks claims."""
    with session("claims", as_json=as_json, quiet=quiet, out=[out]) as current:
        if names and (of or everything):
            raise InvalidInputError(
                "NAME", "it was given beside --of or --all", "Give the one or the other"
            )
        if statements and (names or everything or data):
            raise InvalidInputError(
                "--statements", "it lists, and checks nothing", "Give it alone, or with --of"
            )
        if statements:
            _list_statements(current, of)
            return
        if not (names or of or everything or data):
            lines = {name: one.summary for name, one in listed("claims").items()}
            current.list_names(lines)
            current.result(claims=lines)
            return

        check_paths([report_output("claims", out)], [Input("data", data)])
        if data is not None:
            existing_file(data, ANY)

        from attractor.papers.commands.checking import check  # which loads JAX

        whole = bool(everything or of)
        check(current, names, of, data, out, seed, whole=whole)


def _list_statements(current: Session, of: str | None) -> None:
    """Prints the statements of each paper with what checks them."""
    every = all_statements(of)
    for paper, those in by_paper(every).items():
        lines = [paper.citation]
        for one in those:
            lines += [f"  {one.title}"]
            lines += [f"      claim {name}" for name in one.claims]
            lines += [f"      figure {name}" for name in one.figures]
            lines += [f"      not checked: {one.missing}"] if one.missing else []
        current.say_lines([*lines, ""])
    current.result(statements=[one.summary() for one in every])


COMMAND = Command(
    claims,
    "Check the papers' statements: on the papers' data, or on yours.",
    {
        "attractor claims transformers-as-svms/rank": 4,
        "attractor claims --data tokens.npz": 29,
        "attractor claims --of max-margin --out claims-report": 29,
        "attractor claims my_module:CLAIM --data tokens.npz": 2,
    },
    (
        "Without a name, --of, --all or --data the claims are listed, a line each; --statements "
        "lists every statement, figure and table of the papers with the claims and figures that "
        "check it, or the reason why there are none, and so does the report of --of and --all. "
        "Papers are those of Attractor and of packs that are installed beside it; module:claim "
        "is a claim of your own, or all of a ledger, in a module that is installed or lies in "
        "this folder. An outcome is holds, fails (the smallest data found on which it does are "
        "saved; `attractor check` reads them, `attractor corpus` where they are a corpus, and "
        "`attractor prompt-length` where they are a head), not settled (the interval of an "
        "estimate has the bound inside), assumption not met, or vacuous here. Claims speak of "
        "token files, of corpora, of heads, of in-context regression, of in-context tasks with "
        "their prompts, or of results of trained classifiers (results.nc, which figures of them "
        "leave beside their models, or your own with the same variables); with --data those are "
        "checked that speak of what your file is, and the others are counted. With --data alone "
        "it is said first which hypotheses of the papers your file meets. On the papers' data, "
        "claims about classifiers train them first: --all and --of mirror-descent take some "
        "five minutes longer for it. `attractor check --help` shows what a token file holds, "
        "`attractor corpus --help` what a corpus does, and `attractor prompt-length --help` "
        "what a head file does. Exit codes: 0 done, whatever the outcomes; 2 bad input; 130 "
        "interrupted.",
    ),
)
