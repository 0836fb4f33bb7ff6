"""The dual active set in exact rational arithmetic: small problems, however badly scaled.

Where columns differ by many orders of magnitude, or constraints nearly contradict each other,
floating point cannot tell which constraints hold a matrix, nor whether there is any. Floating-point
numbers are fractions: here the Gram matrix is a matrix of whole numbers, and nothing is rounded
but the answer.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.exact_elimination import eliminate
from attractor.margin.ill_conditioned.rounding import exact_rows, round_together
from attractor.margin.methods import Candidates, Task

_MOST_ACTIVE, _MOST = 12, 200
"""Constraints that hold a matrix, and constraints, up to which an instance takes no minutes."""


def solve_exactly(task: Task) -> Candidates:
    """Candidates by the dual active-set method, one instance at a time; none for large ones."""
    scaled = task.scaled
    W, x = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
    count = scaled.nonzero.sum(-1)
    suited = (count > 0) & (count <= _MOST) & (np.minimum(count, W[0].size) <= _MOST_ACTIVE)
    for i in np.flatnonzero(suited & ~scaled.impossible.any(-1)).tolist():
        with contextlib.suppress(OverflowError):  # too large for floating point is no answer
            W[i], x[i] = _solve(scaled, i, W[i])
    return W, x


def _solve(scaled: ScaledConstraints, i: int, nothing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The solution of one instance, or nothing and Farkas multipliers."""
    W, x = nothing, np.zeros(scaled.bounds.shape[-1])
    slots = np.flatnonzero(scaled.nonzero[i])
    rows = exact_rows(scaled.left[i, slots], scaled.right[i, slots])
    bounds = [Fraction(c) for c in scaled.bounds[i, slots].tolist()]
    exact, contradictory = _active_set(rows, bounds, scaled.inequality[i, slots].tolist())
    size = max(map(abs, exact))
    if not contradictory:
        entries = [float(_dot(exact, column)) for column in zip(*rows, strict=True)]
        W, size = (
            np.reshape(entries, nothing.shape),
            Fraction(math.hypot(*entries)),
        )
    if size:
        x[slots] = round_together(rows, [y / size for y in exact])
    return W, x


def _active_set(
    rows: list[list[Fraction]], bounds: list[Fraction], inequality: list[bool]
) -> tuple[list[Fraction], bool]:
    """Multipliers that make the smallest matrix, or those of a contradiction, and which.

    Each step adds a violated constraint and drops those whose multiplier it drives to zero
    (Goldfarb and Idnani 1983). Equalities come first, and stay.
    """
    unit = max(f.denominator for row in rows for f in row)  # powers of two
    scale = max(c.denominator for c in bounds)
    whole = [[int(unit * f) for f in row] for row in rows]
    goals = [int(unit * scale * c) for c in bounds]
    gram = [[_dot(f, g) for g in whole] for f in whole]
    x = [Fraction(0)] * len(rows)
    active: list[int] = []
    while True:
        below = math.lcm(*(y.denominator for y in x))
        above = [int(below * y) for y in x]
        short = [below * c - _dot(g, above) for c, g in zip(goals, gram, strict=True)]
        wrong = [j for j, s in enumerate(short) if s > 0 or (s and not inequality[j])]
        if not wrong:
            return [y * unit / scale for y in x], False
        p = min(wrong, key=lambda j: (inequality[j], -short[j]))
        missing = Fraction(short[p], below)
        while p not in active:
            drop = _solution([[gram[i][j] for j in [*active, p]] for i in active])
            distance = gram[p][p] - _dot([gram[p][j] for j in active], drop)
            pairs = [*zip(active, drop, strict=True)]
            rates = [(x[j] / y, j) for j, y in pairs if inequality[j] and y > 0]
            first, blocker = min(rates, default=(math.inf, p))
            full = missing / distance if distance else math.inf
            step: Any = min(full, first)
            if step == math.inf:
                x = [Fraction(0)] * len(rows)
                step = Fraction(1 if missing > 0 else -1)
            for j, y in [*pairs, (p, Fraction(-1))]:
                x[j] -= step * y
            missing -= step * distance
            if first < full:
                active.remove(blocker)
            elif full < math.inf:
                active.append(p)
            else:
                return x, True


def _solution(table: list[list[int]]) -> list[Fraction]:
    """Solves a positive definite system of whole numbers, its right side the last column."""
    last = 1
    for k in range(len(table)):
        last = eliminate(table, k, k, last)
    return [Fraction(row[-1], last) for row in table]


def _dot(a: Iterable[Any], b: Iterable[Any]) -> Any:
    return sum(x * y for x, y in zip(a, b, strict=True))
