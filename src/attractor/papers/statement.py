"""``Statement``: each statement, figure and table of the papers, with what checks it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from attractor.papers.registry import PACKAGES, of_paper
from attractor.results.paper import PAPERS, Paper


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
    everything = {f"{one.folder}/{place}": one for place, one in enumerate(_stored())}
    return list(of_paper(everything, paper).values())


def by_paper(statements: Iterable[Statement]) -> dict[Paper, list[Statement]]:
    """Statements of each paper, its figures and tables last."""
    found: dict[Paper, list[Statement]] = {}
    for one in statements:
        found.setdefault(one.paper, []).append(one)
    return {paper: sorted(each, key=lambda one: one.is_experiment) for paper, each in found.items()}


@cache
def _stored() -> tuple[Statement, ...]:
    return tuple(one for package in PACKAGES for one in _of_package(package))


def _of_package(package: str) -> list[Statement]:
    folder = package.replace("_", "-")
    text = (resources.files(f"attractor.papers.{package}") / "statements.toml").read_text("utf-8")
    return [
        Statement(
            PAPERS[entry.get("paper", folder)],
            folder,
            entry["subject"],
            entry.get("number", ""),
            _full(folder, entry.get("claims", ())),
            _full(folder, entry.get("figures", ())),
            entry.get("missing", ""),
            is_experiment=kind == "experiment",
        )
        for kind, entries in tomllib.loads(text).items()
        for entry in entries
    ]


def _full(folder: str, names: Iterable[str]) -> tuple[str, ...]:
    """Names with the folder of the file in front, where they have none."""
    return tuple(name if "/" in name else f"{folder}/{name}" for name in names)
