"""What ``attractor claims`` does once it knows which claims to check, on which data."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from attractor.cli.interruption import behind
from attractor.cli.session import Session
from attractor.corpora.files.corpus import CorpusCase
from attractor.files import DataSet, load
from attractor.papers.files.classifiers import ClassifierCase
from attractor.papers.hypotheses_table import check_hypotheses
from attractor.papers.ledger.check import ClaimResult, check_claim
from attractor.papers.ledger.claim import Claim, Outcome
from attractor.papers.ledger.packs import all_claims, load_claims
from attractor.papers.pages.claims import claims_summary, write_claims_report
from attractor.papers.results import ClaimResults
from attractor.papers.statement import all_statements
from attractor.results.provenance import Provenance
from attractor.support.errors import InvalidInputError
from attractor.support.progress import progress_bar
from attractor.support.storage.markers import REPORT

SECONDS, SECONDS_ON_DATA, SECONDS_OF_CLASSIFIERS = 2.0, 0.7, 300
"""What a claim takes on the paper's data, and on the user's: the mean over claims; what training
of classifiers takes besides, once."""


def check(
    current: Session,
    names: Sequence[str] | None,
    of: str | None,
    data: Path | None,
    out: Path | None,
    seed: int,
    *,
    whole: bool,
) -> None:
    """Checks claims, shows the outcomes and writes the report.

    Args:
        current: The session of the command.
        names: The claims, or where those of one's own are; None for all.
        of: The paper or pack whose claims are checked; None for all.
        data: The file of the user's data, or None for the papers' own.
        out: The folder of the report; None for none.
        seed: Names all that is random.
        whole: Whether a paper, or all, was asked for, so that statements are listed.
    """
    chosen = {} if names else all_claims(of)
    spelled: dict[str, str] = {}
    for spelling in names or ():
        loaded = load_claims(spelling)
        chosen |= loaded
        spelled |= dict.fromkeys(loaded, spelling)
    cases, left_out = None, []
    if data is not None:
        cases = _read(current, data)
        chosen, left_out = _speaking_of(cases[0], chosen, data)
        if left_out:
            count = f"{len(left_out)} claim{'s' if len(left_out) > 1 else ''}"
            current.say(f"Left out: {count} about data that are no {cases[0].kind.words}.")
    tables = [] if cases is None or names else [check_hypotheses(case) for case in cases]
    current.show(*tables)
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
    unmet = [one.claim.name for one in results if one.outcome is Outcome.ASSUMPTION_NOT_MET]
    if unmet and cases is not None:
        why = "on data that meet the assumptions, the paper's"
        current.suggest(f"attractor claims {unmet[0]}", why)
    open_ones = [one.claim.name for one in results if one.outcome is Outcome.NOT_SETTLED]
    if open_ones:
        current.suggest(current.again(seed=1), "for what is not settled, other draws")


def _read(current: Session, data: Path) -> Sequence[DataSet]:
    """The data of a file, with what is to be said of them."""
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
