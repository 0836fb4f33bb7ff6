"""A matrix that meets all constraints in rational arithmetic, near one of floats."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog

from fuzzing.exact_numbers import Exact

_BITS = 250
_ROUNDS = 6


def feasible_near(problem: Any, W: Any, tight: Sequence[Sequence[int]] = ()) -> list[Exact]:
    """Matrices that meet them, but for their 250th digit; none where this finds none.

    W is moved by the least that makes equalities hold, and inequalities that it falls short of
    and scaling cannot cure; what is short after that joins them. Then it is scaled up. Where
    constraints are nearly dependent, that can be far; so one is found with those that are tight
    held as well, and one aside from all inequalities at once.

    Args:
        problem: The constraints.
        W: A matrix that meets them but for rounding.
        tight: Inequalities that may hold with equality at a solution, some at a time.
    """
    rows = [
        [Fraction(a) * Fraction(b) for a in left for b in right]
        for left, right in zip(problem.left.tolist(), problem.right.tolist(), strict=True)
    ]
    bounds = [Fraction(c) for c in problem.bounds.tolist()]
    held = dict.fromkeys([(), *map(tuple, tight)])  # each once
    found = [
        _aside(problem, W, rows, bounds),
        *(_moved(problem, W, rows, bounds, some) for some in held),
    ]
    return [one for one in found if one is not None]


_Rows = list[list[Fraction]]


def _aside(problem: Any, W: Any, rows: _Rows, bounds: list[Fraction]) -> Exact | None:
    """W moved into the inside of inequalities; None where there are equalities, or no inside."""
    A = np.einsum("nd,ne->nde", problem.left, problem.right).reshape(len(problem.bounds), -1)
    sizes = np.abs(A).max(1, initial=0)
    if np.any(problem.equality) or not sizes.all():
        return None
    A = A / sizes[:, None]
    # The least entries t of a direction along which every margin rises by one.
    n = A.shape[1]
    ones, eye = np.ones((len(A), 1)), np.eye(n)
    rises = np.block([[-A, 0 * ones], [eye, -np.ones((n, 1))], [-eye, -np.ones((n, 1))]])
    least = np.r_[-np.ones(len(A)), np.zeros(2 * n)]
    free = [(None, None)] * (n + 1)
    direction = linprog(np.r_[np.zeros(n), 1.0], A_ub=rises, b_ub=least, bounds=free)
    if direction.status != 0:
        return None
    start = [Fraction(w) for w in W.ravel().tolist()]
    along = [Fraction(x) for x in direction.x[:n].tolist()]
    length = Fraction(0)
    for row, bound in zip(rows, bounds, strict=True):
        short, rise = bound - _inner(row, start), _inner(row, along)
        if short > 0:
            if rise <= 0:
                return None
            length = max(length, short / rise)
    x = [w + length * step for w, step in zip(start, along, strict=True)]
    if any(_inner(row, x) < bound for row, bound in zip(rows, bounds, strict=True)):
        return None
    return _rounded(x, W.shape)


def _moved(
    problem: Any, W: Any, constraints: _Rows, bounds: list[Fraction], tight: Sequence[int]
) -> Exact | None:
    """W moved by the least onto equalities, those that are tight, and what it falls short of."""
    held = problem.equality.tolist()
    curable = [c > 0 and not h and problem.scalable for c, h in zip(bounds, held, strict=True)]
    start = [Fraction(w) for w in W.ravel().tolist()]
    x, active = start, sorted({*tight, *(j for j, h in enumerate(held) if h)})
    for turn in range(_ROUNDS):
        margins = [_inner(row, x) for row in constraints]
        off = [m - c for m, c in zip(margins, bounds, strict=True)]
        short = [j for j, s in enumerate(off) if (s != 0 if held[j] else s < 0 and not curable[j])]
        if not short and (turn or not tight):
            ratios = [m / c for m, c, q in zip(margins, bounds, curable, strict=True) if q]
            stretch = min([Fraction(1), *ratios])
            return _rounded([w / stretch for w in x], W.shape) if stretch > 0 else None
        active += [j for j in short if j not in active]
        rows = [constraints[j] for j in active]
        wanted = [bounds[j] - _inner(constraints[j], start) for j in active]
        weights = _solution([[_inner(r, t) for t in rows] for r in rows], wanted)
        if weights is None:
            return None
        x = [
            w + sum((u * row[k] for u, row in zip(weights, rows, strict=True)), Fraction(0))
            for k, w in enumerate(start)
        ]
    return None


def _inner(left: list[Fraction], right: list[Fraction]) -> Fraction:
    return sum((u * v for u, v in zip(left, right, strict=True) if u and v), Fraction(0))


def _solution(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """A solution of a system that need not be regular; ``None`` where there is none."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    pivots: list[int] = []
    for column in range(len(rows)):
        done = len(pivots)
        pivot = next((i for i in range(done, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        first = rows[done][column]
        rows[done] = [value / first for value in rows[done]]
        for i, row in enumerate(rows):
            if i != done and row[column]:
                rows[i] = [u - row[column] * v for u, v in zip(row, rows[done], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    solution = [Fraction(0)] * len(matrix)
    for row, column in zip(rows, pivots, strict=False):
        solution[column] = row[-1]
    return solution


def _rounded(entries: list[Fraction], shape: tuple[int, int]) -> Exact:
    most = max((abs(x) for x in entries), default=Fraction(0))
    exponent = most.numerator.bit_length() - most.denominator.bit_length() - _BITS if most else 0
    unit = Fraction(2) ** -exponent
    integers = [int(x * unit) for x in entries]
    d, e = shape
    return Exact([integers[i * e : (i + 1) * e] for i in range(d)], exponent)
