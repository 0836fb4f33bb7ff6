"""``check_claim``: a claim on the paper's data, or on the user's, with the counterexample found."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from attractor.files.contents import DataSet
from attractor.files.shrinking import Trial
from attractor.papers._examine import Finding, examine
from attractor.papers.claim import Claim, Outcome
from attractor.results import Rows, Summary

Data = TypeVar("Data", bound=DataSet)


@dataclasses.dataclass(frozen=True, repr=False)
class ClaimResult(Summary):
    """The outcome of a claim on one data set or several.

    Attributes:
        claim: The claim.
        findings: The finding on each data set.
        searched: Candidates for counterexamples examined besides.
        counterexample: The smallest data found on which it fails, or None where it does not.
    """

    claim: Claim
    findings: tuple[Finding, ...]
    searched: int = 0
    counterexample: Finding | None = None

    @property
    def outcome(self) -> Outcome:
        """One outcome for all, the weakest of those that say something about the conclusion.

        A single failure is a failure, and with one data set not settled all of them are not.
        """
        seen = [found.outcome for found in (*self.findings, self.counterexample) if found]
        order = (
            Outcome.FAILS,
            Outcome.NOT_SETTLED,
            Outcome.HOLDS,
            Outcome.VACUOUS,
            Outcome.ASSUMPTION_NOT_MET,
        )
        return next(outcome for outcome in order if outcome in seen)

    @property
    def deciding(self) -> Finding:
        """The finding that decides the outcome; of several that hold, the nearest to failing."""
        if self.counterexample is not None:
            return self.counterexample
        those = [finding for finding in self.findings if finding.outcome is self.outcome]
        return min(those, key=_slack)

    def _summary(self) -> tuple[str, Rows]:
        claim, deciding = self.claim, self.deciding
        of_that = sum(finding.outcome is self.outcome for finding in self.findings)
        bound = f"{claim.conclusion.sense} {claim.conclusion.bound:g}"
        rows = [
            ("claim", claim.summary),
            ("quantity", f"{claim.conclusion.quantity} {bound}"),
            ("data", f"{self.outcome.value} on {of_that} of {len(self.findings)}"),
            ("decided on", deciding.case.about),
            ("because", deciding.reason),
        ]
        if self.searched:
            rows.append(("searched", f"{self.searched} candidates for counterexamples besides"))
        return f"{claim.name}: {self.outcome.value}", rows


def check_claim(
    claim: Claim,
    cases: Sequence[DataSet] | None = None,
    *,
    seed: int = 0,
    find_smallest: bool = True,
) -> ClaimResult:
    """Examines a claim on data; where it fails, looks for the smallest data on which it does.

    Args:
        claim: The claim.
        cases: The data; default: the paper's, and then the claim's candidates for
            counterexamples, up to the first one that is.
        seed: Names all that is random.
        find_smallest: Whether to make a counterexample smaller.

    Raises:
        InvalidInputError: If the claim's own data cannot be used, which is an error of the claim;
            of other data that is an outcome.
    """
    data = claim.data(seed) if cases is None else cases
    findings = [examine(claim, case, seed) for case in data]
    if cases is None:
        _raise_refused(findings)
    failing = [finding for finding in findings if finding.outcome is Outcome.FAILS]
    searched = 0
    if cases is None and claim.search is not None and not failing:
        for candidate in claim.search(seed):
            searched += 1
            found = examine(claim, candidate, seed)
            _raise_refused([found])
            if found.outcome is Outcome.FAILS:
                failing.append(found)
                break
    if not failing:
        return ClaimResult(claim, tuple(findings), searched)
    smallest = min(failing, key=lambda finding: finding.case.size)
    if find_smallest:
        smallest = examine(claim, shrink(claim, smallest.case, seed), seed)
    return ClaimResult(claim, tuple(findings), searched, smallest)


def _raise_refused(findings: Sequence[Finding]) -> None:
    for found in findings:
        if found.refused is not None:
            raise found.refused


def _slack(finding: Finding) -> float:
    """Distance of a measurement from its tolerance."""
    if finding.measured is None:
        return 0.0
    return abs(finding.measured.value - finding.claim.conclusion.bound)


def shrink(claim: Claim[Data], case: Data, seed: int = 0, *, most: int = 60) -> Data:
    """Drops what a counterexample does not need, as long as the claim fails on what is left.

    Sequences or sentences go first, in halves and then smaller parts, then tokens, and then what
    that kind of data has besides. Every step is kept only if the assumptions are still met and the
    conclusion still fails, not barely: half the way from the tolerance, in orders of magnitude.
    What results is smallest in no strict sense: nothing more that was tried could go.

    Args:
        claim: A claim that fails on the case.
        case: The counterexample.
        seed: Names all that is random in the measurement.
        most: Largest number of data sets to examine.

    Returns:
        The case itself where nothing can go, or the claim does not fail on it.
    """
    first = examine(claim, case, seed)
    if first.outcome is not Outcome.FAILS:
        return case
    assert first.measured is not None
    beyond = _half_way(claim, first)

    def still_fails(candidate: Data) -> bool:
        found = examine(claim, candidate, seed)
        if found.outcome is not Outcome.FAILS:
            return False
        assert found.measured is not None
        return not found.measured.value < beyond  # NaN fails as clearly as anything

    found = case.smaller(Trial(still_fails, most, first.measured.details))
    return case if found is case else found.replace(about=f"{case.about}, made smaller")


def _half_way(claim: Claim, found: Finding) -> float:
    """The geometric mean of an upper bound and of what exceeds it; else nothing."""
    assert found.measured is not None
    bound, value = claim.conclusion.bound, found.measured.value
    if claim.conclusion.sense == "<=" and bound > 0 and np.isfinite(value):
        return float(np.sqrt(bound * value))
    return -np.inf
