"""``check_claim``: a claim on the paper's data or on the user's, and the counterexample found."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TypeVar

from attractor.files.contents import DataSet, Trial
from attractor.papers.ledger.claim import Check, Claim, Measurement, Outcome
from attractor.results import Rows, Summary
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_seed, seeded

Data = TypeVar("Data", bound=DataSet)
_WEAKEST_FIRST = (
    Outcome.FAILS,
    Outcome.NOT_SETTLED,
    Outcome.HOLDS,
    Outcome.VACUOUS,
    Outcome.ASSUMPTION_NOT_MET,
)
"""The first of these that one of several data sets has is the outcome of all."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """The outcome of a claim on one data set, with all that decided it.

    Attributes:
        claim: The claim.
        case: The data.
        outcome: The outcome.
        reason: Why, in a sentence.
        checks: The result of checking each assumption, by name.
        measured: The right object as measured, or None if an assumption is not met.
        control: The wrong object as measured, or None if it was not needed.
        refused: Why the library could not use the data to check an assumption or to measure, where
            that decided the outcome; else None.
    """

    claim: Claim
    case: DataSet
    outcome: Outcome
    reason: str
    checks: dict[str, Check]
    measured: Measurement | None = None
    control: Measurement | None = None
    refused: InvalidInputError | None = None


def examine(claim: Claim, case: DataSet, seed: int = 0) -> Finding:
    """Checks the assumptions on data, then measures the right object and the wrong one.

    Data that what measures the claim cannot use are an outcome of this claim, in words, and no
    error: other claims can still be examined on them.

    Args:
        claim: The claim.
        case: The data.
        seed: Names all that is random in the measurement.
    """
    check_kinds(claim=(claim, Claim), case=(case, DataSet))
    seed = check_seed("seed", seed)
    with seeded(seed, purpose=f"claim {claim.name}", alone=False):
        return _examined(claim, case, seed)


def _examined(claim: Claim, case: DataSet, seed: int) -> Finding:
    checks: dict[str, Check] = {}

    def finding(
        outcome: Outcome,
        reason: str,
        measured: Measurement | None = None,
        control: Measurement | None = None,
    ) -> Finding:
        return Finding(claim, case, outcome, reason, checks, measured, control)

    def refused(
        outcome: Outcome, what: str, error: InvalidInputError, *measured: Measurement
    ) -> Finding:
        # Without the remedy, which is for who calls the function that refused.
        why = f"{what} on these data, {error.argument}: {error.problem}"
        return dataclasses.replace(finding(outcome, why, *measured), refused=error)

    for one in claim.given:
        try:
            check = one.checked(case)
        except InvalidInputError as error:
            return refused(Outcome.ASSUMPTION_NOT_MET, f"{one.name}: it cannot be checked", error)
        checks[one.name] = check
        if not check.met:  # later assumptions may only make sense where earlier ones are met
            return finding(Outcome.ASSUMPTION_NOT_MET, f"{one.name}: {check.found}")
    try:
        right = claim.measured(case, seed)
    except InvalidInputError as error:
        return refused(Outcome.ASSUMPTION_NOT_MET, "it cannot be measured", error)
    if right.checked == 0:
        reason = "there is nothing on these data that the claim speaks of"
        return finding(Outcome.VACUOUS, reason, right)
    words = f"{claim.quantity} is {right.value:.4g}"
    if right.interval is not None:
        low, high = right.interval
        words += f" ({low:.3g} to {high:.3g})" if low <= high else " (too few for an interval)"
    if not right.settles(claim.bound):
        reason = (
            f"{words}, which does not leave out {claim.bound:g}: more data or a longer run would"
        )
        return finding(Outcome.NOT_SETTLED, reason, right)
    words += f", {claim.sense} {claim.bound:.4g} expected"
    if not claim.met_by(right):
        return finding(Outcome.FAILS, words, right)
    try:
        wrong = claim.exchanged().measured(case, seed)
    except InvalidInputError as error:
        none = "no wrong claim to tell it from can be measured"
        return refused(Outcome.VACUOUS, none, error, right)
    if wrong.checked == 0 or math.isnan(wrong.value):
        reason = f"there is no wrong claim to tell it from ({claim.wrong_quantity})"
        return finding(Outcome.VACUOUS, reason, right, wrong)
    if claim.met_by(wrong):
        reason = f"the measurement cannot tell it from a wrong claim ({claim.wrong_quantity})"
        return finding(Outcome.VACUOUS, reason, right, wrong)
    return finding(Outcome.HOLDS, words, right, wrong)


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
        return next(outcome for outcome in _WEAKEST_FIRST if outcome in seen)

    @property
    def deciding(self) -> Finding:
        """The finding that decides the outcome; of several that hold, the nearest to failing."""
        if self.counterexample is not None:
            return self.counterexample
        those = [finding for finding in self.findings if finding.outcome is self.outcome]
        bound = self.claim.bound
        return min(those, key=lambda one: abs(one.measured.value - bound) if one.measured else 0.0)

    def _summary(self) -> tuple[str, Rows]:
        claim, deciding = self.claim, self.deciding
        of_that = sum(finding.outcome is self.outcome for finding in self.findings)
        rows = [
            ("claim", claim.summary),
            ("quantity", f"{claim.quantity} {claim.sense} {claim.bound:g}"),
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


def shrink(claim: Claim[Data], case: Data, seed: int = 0, *, most: int = 60) -> Data:
    """Drops what a counterexample does not need, as long as the claim fails on what is left.

    Sequences or sentences go first, in halves and then smaller parts, then tokens, and then what
    that kind of data has besides. Every step is kept only if the assumptions are still met and the
    claim still fails, not barely: half the way from the tolerance, in orders of magnitude.
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
    bound, value = claim.bound, found.measured.value
    if claim.sense == "<=" and bound > 0 and math.isfinite(value):
        return math.sqrt(bound * value)
    return -math.inf
