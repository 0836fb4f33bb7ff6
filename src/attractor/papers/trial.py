"""``Trial``: examines smaller data on which a claim might still fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from attractor.errors import InvalidInputError
from attractor.papers._examine import Finding, examine
from attractor.papers.assumption import Data
from attractor.papers.claim import Claim, Outcome
from attractor.papers.data_set import DataSet


@dataclass
class Trial:
    """Examines candidates, as many as are allowed.

    Attributes:
        claim: The claim.
        seed: Names what is random.
        left: How many may still be examined.
        beyond: What a measurement must not lie below to count as a failure.
    """

    claim: Claim
    seed: int
    left: int
    beyond: float

    def fails(self, candidate: DataSet | None, reserve: int = 0) -> bool:
        """Whether the claim's assumptions are met and its conclusion fails.

        Args:
            candidate: The data; None never fails.
            reserve: How many are to be left for later; if no more are, nothing fails.
        """
        if candidate is None or self.left <= reserve:
            return False
        self.left -= 1
        try:
            found = examine(self.claim, candidate, self.seed)
        except InvalidInputError:  # a claim that cannot be measured does not fail
            return False
        if found.outcome is not Outcome.FAILS:
            return False
        assert found.measured is not None
        return not found.measured.value < self.beyond  # NaN fails as clearly as anything

    def smaller_of(self, case: Data, candidate: Data | None) -> Data:
        """The candidate, if it is other data on which the claim still fails; else the case."""
        if candidate is None or candidate.hash == case.hash or not self.fails(candidate):
            return case
        return candidate


def half_way(claim: Claim, found: Finding) -> float:
    """The geometric mean of an upper bound and of what exceeds it; else nothing."""
    assert found.measured is not None
    bound, value = claim.conclusion.bound, found.measured.value
    if claim.conclusion.sense == "<=" and bound > 0 and np.isfinite(value):
        return float(np.sqrt(bound * value))
    return -np.inf


def drop(
    kept: Bool[np.ndarray, "*places"],
    pieces: list[list[tuple[int, ...]]],
    fails: Callable[[Any], bool],
) -> Bool[np.ndarray, "*places"]:
    """Drops every piece that can go, many at a time at first.

    Args:
        kept: What there is.
        pieces: Parts to drop one by one, each a list of places.
        fails: Whether the claim still fails where so much is kept.
    """
    size = max(1, len(pieces) // 2)
    while True:
        start = 0
        while start < len(pieces):
            fewer = kept.copy()
            for piece in pieces[start : start + size]:
                fewer[tuple(np.transpose(piece))] = False
            if fewer.any() and fails(fewer):
                kept, pieces = fewer, pieces[:start] + pieces[start + size :]
            else:
                start += size
        if size == 1:
            return kept
        size //= 2
