"""The record of one head at one step, and the table of a ``HeadMonitor``: heads at their latest."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from attractor.geometry import Geometry
from attractor.results import plain_table
from attractor.results.seen import course, listed, many

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table


NUMBERS = {
    "margin_ratio": "min_j a_j^T W b_j / ||W|| * ||W*||",
    "correlation": "<W, W*> / (||W||_F ||W*||_F)",
    "gap": "relative duality gap of the solution",
    "solution_norm": "norm of the solution W*",
    "norm": "norm of W in the geometry of the monitor",
    "frobenius_norm": "Frobenius norm of W",
    "nuclear_norm": "nuclear norm of W",
    "stable_rank": "||W||_F^2 / ||W||_spectral^2",
    "log_unselected_probability": "logarithm of the mean softmax probability off the selection",
    "selection_changes": "queries that select other tokens than at the record before",
    "ties": "queries under which several tokens share the highest score",
    "constraints": "constraints of the margin problem",
    "seconds": "time the record took",
}
"""The numbers of a record, and what each means."""


class RecordStatus(enum.StrEnum):
    """The outcome of a comparison of a head with its solution."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    OUT_OF_REACH = "out of reach"
    STOPPED_EARLY = "stopped early"
    UNDECIDED = "nothing to separate"
    NOT_FINITE = "not finite"
    POSTPONED = "postponed"
    TOO_LARGE = "too many constraints"
    UNREADABLE = "could not be read"
    UNSOLVED = "could not be solved"

    @property
    def message(self) -> str:
        """The sentence a person reads."""
        return _MESSAGES[self]


_MESSAGES = {
    RecordStatus.OPTIMAL: "Compared with the certified solution for the tokens selected.",
    RecordStatus.INFEASIBLE: "No matrix separates the tokens selected from the others; certified.",
    RecordStatus.OUT_OF_REACH: "No solution was found; none has a norm below the lower bound.",
    RecordStatus.STOPPED_EARLY: "No solution was certified to the tolerance; see its gap.",
    RecordStatus.UNDECIDED: "Every query has one token, or ties among all of its tokens.",
    RecordStatus.NOT_FINITE: "The matrix or the tokens hold NaN or infinity.",
    RecordStatus.POSTPONED: "Left for a later step, to stay within the time allowed.",
    RecordStatus.TOO_LARGE: "The probe batch makes more than max_constraints; nothing was solved.",
    RecordStatus.UNREADABLE: "What tells matrix and tokens failed, or told what does not fit.",
    RecordStatus.UNSOLVED: "The solver failed; all that needs no solution is there.",
}


@dataclass(frozen=True)
class HeadRecord:
    """One head at one step.

    Attributes:
        step: The step.
        due: The step it was due at; smaller where it had been postponed.
        status: The outcome of the comparison with its solution.
        start: The start of the solution: ``"cold"``, ``"warm"`` from the solution before,
            ``"reused"``, or empty where there is none.
        selected: Position of the token with the highest score, -1 where several tie and where the
            row is padding.
        selected_probability: Softmax probability of the tokens selected; NaN in rows of padding.
        numbers: The numbers of ``NUMBERS`` that are known.
        problem: What went wrong, in a sentence; empty where nothing did.
    """

    step: int
    due: int
    status: RecordStatus
    start: str = ""
    selected: Int[np.ndarray, "sequence query"] | None = None
    selected_probability: Float[np.ndarray, "sequence query"] | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    problem: str = ""


SATURATED = 0.99
"""Mean softmax probability of the tokens selected from which attention counts as saturated."""
UNSATURATED = "not saturated yet"
"""What is said of a head below it, whose margin ratio says nothing of where it goes."""
Words = tuple[tuple[str, ...], ...] | None
"""Texts of the probe's tokens, ``(sequence, token)``; None where they are not known."""
Draws = Float[np.ndarray, "draw"] | None
"""Margin ratios of random matrices; None where none were drawn."""


def latest_record(records: list[HeadRecord]) -> HeadRecord | None:
    """The last record that was not postponed, or the last where all were; None without any."""
    measured = [record for record in records if record.status is not RecordStatus.POSTPONED]
    return next(reversed(measured or records), None)


def highest_weight(record: HeadRecord) -> float | None:
    """Mean softmax probability of the tokens selected; None where nothing was selected."""
    if record.selected_probability is None or not record.selected_probability.size:
        return None
    return float(np.nanmean(record.selected_probability))


def reading(record: HeadRecord, draws: Draws) -> str:
    """What the margin ratio of a head says, in words, or why it says nothing."""
    weight, ratio = highest_weight(record), record.numbers.get("margin_ratio")
    if ratio is None or weight is None:
        return str(record.status)
    if weight < SATURATED:
        return UNSATURATED
    if draws is None:
        return "saturated"
    return "above random" if ratio > np.max(draws) else "no more than random"


def latest_table(
    latest: Mapping[str, HeadRecord | None],
    geometry: Geometry,
    words: Mapping[str, Words],
    draws: Mapping[str, Float[np.ndarray, "draw"]],
) -> Table:
    """One record of each head by its name.

    Args:
        latest: The records.
        geometry: The norm of the solutions.
        words: The texts of the tokens of each head.
        draws: Margin ratios of random matrices in place of heads; a column where there are any.
    """
    title = f"Heads at their latest record, compared with solutions in the {geometry.name} norm"
    table = plain_table(title)
    table.add_column("head", no_wrap=True)
    table.add_column("step", justify="right", no_wrap=True)
    table.add_column("selects most often", no_wrap=True)
    numbers = ["highest weight, mean", "queries that changed", "margin ratio"]
    for name in [*numbers, *(["largest of random"] if draws else [])]:
        table.add_column(name, justify="right")
    table.add_column("the ratio says", no_wrap=True)
    for name, record in latest.items():
        if record is None:
            table.add_row(name, *["-"] * (len(table.columns) - 1))
            continue
        found = draws.get(name)
        cells = [
            _percent(highest_weight(record)),
            _number(record, "selection_changes", ".0f"),
            _number(record, "margin_ratio", ".4f"),
            *([_largest(found)] if draws else []),
        ]
        said = reading(record, found)
        table.add_row(name, str(record.step), _most(record, words.get(name)), *cells, said)
    return table


def notes(latest: Mapping[str, HeadRecord | None], draws: Mapping[str, np.ndarray]) -> list[str]:
    """What the words in the table mean, a sentence each."""
    there = {name: record for name, record in latest.items() if record is not None}
    statuses = {record.status for record in there.values()} - {RecordStatus.OPTIMAL}
    lines = [f"{status}: {status.message}" for status in sorted(statuses)]
    steps = {record.step for record in there.values()}
    if len(steps) > 1:
        lines.append(
            f"Heads are shown at different steps, {min(steps):,} to {max(steps):,}: do not compare "
            "them with each other. budget=None makes every record at its step."
        )
    problems: dict[str, list[str]] = {}
    for name, record in there.items():
        if record.problem:
            problems.setdefault(record.problem, []).append(name)
    for problem, names in problems.items():
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        lines.append(f"{names[0]}{more}: {problem}")
    if any(reading(record, None) == UNSATURATED for record in there.values()):
        lines.append(
            f"{UNSATURATED}: the ratio tells where a head goes once the mean of its highest "
            f"weights is {100 * SATURATED:.0f} % or more."
        )
    if draws:
        count = max(len(found) for found in draws.values())
        lines.append(
            f"random: {count} matrices of the rank of each head, each held against the solution of "
            "what it selects itself; above random means above all of them, head by head."
        )
    gaps = [record.numbers["gap"] for record in there.values() if "gap" in record.numbers]
    if gaps:
        counts = [record.numbers.get("constraints", 0.0) for record in there.values()]
        low, high = int(min(counts)), int(max(counts))
        lines.append(
            f"Solutions of {low:,}{'' if low == high else f' to {high:,}'} constraints are "
            f"certified; the largest relative gap is {max(gaps):.1e}."
        )
    return lines


def _most(record: HeadRecord, words: Words) -> str:
    """The token or the position selected most often, in how many of the queries; and ties."""
    if record.selected is None:
        return "-"
    chosen = record.selected[record.selected >= 0]
    ties = int(record.numbers.get("ties", 0))
    aside = f"; {ties:,} tie{'s' * (ties != 1)}" if ties else ""
    if not chosen.size:
        return f"nothing alone{aside}"
    # A probe batch that has changed is no longer that of the words.
    if words and len(record.selected) == len(words) and chosen.max() < len(words[0]):
        rows = np.nonzero(record.selected >= 0)[0]
        texts = [words[row][place] for row, place in zip(rows, chosen, strict=True)]
        names, counts = np.unique(texts, return_counts=True)
        first = f'"{names[counts.argmax()]}"'
    else:
        names, counts = np.unique(chosen, return_counts=True)
        first = f"position {names[counts.argmax()]}"
    return f"{first} in {counts.max():,} of {chosen.size:,}{aside}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _number(record: HeadRecord, name: str, form: str) -> str:
    return f"{record.numbers[name]:{form}}" if name in record.numbers else "-"


def _largest(draws: Draws) -> str:
    return "-" if draws is None else f"{np.max(draws):.4f}"


_MOST = 12
"""Heads that are named."""


def records_seen(data: xr.Dataset) -> str:
    """How the highest weights and the margin ratio of every head go over its records.

    Args:
        data: What ``HeadMonitor.to_xarray`` returns.
    """
    steps, heads = data["step"].to_numpy(), data["head"].to_numpy().tolist()
    if not len(steps):
        return "No records yet."
    weight = data["selected_probability"].mean(("sequence", "query"))
    courses = {
        name: f"highest weight {course(weight.sel(head=name).to_numpy())}, margin ratio "
        f"{course(data['margin_ratio'].sel(head=name).to_numpy())}"
        for name in heads[:_MOST]
    }
    rest = f" And {many(len(heads) - _MOST, 'more head')}." if len(heads) > _MOST else ""
    return f"Steps {steps[0]:,} to {steps[-1]:,}. {listed(courses)}{rest}"
