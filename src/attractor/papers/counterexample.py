"""``shrink``: from data on which a claim fails to the smallest such data that can be found."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from attractor.files.contents import DataSet
from attractor.files.shrinking import Trial
from attractor.papers._examine import Finding, examine
from attractor.papers.claim import Claim, Outcome

Data = TypeVar("Data", bound=DataSet)


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
