"""``Assumption``: a hypothesis of a statement, as a check that runs on data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from attractor.files.contents import DataSet
from attractor.support.checks import check_kinds

Data = TypeVar("Data", bound=DataSet)


@dataclass(frozen=True)
class Check:
    """The result of checking an assumption on data.

    Attributes:
        met: Whether the data meet it.
        found: The quantities that decide it, in words and numbers.
    """

    met: bool
    found: str


@dataclass(frozen=True)
class Assumption(Generic[Data]):
    """An assumption of a statement.

    Attributes:
        name: A few words, by which it is known: ``"unique optimum"``.
        statement: The hypothesis, in a sentence.
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

    def negated(self, name: str, statement: str, breaker: Callable[[], Data]) -> Assumption[Data]:
        """The opposite assumption, whose check finds the same."""
        check_kinds(name=(name, str), statement=(statement, str), breaker=(breaker, Callable))

        def check(case: Data) -> Check:
            found = self.check(case)
            return Check(not found.met, found.found)

        return Assumption(name, statement, check, breaker)
