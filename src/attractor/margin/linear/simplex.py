"""The simplex method, in floating point and in exact rational numbers."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from jaxtyping import Bool, Float

from attractor.geometry import Lp
from attractor.margin.batching.iterates import BestIterates
from attractor.margin.certificates.exact_elimination import eliminate
from attractor.margin.ill_conditioned.rounding import exact_rows, round_together
from attractor.margin.linear.interior_points import EntrywiseProgram
from attractor.margin.linear.methods import program_of
from attractor.margin.linear.vertices import project_on_face
from attractor.margin.methods import Candidates, Task

_SETTINGS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_AT_BOUND = 1e-9
"""Distance from a bound, in units of the largest entry, that is rounding."""


def solve_by_simplex(task: Task) -> Candidates:
    """Solves in l_1 or l_inf by the HiGHS simplex method, and anew where it ends.

    Args:
        task: Its geometry is ``Lp(1)`` or ``Lp(inf)``, its W a matrix that meets the constraints.
    """
    best = BestIterates(len(task.W), task.W.shape[1:], task.multipliers.shape[-1])
    assert isinstance(task.geometry, Lp)
    solve = {1.0: _sum_of_entries, math.inf: _largest_entry}[task.geometry.p]
    for i in task.warm_started:
        one, place = task.choose([i]), np.array([i])
        with np.errstate(all="ignore"):
            program = program_of(one)
        found = solve(program, np.abs(task.W[i]).max())
        if found is None:
            continue
        w, multipliers, between = found
        slack = program.margins(w[None])[0] - program.bounds[0]
        tight = slack <= _AT_BOUND * max(np.abs(w).max(), 1.0)
        tight |= ~program.inequality[0] | (multipliers > 0)
        signs = np.where(w > 0, 1.0, -1.0)
        again = project_on_face(program, signs, between, tight & program.present[0], w, multipliers)
        for entries, x in ((w, multipliers), again):
            W = entries.reshape(1, *task.W.shape[1:])
            best.offer(place, one.scaled, W, x[None], task.geometry)
    return best.W, best.multipliers


_Found = tuple[Float[np.ndarray, "D"], Float[np.ndarray, "m"], Bool[np.ndarray, "D"]]
"""Entries, multipliers, and which entries lie between their bounds."""


def _sum_of_entries(program: EntrywiseProgram, size: float) -> _Found | None:
    """``min sum(u + v)`` with ``w = size (u - v)``."""
    rows = np.hstack([program.rows[0], -program.rows[0]])
    found = _linprog(program, np.ones(rows.shape[1]), rows, program.bounds[0] / size, (0, None))
    if found is None:
        return None
    w = size * (found[0][: rows.shape[1] // 2] - found[0][rows.shape[1] // 2 :])
    return w, found[1], np.abs(w) > _AT_BOUND * np.abs(w).max()


def _largest_entry(program: EntrywiseProgram, size: float) -> _Found | None:
    """``max g`` with ``F x >= g c`` and ``|x| <= 1``, where ``w = x / g``."""
    rows = np.hstack([program.rows[0], -program.bounds[0][:, None] / size])
    entries = rows.shape[1] - 1
    costs = np.append(np.zeros(entries), -1.0)
    limits = [*[(-1, 1)] * entries, (0, None)]
    found = _linprog(program, costs, rows, np.zeros(len(rows)), limits)
    if found is None or not found[0][-1] > 0:
        return None
    return size * found[0][:-1] / found[0][-1], found[1], np.abs(found[0][:-1]) < 1 - _AT_BOUND


def _linprog(
    program: EntrywiseProgram, costs: Any, rows: Any, bounds: Any, limits: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """The solution and multipliers of ``rows x >= bounds``, equal on equalities."""
    above = program.inequality[0]
    equal = program.present[0] & ~above
    found = scipy.optimize.linprog(
        costs,
        A_ub=-rows[above],
        b_ub=-bounds[above],
        A_eq=-rows[equal],
        b_eq=-bounds[equal],
        bounds=limits,
        method="highs-ds",
        options=_SETTINGS,
    )
    if found.x is None or not np.isfinite(found.x).all():
        return None
    multipliers = np.zeros(len(rows))
    multipliers[above], multipliers[equal] = -found.ineqlin.marginals, -found.eqlin.marginals
    return found.x, multipliers


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
    solve = _exact_sum_of_entries if task.geometry.p == 1 else _exact_largest_entry
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


def _exact_sum_of_entries(
    rows: list[list[int]], gains: list[int]
) -> tuple[list[Fraction], list[Fraction]]:
    """Entries and multipliers in l_1."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = [*columns, *([-f for f in column] for column in columns)]
    x, prices = _largest(table, [1] * len(table), gains)
    above, below = prices[: len(columns)], prices[len(columns) :]
    return [u - v for u, v in zip(above, below, strict=True)], x


def _exact_largest_entry(
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
