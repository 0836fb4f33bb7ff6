"""The dual active set in exact rational arithmetic: small problems, however badly scaled.

Where columns differ by many orders of magnitude, or constraints nearly contradict each other,
floating point cannot tell which constraints hold a matrix, nor whether there is any. Floating-point
numbers are fractions: here the Gram matrix is a matrix of whole numbers, and nothing is rounded
but the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from attractor.margin.exact_elimination import eliminate
from attractor.margin.ill_conditioned.rounding import exact_rows, round_together
from attractor.margin.methods import Candidates, Task
from attractor.margin.scaling import ScaledConstraints

_MOST_ACTIVE, _MOST = 12, 200
"""Constraints that hold a matrix, and constraints, up to which an instance takes no minutes."""


def solve_exactly(task: Task) -> Candidates:
    """Candidates by the dual active-set method, one instance at a time; none for large ones."""
    scaled = task.scaled
    W, x = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
    for i in range(len(W)):
        count = int(scaled.nonzero[i].sum())
        if (
            count <= _MOST
            and min(count, W[i].size) <= _MOST_ACTIVE
            and not scaled.impossible[i].any()
        ):
            W[i], x[i] = _solve(scaled, i)
    return W, x


def _solve(scaled: ScaledConstraints, i: int) -> tuple[np.ndarray, np.ndarray]:
    """The solution of one instance, or Farkas multipliers."""
    slots = np.flatnonzero(scaled.nonzero[i])
    rows = exact_rows(scaled.left[i, slots], scaled.right[i, slots])
    bounds = [Fraction(c) for c in scaled.bounds[i, slots].tolist()]
    exact, contradictory = _active_set(rows, bounds, scaled.inequality[i, slots].tolist())
    W, x = np.full_like(scaled.combine(np.zeros_like(scaled.bounds))[i], np.nan), np.zeros(0)
    size: float = max(map(abs, exact), default=Fraction(0))
    if not contradictory:
        columns = zip(*rows, strict=True)
        W = np.array([float(_dot(exact, column)) for column in columns]).reshape(W.shape)
        size = math.hypot(*W.ravel())
    x = np.zeros(scaled.bounds.shape[-1])
    if size:
        x[slots] = round_together(rows, [y / Fraction(size) for y in exact])
    return W, x


def _active_set(
    rows: list[list[Fraction]], bounds: list[Fraction], inequality: list[bool]
) -> tuple[list[Fraction], bool]:
    """Multipliers that make the smallest matrix, or those of a contradiction, and which.

    Each step adds a violated constraint and drops those whose multiplier it drives to zero
    (Goldfarb and Idnani 1983). Equalities come first, and stay.
    """
    unit = max((f.denominator for row in rows for f in row), default=1)  # a power of two
    whole = [[int(unit * f) for f in row] for row in rows]
    gram = [[_dot(f, g) for g in whole] for f in whole]
    x = [Fraction(0)] * len(rows)
    active: list[int] = []
    while True:
        short = [unit * c - _dot(g, x) for c, g in zip(bounds, gram, strict=True)]
        wrong = [j for j, s in enumerate(short) if s > 0 or (s and not inequality[j])]
        if not wrong:
            return [unit * y for y in x], False
        p = min(wrong, key=lambda j: (inequality[j], -short[j]))
        missing = short[p]
        while p not in active:
            drop = _solution([[gram[i][j] for j in [*active, p]] for i in active])
            distance = gram[p][p] - _dot([gram[p][j] for j in active], drop)
            pairs = [*zip(active, drop, strict=True)]
            rates = [(x[j] / y, j) for j, y in pairs if inequality[j] and y > 0]
            first, blocker = min(rates, default=(math.inf, p))
            full = missing / distance if distance else math.inf
            step = min(full, first)
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
