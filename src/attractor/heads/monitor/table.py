"""The table of a ``HeadMonitor``: each head at its latest record, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attractor.geometry import Geometry
from attractor.heads.monitor.record import HeadRecord, RecordStatus
from attractor.results import plain_table

if TYPE_CHECKING:
    from rich.table import Table

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
