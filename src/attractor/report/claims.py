"""The page on claims: the outcome of each, and why."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attractor.errors import InvalidInputError
from attractor.files.contents import DataSet
from attractor.papers.check import ClaimResult
from attractor.papers.hypotheses_table import HypothesesTable
from attractor.papers.results import ClaimResults
from attractor.papers.statement import Statement, by_paper
from attractor.provenance import Provenance
from attractor.report.folder import report_folder
from attractor.report.page import Section, Table

COUNTEREXAMPLES = "counterexamples"
"""Folder of the files on which a claim fails."""
RESULTS = "claims.json"

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
        directory, title, source, summary, provenance=provenance, name=RESULTS
    ) as report:
        for result in results:
            if result.counterexample is not None:
                kept = _keep(result.counterexample.case, result.claim.name, report.place)
                summary["claims"][result.claim.name]["counterexample"] |= kept
        report.findings += [f"{count} {outcome}" for outcome, count in results.counts().items()]
        report.sections += [
            *(Section("Which hypotheses hold", table=_met(table)) for table in hypotheses),
            Section("Outcomes of the claims", _WORDS, table=_overview(results)),
            *_statements(statements, results),
            *(_section(result, summary) for result in results),
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


def _overview(results: ClaimResults) -> Table:
    rows = [
        (result.claim.name, result.claim.summary, result.outcome.value, result.deciding.reason)
        for result in results
    ]
    return Table(("claim", "what is claimed", "outcome", "because"), rows, words=True)


def _statements(statements: Sequence[Statement], results: ClaimResults) -> list[Section]:
    """Every statement of each paper, with the outcomes of the claims that check it."""
    outcomes = {result.claim.name: result.outcome.value for result in results}
    columns = ("statement", "claims", "figures", "not checked")
    return [
        Section(
            f"Statements of {paper.title}",
            table=Table(columns, [one.row(outcomes) for one in those], words=True),
        )
        for paper, those in by_paper(statements).items()
    ]


def _section(result: ClaimResult, summary: Mapping[str, Any]) -> Section:
    claim = result.claim
    paragraphs = [
        f"{claim.paper.citation}: {claim.statement}. {claim.summary}.",
        "Assumptions: " + " ".join(each.statement for each in claim.assumptions),
        f"Measured: {claim.conclusion.quantity}, {claim.conclusion.sense} "
        f"{claim.conclusion.bound:g} expected: {claim.conclusion.reason}.",
        f"Negative control: {claim.control.quantity}, which must not be {claim.control.sense} "
        f"{claim.control.bound:g}.",
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
