"""The simplex method in exact rational arithmetic for l_1 and l_inf: small problems, badly scaled.

With the constraints as rows F, the dual in l_1 is ``max c^T x`` subject to ``-1 <= F^T x <= 1``. In
l_inf ``F^T x = p - q`` with ``p, q >= 0`` and ``sum(p + q) <= 1``, whence q is eliminated. Both
begin at zero, and the prices of their limits make the matrix.
"""

from __future__ import annotations

import contextlib
from fractions import Fraction

import numpy as np

from attractor.geometry import Lp
from attractor.margin.certificates.exact_elimination import eliminate
from attractor.margin.ill_conditioned.rounding import exact_rows, round_together
from attractor.margin.methods import Candidates, Task

_FREE = Fraction(1, 2**16)
"""Weight of what rounding does to entries that may move."""
_MOST_ENTRIES, _MOST = 12, 40
"""Entries of the matrix, and constraints, up to which an instance takes no minutes."""


def solve_by_exact_simplex(task: Task) -> Candidates:
    """Candidates for ``Lp(1)`` or ``Lp(inf)``, one instance at a time; none for large ones."""
    W, x = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
    for i in task.warm_started:
        if W[i].size <= _MOST_ENTRIES and task.scaled.nonzero[i].sum() <= _MOST:
            with contextlib.suppress(OverflowError):  # too large for floating point is no answer
                W[i], x[i] = _solve(task, i)
    return W, x


def _solve(task: Task, i: int) -> tuple[np.ndarray, np.ndarray]:
    """The solution of one instance."""
    assert isinstance(task.geometry, Lp)
    scaled, x = task.scaled, np.zeros(task.multipliers.shape[-1])
    slots = np.flatnonzero(scaled.nonzero[i])
    rows = exact_rows(scaled.left[i, slots], scaled.right[i, slots])
    bounds = [Fraction(c) for c in scaled.bounds[i, slots].tolist()]
    unit = max(f.denominator for row in rows for f in row)  # both are powers of two
    scale = max(c.denominator for c in bounds)
    whole = [[int(unit * f) for f in row] for row in rows]
    gains = [int(scale * c) for c in bounds]
    # Of either sign are the multipliers of equalities: each is a difference of two.
    equal = np.flatnonzero(~scaled.inequality[i, slots]).tolist()
    whole += [[-f for f in whole[j]] for j in equal]
    gains += [-gains[j] for j in equal]
    solve = _sum_of_entries if task.geometry.p == 1 else _largest_entry
    entries, multipliers = solve(whole, gains)
    for j, y in zip(equal, multipliers[len(rows) :], strict=True):
        multipliers[j] -= y
    # Where an entry is zero in l_1, or largest in l_inf, that of the sum of multipliers is free.
    free = 0 if task.geometry.p == 1 else max(map(abs, entries))
    weights = [_FREE if abs(w) == free else 1 for w in entries]
    weighted = [[f * w for f, w in zip(row, weights, strict=True)] for row in rows]
    x[slots] = round_together(weighted, [unit * y for y in multipliers[: len(rows)]])
    columns = [
        [f if y else f * _FREE for f, y in zip(column, x[slots], strict=True)]
        for column in zip(*rows, strict=True)
    ]
    W = round_together(columns, [w * unit / scale for w in entries], keep_scale=True)
    return W.reshape(task.W.shape[1:]), x


def _sum_of_entries(
    rows: list[list[int]], gains: list[int]
) -> tuple[list[Fraction], list[Fraction]]:
    """Entries and multipliers in l_1."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = [*columns, *([-f for f in column] for column in columns)]
    x, prices = _largest(table, [1] * len(table), gains)
    above, below = prices[: len(columns)], prices[len(columns) :]
    return [u - v for u, v in zip(above, below, strict=True)], x


def _largest_entry(
    rows: list[list[int]], gains: list[int]
) -> tuple[list[Fraction], list[Fraction]]:
    """Entries and multipliers in l_inf."""
    n = len(rows[0])
    table = [
        [*column, *(-int(k == i) for i in range(n))]
        for k, column in enumerate(zip(*rows, strict=True))
    ]
    table.append([*(-sum(row) for row in rows), *[2] * n])
    x, (*prices, largest) = _largest(table, [0] * n + [1], gains + [0] * n)
    return [price - largest for price in prices], x[: len(rows)]


def _largest(
    table: list[list[int]], limits: list[int], gains: list[int]
) -> tuple[list[Fraction], list[Fraction]]:
    """The x of ``max gains x`` with ``table x <= limits``, ``x >= 0``, and the prices of limits.

    No limit is negative. Tables stay whole numbers over the last
    pivot (Bareiss 1968). What gains most enters; after a step that gains nothing, the first that
    gains (Bland 1977), so that no basis comes again.

    Raises:
        OverflowError: If there is no largest value.
    """
    count, n = len(table), len(gains)
    table = [
        [*row, *(int(k == i) for i in range(count)), limit]
        for k, (row, limit) in enumerate(zip(table, limits, strict=True))
    ]
    table.append([*(-gain for gain in gains), *[0] * (count + 1)])
    basis, last, stuck = list(range(n, n + count)), 1, False
    while True:
        costs = table[-1][:-1]
        gaining = [j for j, cost in enumerate(costs) if cost < 0]
        if not gaining:
            break
        enter = gaining[0] if stuck else min(gaining, key=costs.__getitem__)
        limiting = [i for i in range(count) if table[i][enter] > 0]
        if not limiting:
            raise OverflowError("the largest value is infinite")
        leave = min(limiting, key=lambda i: (Fraction(table[i][-1], table[i][enter]), basis[i]))
        stuck = table[leave][-1] == 0
        basis[leave] = enter
        last = eliminate(table, leave, enter, last)
    x = [Fraction(0)] * (n + count)
    for i, j in enumerate(basis):
        x[j] = Fraction(table[i][-1], last)
    return x[:n], [Fraction(price, last) for price in costs[n:]]
