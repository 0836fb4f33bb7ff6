"""Check the papers' statements on their data or yours."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attractor.cli.command import Command
from attractor.cli.interruption import behind
from attractor.cli.options import Json, Quiet, Report, Seed, report_output
from attractor.cli.session import Session, session
from attractor.files.reading import ANY
from attractor.papers.ledger.index import listed
from attractor.support.errors import InvalidInputError
from attractor.support.storage import Input, check_paths, existing_file
from attractor.support.storage.markers import REPORT

if TYPE_CHECKING:
    from attractor.files import DataSet
    from attractor.papers.ledger.check import ClaimResult
    from attractor.papers.ledger.claim import Claim
    from attractor.papers.results import ClaimResults
    from attractor.results.provenance import Provenance

SECONDS, SECONDS_ON_DATA, SECONDS_OF_CLASSIFIERS = 2.0, 0.7, 300
"""What a claim takes on the paper's data, and on the user's: the mean over claims; what training
of classifiers takes besides, once."""


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
        if names or of or everything or data:
            check_paths([report_output("claims", out)], [Input("data", data)])
        if not (names or of or everything or data):
            lines = {name: one.summary for name, one in listed("claims").items()}
            current.list_names(lines)
            current.result(claims=lines)
            return

        from attractor.papers.ledger.packs import all_claims, load_claims

        chosen = {} if names else all_claims(of)
        spelled: dict[str, str] = {}
        for spelling in names or ():
            loaded = load_claims(spelling)
            chosen |= loaded
            spelled |= dict.fromkeys(loaded, spelling)
        cases = None
        if data is not None:
            existing_file(data, ANY)
            cases = _read(current, data)

        from attractor.papers.files.classifiers import ClassifierCase
        from attractor.papers.hypotheses_table import check_hypotheses
        from attractor.papers.ledger.check import check_claim
        from attractor.papers.pages.claims import claims_summary, write_claims_report
        from attractor.papers.results import ClaimResults
        from attractor.papers.statement import all_statements
        from attractor.support.progress import progress_bar

        left_out = []
        if data is not None and cases is not None:
            chosen, left_out = _speaking_of(cases[0], chosen, data)
            if left_out:
                count = f"{len(left_out)} claim{'s' if len(left_out) > 1 else ''}"
                current.say(f"Left out: {count} about data that are no {cases[0].kind.words}.")
        tables = [] if cases is None or names else [check_hypotheses(case) for case in cases]
        current.show(*tables)
        whole = bool(everything or of)
        seconds = (SECONDS if cases is None else SECONDS_ON_DATA) * len(chosen)
        if cases is None and any(claim.takes is ClassifierCase for claim in chosen.values()):
            seconds += SECONDS_OF_CLASSIFIERS
        count = f"{len(chosen)} claim{'s' * (len(chosen) > 1)}"
        current.takes(count, seconds, out)
        found, stopped = [], None
        with progress_bar("Checking", len(chosen), enabled=current.progress) as advance:
            try:
                for name, claim in chosen.items():
                    advance.note(name)
                    begun = time.perf_counter()
                    found.append(check_claim(claim, cases, seed=seed))
                    advance(1)
                    if whole:  # for minutes, so that a log should say how far it is
                        how = f"{len(found)} of {len(chosen)}, {time.perf_counter() - begun:.1f} s"
                        current.say_lines([f"{name}: {found[-1].outcome.value} ({how})"])
            except BaseException as error:
                if behind(error) is None or not found:
                    raise
                stopped = error
        results = ClaimResults(tuple(found))
        current.show(results)
        _next(current, results, cases)
        if stopped is not None:
            rest = "they are in the report" if out is not None else "no report is written"
            current.say(f"Stopped after {len(found)} of {count}: {rest}.")
        statements_of = all_statements(of) if whole else ()
        if out is None:
            summary = claims_summary(results, tables, statements_of)
            current.result(left_out=left_out, **summary)
            if stopped is not None:
                raise stopped
            current.unwritten("A report, with the data on which claims fail")
            return
        source = "The claims' own data." if data is None else f"Data: {data.name}"
        summary = write_claims_report(
            out, results, source=source, hypotheses=tables, statements=statements_of,
            provenance=claims_provenance(found, cases, seed, spelled),
        )  # fmt: skip
        for name, claim in summary["claims"].items():
            if "file" in claim.get("counterexample", {}):
                reader = chosen[name].takes.kind.reader
                stored = out / claim["counterexample"]["file"]
                current.say_lines([f"Counterexample, which is read by: {reader} {stored}"])
        current.wrote("report", out / REPORT, left_out=left_out, **summary)
        if stopped is not None:
            raise stopped


def _next(current: Session, results: ClaimResults, cases: Sequence[DataSet] | None) -> None:
    """The next command where an outcome says nothing about the claim."""
    from attractor.papers.ledger.claim import Outcome

    unmet = [one.claim.name for one in results if one.outcome is Outcome.ASSUMPTION_NOT_MET]
    if unmet and cases is not None:
        why = "on data that meet the assumptions, the paper's"
        current.suggest(f"attractor claims {unmet[0]}", why)
    open_ones = [one.claim.name for one in results if one.outcome is Outcome.NOT_SETTLED]
    if open_ones:
        current.suggest(current.again(seed=1), "for what is not settled, other draws")


def _list_statements(current: Session, of: str | None) -> None:
    """Prints the statements of each paper with what checks them."""
    from attractor.papers.statement import all_statements, by_paper

    listed = all_statements(of)
    for paper, those in by_paper(listed).items():
        lines = [paper.citation]
        for one in those:
            lines += [f"  {one.title}"]
            lines += [f"      claim {name}" for name in one.claims]
            lines += [f"      figure {name}" for name in one.figures]
            lines += [f"      not checked: {one.missing}"] if one.missing else []
        current.say_lines([*lines, ""])
    current.result(statements=[one.summary() for one in listed])


def _read(current: Session, data: Path) -> Sequence[DataSet]:
    """The data of a file; before the papers are loaded, so that a bad one is refused soon."""
    from attractor.corpora.files.corpus import CorpusCase
    from attractor.files import load

    loaded = load(data)
    if isinstance(loaded, CorpusCase):
        current.say(*loaded.notices)
    return loaded.data_sets()


def _speaking_of(
    case: DataSet, chosen: Mapping[str, Claim], file: Path
) -> tuple[dict[str, Claim], list[str]]:
    """The claims that speak of such data, and the names of the others."""
    taken = {name: claim for name, claim in chosen.items() if isinstance(case, claim.takes)}
    if not taken:
        other = next(iter(chosen.values())).takes.kind.words
        raise InvalidInputError(
            "data",
            f"{file.name} is a {case.kind.words}, and what is to be checked speaks of another kind",
            f"Give a {other}",
        )
    return taken, [name for name in chosen if name not in taken]


def claims_provenance(
    found: Sequence[ClaimResult],
    cases: Sequence[DataSet] | None,
    seed: int,
    spelled: Mapping[str, str],
) -> Provenance:
    """Where outcomes of claims come from.

    Args:
        found: The outcomes.
        cases: The user's data, or None for the papers' own.
        seed: Names all that is random.
        spelled: By name of a claim, how it was asked for, where that is not its name.
    """
    from attractor.results.provenance import Provenance

    hashes = [case.hash for case in cases or ()]
    chosen = [one.claim for one in found]
    names = [*dict.fromkeys(spelled.get(claim.name, claim.name) for claim in chosen)]
    settings = {claim.name: {"tolerance": claim.bound, "sense": claim.sense} for claim in chosen}
    return Provenance.record(
        "claim",
        ", ".join(names),
        arguments={"names": names, "data": cases is not None, "seed": seed},
        data=" ".join(hashes) or None,
        seeds=[seed],
        settings=settings,
        bibtex=[claim.bibtex for claim in chosen],
    )


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
