"""``ClaimResults``: the outcomes of several claims, as a table and as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attractor.papers.claim import Measurement, Outcome
from attractor.papers.ledger.check import ClaimResult, Finding
from attractor.results import Printed, plain_table

STYLES = {
    Outcome.FAILS: "bold red",
    Outcome.HOLDS: "green",
    Outcome.NOT_SETTLED: "yellow",
    Outcome.ASSUMPTION_NOT_MET: "yellow",
    Outcome.VACUOUS: "dim",
}

_WHERE = (
    'Read of it in "What we found wrong" of the documentation, with a counterexample in a file; '
    "its source is docs/found_wrong.toml."
)


@dataclass(frozen=True, eq=False, repr=False)
class ClaimResults(Printed):
    """The outcomes of several claims.

    Attributes:
        results: A result for each claim, in the order examined.
    """

    width: ClassVar[int] = 100
    results: tuple[ClaimResult, ...]

    def __iter__(self) -> Iterator[ClaimResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def table(self) -> Table:
        """A line for each claim: the outcome and the number that decides it."""
        table = plain_table(collapse_padding=False)
        table.add_column("claim", no_wrap=True)
        table.add_column("outcome", no_wrap=True)
        for column in ("data", "measured", "expected"):
            table.add_column(column, justify="right", no_wrap=True)
        for result in self.results:
            outcome, claim = result.outcome, result.claim
            of_that = sum(finding.outcome is outcome for finding in result.findings)
            table.add_row(
                claim.name,
                Text(outcome.value, STYLES[outcome]),
                f"{of_that} of {len(result.findings)}",
                _shown(result.deciding.measured),
                f"{claim.sense} {claim.bound:.4g}",
            )
        return table

    def explanations(self) -> list[str]:
        """Why claims did not come out as holding, a sentence each."""
        return [
            f"{result.claim.name} {result.outcome.value}: {result.deciding.reason}"
            for result in self.results
            if result.outcome is not Outcome.HOLDS
        ]

    def known(self) -> list[str]:
        """Which claims are known to fail, how, and where that is written, a sentence each."""
        known = [
            f"{result.claim.name}: that is known, and no fault of this run. It {result.claim.note}."
            for result in self.results
            if result.outcome is Outcome.FAILS and result.claim.known_to_fail
        ]
        return [*known, _WHERE] if known else []

    def _print(self, console: Console) -> None:
        self._print_outcomes(console)
        for sentence in self.known():
            console.print(sentence, markup=False, highlight=False)

    def _print_outcomes(self, console: Console) -> None:
        table = self.table()
        # Asked of a wide console: a narrow one measures no more than its own width.
        wide = console.options.update(width=1000)
        if console.measure(table, options=wide).maximum > console.width:
            self._print_by_outcome(console)
            return
        console.print(table)
        for sentence in self.explanations():
            console.print(f"* {sentence}", markup=False, highlight=False)

    def _print_by_outcome(self, console: Console) -> None:
        """The claims of each outcome with whole names, where the table is wider than the text."""
        for outcome, style in STYLES.items():
            those = [result for result in self.results if result.outcome is outcome]
            if those:
                console.print(Text(f"{outcome.value}: {len(those)}", style))
            for result in those:
                words = result.deciding.reason
                if outcome is Outcome.HOLDS:
                    bound = f"{result.claim.sense} {result.claim.bound:.4g}"
                    words = f"{_shown(result.deciding.measured)}, {bound} expected"
                if len(result.findings) > 1:
                    count = sum(finding.outcome is outcome for finding in result.findings)
                    words += f"; {count} of {len(result.findings)} data sets"
                line = f"  {result.claim.name}: {words}"
                if len(line) <= console.width:
                    console.print(Text(line))
                else:
                    console.print(Text(f"  {result.claim.name}"), soft_wrap=True)
                    console.print(Padding(Text(words), (0, 0, 0, 6), expand=False))

    def counts(self) -> dict[str, int]:
        """The number of claims with each outcome."""
        seen = [result.outcome for result in self.results]
        return {outcome.value: seen.count(outcome) for outcome in Outcome if outcome in seen}

    def summary(self) -> dict[str, Any]:
        """Everything as plain values of JSON."""
        return {"claims": {result.claim.name: _of_claim(result) for result in self.results}}


def _shown(measured: Measurement | None) -> str:
    """The value, with its interval where it has one."""
    if measured is None:
        return "-"
    if measured.interval is None:
        return f"{measured.value:.4g}"
    low, high = measured.interval
    return f"{measured.value:.3g} ({low:.2g} to {high:.2g})"


def _of_claim(result: ClaimResult) -> dict[str, Any]:
    claim = result.claim
    found: dict[str, Any] = {
        "paper": claim.paper.name,
        "statement": claim.statement,
        "summary": claim.summary,
        "outcome": result.outcome.value,
        "because": result.deciding.reason,
        "note": claim.note,
        "quantity": claim.quantity,
        "tolerance": f"{claim.sense} {claim.bound:g}",
        "reason_for_tolerance": claim.because,
        "data": [_of_finding(finding) for finding in result.findings],
        "searched": result.searched,
        "bibtex": claim.bibtex,
    }
    if result.counterexample is not None:
        found["counterexample"] = _of_finding(result.counterexample)
    return found


def _of_finding(finding: Finding) -> dict[str, Any]:
    return {
        "about": finding.case.about,
        "outcome": finding.outcome.value,
        "because": finding.reason,
        "assumptions": {
            name: {"met": bool(check.met), "found": check.found}
            for name, check in finding.checks.items()
        },
        "measured": _of_measurement(finding.measured),
        "negative_control": _of_measurement(finding.control),
    }


def _of_measurement(measured: Measurement | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    details: Mapping[str, Any] = measured.details
    interval = {} if measured.interval is None else {"interval": plain(measured.interval)}
    return {
        "value": plain(measured.value),
        **interval,
        "checked": measured.checked,
        "details": {name: plain(value) for name, value in details.items()},
    }


def plain(value: Any) -> Any:
    """A value as JSON can hold it: lists for arrays, None for what is not finite."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
