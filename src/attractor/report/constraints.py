"""Constraints of a margin problem by their tokens: those at their bound, and those in conflict."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import rich.table

from attractor.margin import Solution
from attractor.report.page import Section, Table
from attractor.support.checks import check_kinds
from attractor.support.precision import as_integers

MOST_ROWS = 60
"""Constraints listed on a page; all of them are in the data files."""


@dataclasses.dataclass(frozen=True)
class TokenConstraint:
    """One constraint: ``selected`` should outscore ``token``.

    Attributes:
        instance: Number of the data set.
        sequence: Sequence it is about.
        query: Query it is about.
        selected: The token that is kept.
        token: The token that should score lower.
    """

    instance: int
    sequence: int
    query: int
    selected: int
    token: int


@dataclasses.dataclass(frozen=True)
class Conflict(TokenConstraint):
    """One constraint of a contradiction.

    Attributes:
        weight: Its share in the combination of constraints that cannot hold, from 0 to 1.
    """

    weight: float


@dataclasses.dataclass(frozen=True)
class SupportPair(TokenConstraint):
    """A constraint at its bound: ``selected`` outscores ``token`` by the margin required.

    Attributes:
        multiplier: Its multiplier: how fast the norm grows with the margin required.
        tied: Whether both tokens are kept, with equal scores.
    """

    multiplier: float
    tied: bool


def conflicts(solution: Solution, instance_numbers: np.ndarray) -> list[Conflict]:
    """The constraints that contradict each other where a problem is infeasible or out of reach.

    Args:
        solution: Solution for one data set or several, of a problem that comes from a selection.
        instance_numbers: Number of each data set.
    """
    check_kinds(solution=(solution, Solution))
    count = int(np.size(solution.norm))
    instance_numbers = as_integers("instance_numbers", instance_numbers, (count,))
    found = []
    several = solution.problem.instances is not None
    alone = [solution[i] for i in range(count)] if several else [solution]
    for number, lone in zip(instance_numbers, alone, strict=True):
        problem = lone.problem
        selection = problem.selection
        if selection is None or problem.sequence is None or not lone.conflict.size:
            continue
        share = np.abs(lone.multipliers) / np.abs(lone.multipliers[lone.conflict]).sum()
        for j in lone.conflict:
            sequence, query, token = (
                int(getattr(problem, name)[j]) for name in ("sequence", "query", "token")
            )
            selected = int(selection.mask[sequence, query].argmax())
            found.append(Conflict(int(number), sequence, query, selected, token, float(share[j])))
    return found


def conflict_section(found: list[Conflict]) -> Section:
    """The section of the page that lists them."""
    columns = place_columns(found) | {"token to keep": "selected", "against token": "token"}
    rows = [
        [*(str(getattr(one, attribute)) for attribute in columns.values()), f"{one.weight:.3f}"]
        for one in found[:MOST_ROWS]
    ]
    more = len(found) - MOST_ROWS
    note = f" The first {MOST_ROWS} of {len(found)} are shown." if more > 0 else ""
    return Section(
        "Constraints that conflict",
        [
            "Each line asks that attention scores the token to keep higher than the other token "
            "of the same sequence. Added up with the shares shown, the left sides cancel to zero, "
            "but for rounding, for every matrix, so they cannot all be far above zero. Dropping "
            "one of these sequences, or selecting another token in it, breaks this contradiction; "
            "others may remain."
            f"{note}"
        ],
        table=Table([*columns, "share"], rows),
    )


def place_columns(found: Sequence[TokenConstraint]) -> dict[str, str]:
    """Columns of a table that say where constraints are, as attributes by header.

    Data sets and queries are left out where there is only one.
    """
    columns = {"sequence": "sequence"}
    if any(one.query for one in found):
        columns["query"] = "query"
    if len({one.instance for one in found}) > 1:
        columns = {"data set": "instance"} | columns
    return columns


def support_pairs(solution: Solution, instance_numbers: np.ndarray) -> list[SupportPair]:
    """The constraints at their bound; none where there is no solution.

    Args:
        solution: Solution for one data set or several, of a problem that comes from a selection.
        instance_numbers: Number of each data set.
    """
    problem = solution.problem.batched()
    selection = problem.selection
    if selection is None or problem.sequence is None:
        return []
    assert problem.query is not None and problem.token is not None
    multipliers = solution.multipliers.reshape(problem.bounds.shape)
    solved = np.isfinite(solution.W).all((-1, -2)).reshape(-1)
    first = selection.mask.argmax(-1)
    found = []
    for i, j in np.argwhere(solution.certificate.support & solved[:, None]):
        sequence, query = int(problem.sequence[i, j]), int(problem.query[i, j])
        found.append(
            SupportPair(
                int(instance_numbers[i]),
                sequence,
                query,
                int(first[i, sequence, query]),
                int(problem.token[i, j]),
                float(multipliers[i, j]),
                bool(problem.equality[i, j]),
            )
        )
    return found


def support_table(pairs: list[SupportPair], most: int) -> rich.table.Table:
    """The pairs with the largest multipliers, for a terminal of 80 columns."""
    shown = sorted(pairs, key=lambda pair: -abs(pair.multiplier))[:most]
    more = f"; {most} of {len(pairs)}, largest multipliers" if len(pairs) > most else ""
    table = rich.table.Table(title=f"Support tokens{more}", title_justify="left")
    columns = place_columns(pairs) | {"selected": "selected", "support token": "token"}
    for name in (*columns, "multiplier"):
        table.add_column(name, justify="right")
    for pair in shown:
        cells = [str(getattr(pair, attribute)) for attribute in columns.values()]
        tie = " (tied)" if pair.tied else ""
        table.add_row(*cells, f"{pair.multiplier:.6f}{tie}")
    return table
