"""Making a counterexample smaller: what can go is tried piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool

from attractor.files.contents import DataSet
from attractor.support.errors import InvalidInputError

_Data = TypeVar("_Data", bound=DataSet)


@dataclass
class Trial:
    """Tries smaller data on which a claim might still fail, as many as are allowed.

    Attributes:
        still_fails: Whether the claim's assumptions are met on data and its conclusion fails.
        left: How many may still be tried.
        details: What was measured on the counterexample besides the number that fails.
    """

    still_fails: Callable[[Any], bool]
    left: int
    details: Mapping[str, Any]

    def fails(self, candidate: DataSet | None, reserve: int = 0) -> bool:
        """Whether the claim still fails.

        Args:
            candidate: The data; None never fails.
            reserve: How many are to be left for later; if no more are, nothing fails.
        """
        if candidate is None or self.left <= reserve:
            return False
        self.left -= 1
        try:
            return self.still_fails(candidate)
        except InvalidInputError:  # a claim that cannot be measured does not fail
            return False

    def smaller_of(self, case: _Data, candidate: _Data | None) -> _Data:
        """The candidate, if it is other data on which the claim still fails; else the case."""
        if candidate is None or candidate.hash == case.hash or not self.fails(candidate):
            return case
        return candidate


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
