"""Whether margin problems are feasible, in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any


def constraint_rows(
    problem: dict[str, Any], selection: list[int]
) -> tuple[list[list[Fraction]], list[int]]:
    """The a_j as the library has them: differences of keys rounded, products with queries exact."""
    rows, bounds = [], []
    supports = problem.get("supports") or [True] * len(problem["keys"])
    for keys, kept, query, support in zip(
        problem["keys"], selection, problem["queries"], supports, strict=True
    ):
        z = [Fraction(1)] if problem["parameterization"] == "p" else [Fraction(x) for x in query]
        for t, key in enumerate(keys):
            if t != kept:
                apart = [Fraction(a - b) for a, b in zip(keys[kept], key, strict=True)]
                rows.append([a * b for a in apart for b in z])
                bounds.append(int(support))
    return rows, bounds


def contradiction(rows: list[list[Fraction]], bounds: list[int]) -> list[Fraction] | None:
    """Multipliers m >= 0 with sum m_j a_j = 0 and <bounds, m> = 1; None where it is feasible.

    The first phase of the simplex method with Bland's rule, which ends.
    """
    count, d = len(rows), len(rows[0])
    table = [[rows[j][k] for j in range(count)] + [Fraction(0)] for k in range(d)]
    table.append([Fraction(bound) for bound in bounds] + [Fraction(1)])
    basis: list[int | None] = [None] * (d + 1)  # None: an artificial variable
    while True:
        # The sum of artificial variables falls along a column with a positive sum of their rows.
        open_rows = [r for r in range(d + 1) if basis[r] is None]
        if all(table[r][-1] == 0 for r in open_rows):
            found = [Fraction(0)] * count
            for r, column in enumerate(basis):
                if column is not None:
                    found[column] = table[r][-1]
            return found
        entering = next(
            (j for j in range(count) if j not in basis and sum(table[r][j] for r in open_rows) > 0),
            None,
        )
        if entering is None:
            return None
        ratios = [
            (table[r][-1] / table[r][entering], -1 if basis[r] is None else basis[r], r)
            for r in range(d + 1)
            if table[r][entering] > 0
        ]
        _, _, leaving = min(ratios)
        pivot = table[leaving][entering]
        table[leaving] = [x / pivot for x in table[leaving]]
        for r in range(d + 1):
            if r != leaving and table[r][entering] != 0:
                factor = table[r][entering]
                table[r] = [x - factor * y for x, y in zip(table[r], table[leaving], strict=True)]
        basis[leaving] = entering
