"""The support tokens of a solution of a margin problem, with their multipliers."""

from __future__ import annotations

import dataclasses

import numpy as np
from rich.table import Table

from attractor.margin import Solution
from attractor.report._conflicts import place_columns


@dataclasses.dataclass(frozen=True)
class SupportPair:
    """A constraint at its bound: ``selected`` outscores ``token`` by the margin required.

    Attributes:
        instance: Number of the data set.
        sequence: Sequence it is about.
        query: Query it is about.
        selected: The token that is kept.
        token: The token that scores lower by the margin, or the same where ``tied``.
        multiplier: Its multiplier: how fast the norm grows with the margin required.
        tied: Whether both tokens are kept, with equal scores.
    """

    instance: int
    sequence: int
    query: int
    selected: int
    token: int
    multiplier: float
    tied: bool


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


def support_table(pairs: list[SupportPair], most: int) -> Table:
    """The pairs with the largest multipliers, for a terminal of 80 columns."""
    shown = sorted(pairs, key=lambda pair: -abs(pair.multiplier))[:most]
    more = f"; {most} of {len(pairs)}, largest multipliers" if len(pairs) > most else ""
    table = Table(title=f"Support tokens{more}", title_justify="left")
    columns = place_columns(pairs) | {"selected": "selected", "support token": "token"}
    for name in (*columns, "multiplier"):
        table.add_column(name, justify="right")
    for pair in shown:
        cells = [str(getattr(pair, attribute)) for attribute in columns.values()]
        tie = " (tied)" if pair.tied else ""
        table.add_row(*cells, f"{pair.multiplier:.6f}{tie}")
    return table
