"""``shrink``: from data on which a claim fails to the smallest such data that can be found."""

from __future__ import annotations

from typing import TypeVar

from attractor.papers._examine import examine
from attractor.papers.claim import Claim, Outcome
from attractor.papers.data_set import DataSet
from attractor.papers.trial import Trial, half_way

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
    found = case.smaller(Trial(claim, seed, most, half_way(claim, first)), first)
    return case if found is case else found.replace(about=f"{case.about}, made smaller")
