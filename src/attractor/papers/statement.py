"""``Statement``: each statement, figure and table of the papers, with what checks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from attractor.papers.ledger.index import papers, places_of
from attractor.papers.ledger.places import places, statements
from attractor.results.paper import Paper
from attractor.support.checks import check_kinds


@dataclass(frozen=True)
class Statement:
    """A statement of a paper, or a figure or table of it.

    Attributes:
        paper: The paper.
        folder: The paper that it is checked beside, as the prefix of its claims' names says.
        subject: What it is about, a line.
        number: Its number in the paper; empty where that is not certain, or it has none.
        claims: Names of the claims that check it.
        figures: Names of the figures that show it.
        missing: What of it nothing checks; empty where nothing is missing.
        is_experiment: Whether it is a figure or table, not a statement.
    """

    paper: Paper
    folder: str
    subject: str
    number: str = ""
    claims: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    missing: str = ""
    is_experiment: bool = False

    @property
    def title(self) -> str:
        """Its number, where it has one, and what it is about."""
        return f"{self.number}: {self.subject}" if self.number else self.subject

    def row(self, outcomes: Mapping[str, str]) -> tuple[str, str, str, str]:
        """Title, claims, figures, and what is missing, as words.

        Args:
            outcomes: Outcomes of claims by name, to stand beside those that have one.
        """
        claims = [
            f"{name} ({outcomes[name]})" if name in outcomes else name for name in self.claims
        ]
        return self.title, ", ".join(claims), ", ".join(self.figures), self.missing

    def summary(self) -> dict[str, Any]:
        """Everything as plain values of JSON."""
        return {
            "paper": self.paper.name,
            "number": self.number or None,
            "subject": self.subject,
            "claims": list(self.claims),
            "figures": list(self.figures),
            "missing": self.missing or None,
        }


def all_statements(paper: str | None = None) -> list[Statement]:
    """Every statement, of one paper and those checked beside it or of all, in the papers' order.

    Raises:
        InvalidInputError: If there is no such paper.
    """
    every = [one for place in places() for one in _of_place(place)]
    if paper is None:
        return every
    check_kinds(paper=(paper, str))
    within = places_of(paper)
    return [one for one in every if one.paper.name == paper or one.folder in within]


def by_paper(statements: Iterable[Statement]) -> dict[Paper, list[Statement]]:
    """Statements of each paper, its figures and tables last."""
    found: dict[Paper, list[Statement]] = {}
    for one in statements:
        found.setdefault(one.paper, []).append(one)
    return {paper: sorted(each, key=lambda one: one.is_experiment) for paper, each in found.items()}


@cache
def _of_place(place: str) -> tuple[Statement, ...]:
    return tuple(
        Statement(
            papers()[entry.get("paper", place)],
            place,
            entry["subject"],
            entry.get("number", ""),
            _full(place, entry.get("claims", ())),
            _full(place, entry.get("figures", ())),
            entry.get("missing", ""),
            is_experiment=kind == "experiment",
        )
        for kind, entries in statements(place).items()
        for entry in entries
    )


def _full(folder: str, names: Iterable[str]) -> tuple[str, ...]:
    """Names with the folder of the file in front, where they have none."""
    return tuple(name if "/" in name else f"{folder}/{name}" for name in names)
