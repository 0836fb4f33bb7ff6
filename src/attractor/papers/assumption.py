"""``Assumption``: what a statement asks of the data, as a check that runs on data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from attractor.checks import check_kinds
from attractor.files.contents import DataSet

Data = TypeVar("Data", bound=DataSet)


@dataclass(frozen=True)
class Check:
    """Whether data meet an assumption.

    Attributes:
        met: Whether they do.
        found: What was found, in words and numbers.
    """

    met: bool
    found: str


@dataclass(frozen=True)
class Assumption(Generic[Data]):
    """An assumption of a statement.

    Attributes:
        name: A few words, by which it is known: ``"unique optimum"``.
        statement: What it asks, in a sentence.
        check: Decides it on data.
        breaker: Data that break it and meet what is usually assumed before it.
    """

    name: str
    statement: str
    check: Callable[[Data], Check]
    breaker: Callable[[], Data] | None = None

    def broken_by(self, breaker: Callable[[], Data]) -> Self:
        """The same assumption with other data that break it: some that meet those beside it."""
        check_kinds(breaker=(breaker, Callable))
        return replace(self, breaker=breaker)
