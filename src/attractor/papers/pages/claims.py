"""The page on claims: the outcome of each, and why."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attractor.files.contents import DataSet
from attractor.papers.claim import Outcome
from attractor.papers.hypotheses_table import HypothesesTable
from attractor.papers.ledger.check import ClaimResult
from attractor.papers.results import ClaimResults
from attractor.papers.statement import Statement, by_paper
from attractor.report.folder import report_folder
from attractor.report.page import Folded, Link, Section, Table, Words
from attractor.results.provenance import Provenance
from attractor.support.errors import InvalidInputError

COUNTEREXAMPLES = "counterexamples"
"""Folder of the files on which a claim fails."""
RESULTS = "claims.json"

_ORDER: Mapping[Outcome, tuple[str, Literal["open", "closed"]]] = {
    Outcome.FAILS: ("fail", "open"),
    Outcome.NOT_SETTLED: ("not settled", "open"),
    Outcome.ASSUMPTION_NOT_MET: ("with an assumption not met", "closed"),
    Outcome.VACUOUS: ("vacuous here", "closed"),
    Outcome.HOLDS: ("hold", "closed"),
}
"""The outcomes as a page has them one after another: their words for several, and how each is at
first."""

_WORDS = (
    "An outcome is computed from the data, every time. First the assumptions are checked; if one "
    "is not met, the claim says nothing about these data. Then the conclusion is measured and "
    "compared with a tolerance, and so is a negative control, a wrong conclusion that must fail: "
    "where it passes as well, or there is nothing to measure, the claim is vacuous here. An "
    "estimate comes with an interval; where the tolerance is inside, the claim is not settled.",
)


def write_claims_report(
    directory: str | os.PathLike[str],
    results: ClaimResults,
    *,
    source: str,
    provenance: Provenance,
    hypotheses: Sequence[HypothesesTable] = (),
    statements: Sequence[Statement] = (),
) -> dict[str, Any]:
    """Writes ``report.html``, ``claims.json`` and counterexamples as files where these hold them.

    The folder appears whole or not at all.

    Args:
        directory: Where to; a new or empty folder, or one that an earlier report fills.
        results: The outcomes of the claims.
        source: The data they were examined on, a line for the page.
        provenance: Where they come from.
        hypotheses: Which hypotheses the user's data meet, a table for each data set.
        statements: Statements of the papers to list, with what checks each.

    Returns:
        What ``claims.json`` holds.

    Raises:
        InvalidInputError: If the folder holds something else.
    """
    summary = claims_summary(results, hypotheses, statements)
    title = "Which claims hold"
    with report_folder(
        directory, title, source, summary, "claims", provenance=provenance, name=RESULTS
    ) as report:
        for result in results:
            if result.counterexample is not None:
                kept = _keep(result.counterexample.case, result.claim.name, report.place)
                summary["claims"][result.claim.name]["counterexample"] |= kept
        groups = {outcome: those for outcome in _ORDER if (those := _with(outcome, results))}
        report.findings += [_named(outcome, those) for outcome, those in groups.items()]
        report.sections += [
            *(_outcome(outcome, those, summary) for outcome, those in groups.items()),
            *(
                Section(f"Which hypotheses hold: {one.about}", table=_met(one))
                for one in hypotheses
            ),
            *_statements(statements, results),
            Section("How to read this", _WORDS),
        ]
    return summary


def claims_summary(
    results: ClaimResults,
    hypotheses: Sequence[HypothesesTable] = (),
    statements: Sequence[Statement] = (),
) -> dict[str, Any]:
    """Outcomes, statements and hypotheses as plain values of JSON, each where there are any."""
    summary = results.summary()
    if statements:
        summary["statements"] = [one.summary() for one in statements]
    if hypotheses:
        summary["hypotheses"] = [table.summary() for table in hypotheses]
    return summary


def _keep(case: DataSet, name: str, folder: Path) -> dict[str, str]:
    """Writes a counterexample; its ``file`` in the folder, or why there is ``no_file``."""
    file = f"{COUNTEREXAMPLES}/{name.replace('/', '-')}{case.kind.suffix}"
    place = folder / COUNTEREXAMPLES
    place.mkdir(exist_ok=True)
    try:
        case.save(folder / file)
    except InvalidInputError as error:  # files hold not all that claims speak of
        if not any(place.iterdir()):
            place.rmdir()
        return {"no_file": error.problem}
    return {"file": file}


def _met(table: HypothesesTable) -> Table:
    rows = [(name, "yes" if met else "no", found) for name, met, found in table.rows]
    return Table((table.about, "met", "found"), rows, words=True)


def _with(outcome: Outcome, results: ClaimResults) -> list[ClaimResult]:
    return [result for result in results if result.outcome is outcome]


def _counted(outcome: Outcome, those: Sequence[ClaimResult]) -> str:
    """The outcome as a heading: ``2 fail``, ``1 fails``."""
    return f"{len(those)} {outcome.value if len(those) == 1 else _ORDER[outcome][0]}"


def _named(outcome: Outcome, those: Sequence[ClaimResult]) -> Words | Folded:
    """The outcome and the claims that have it, each linked to; folded where it is at first."""
    links = [Link(result.claim.name) for result in those]
    if _ORDER[outcome][1] == "closed":
        return Folded(_counted(outcome, those), links)
    words: list[str | Link] = [f"{_counted(outcome, those)}: "]
    for link in links:
        words += [link, ", "]
    return words[:-1]


def _outcome(outcome: Outcome, those: Sequence[ClaimResult], summary: Mapping[str, Any]) -> Section:
    """All claims with one outcome: at a glance, then one by one."""
    rows: list[tuple[Words, ...]] = [
        (Link(result.claim.name), result.claim.summary, result.deciding.reason) for result in those
    ]
    return Section(
        _counted(outcome, those),
        table=Table(("claim", "what is claimed", "because"), rows, words=True),
        parts=[_section(result, summary) for result in those],
        fold=_ORDER[outcome][1],
    )


def _statements(statements: Sequence[Statement], results: ClaimResults) -> list[Section]:
    """Every statement of each paper, with the outcomes of the claims that check it."""
    outcomes = {result.claim.name: result.outcome.value for result in results}
    return [
        Section(f"Statements of {paper.title}", table=_filled([one.row(outcomes) for one in those]))
        for paper, those in by_paper(statements).items()
    ]


def _filled(rows: Sequence[Sequence[str]]) -> Table:
    """The table of statements, without columns in which nothing stands."""
    columns = ("statement", "claims", "figures", "not checked")
    kept = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    cells = [[row[place] for place in kept] for row in rows]
    return Table([columns[place] for place in kept], cells, words=True)


def _section(result: ClaimResult, summary: Mapping[str, Any]) -> Section:
    claim = result.claim
    paragraphs = [
        f"{claim.paper.citation}: {claim.statement}. {claim.summary}.",
        "Assumptions: " + " ".join(each.statement for each in claim.given),
        f"Measured: {claim.quantity}, {claim.sense} {claim.bound:g} expected: {claim.because}.",
        f"Negative control: {claim.wrong_quantity}, which must not be {claim.sense} "
        f"{claim.bound:g}.",
    ]
    if claim.note:
        paragraphs.append(claim.note)
    warning = None
    if result.counterexample is not None:
        kept = summary["claims"][claim.name]["counterexample"]
        case = result.counterexample.case
        warning = (
            f"It fails on {case.about} ({case.size_in_words}): {result.counterexample.reason}. "
        )
        if "file" in kept:
            warning += f"The data, which `{case.kind.reader}` reads: {kept['file']}"
        else:
            warning += f"The data are in no file: {kept['no_file']}"
    rows = [(each.case.about, each.outcome.value, each.reason) for each in result.findings]
    table = Table(("data", "outcome", "because"), rows, words=True)
    return Section(claim.name, paragraphs, table=table, warning=warning)
