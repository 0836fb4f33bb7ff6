"""Small margin problems solved in exact rational arithmetic, by nothing of the library."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction


def exact_norm(problem, p):
    """The smallest norm of a matrix that meets inequalities, infinite where there is none.

    Args:
        problem: A single problem without equalities.
        p: Exponent of the norm of entries: 1, 2 or infinity.
    """
    rows, bounds = rows_of(problem), [Fraction(float(c)) for c in problem.bounds]
    if p == 2:
        return _smallest_by_enumeration(rows, bounds)
    columns = list(zip(*rows, strict=True))
    if p == 1:  # max c^T x subject to |F^T x| <= 1
        system = [[s * f for f in column] for column in columns for s in (1, -1)]
        return _largest(system, [Fraction(1)] * len(system), bounds)
    # max c^T x subject to F^T x <= y, 0 <= y, sum(2 y - F^T x) <= 1
    n = len(columns)
    unit = [[Fraction(-(i == k)) for k in range(n)] for i in range(n)]
    system = [[*column, *row] for column, row in zip(columns, unit, strict=True)]
    system.append([-sum(row) for row in rows] + [Fraction(2)] * n)
    return _largest(system, [Fraction(0)] * n + [Fraction(1)], bounds + [Fraction(0)] * n)


def rows_of(problem):
    """The ``a_j b_j^T`` as rows of fractions."""
    pairs = zip(problem.left.tolist(), problem.right.tolist(), strict=True)
    return [[Fraction(x) * Fraction(y) for x in a for y in b] for a, b in pairs]


def _smallest_by_enumeration(rows, bounds):
    """The Frobenius norm: the one support on which the conditions of optimality hold."""
    m = len(rows)
    gram = [[_dot(f, g) for g in rows] for f in rows]
    for size in range(min(m, len(rows[0])) + 1):
        for support in itertools.combinations(range(m), size):
            block = [[gram[i][j] for j in support] for i in support]
            x = _solve(block, [bounds[i] for i in support])
            if x is None or min(x, default=0) < 0:
                continue
            margins = (
                sum(gram[i][j] * y for j, y in zip(support, x, strict=True)) for i in range(m)
            )
            if all(margin >= c for margin, c in zip(margins, bounds, strict=True)):
                return _root(sum(bounds[j] * y for j, y in zip(support, x, strict=True)))
    return math.inf


def _root(square):
    """The square root of a fraction, correct to more digits than floating point has."""
    shift = 2 * max(0, 160 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    whole = math.isqrt((square.numerator << shift) // square.denominator)
    return float(Fraction(whole, 1 << (shift // 2)))


def _dot(f, g):
    return sum(x * y for x, y in zip(f, g, strict=True))


def _solve(matrix, right):
    """The solution of a square system; None if it is singular."""
    n = len(right)
    table = [[*row, y] for row, y in zip(matrix, right, strict=True)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if table[i][k] != 0), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        _eliminate(table, k, k)
    return [row[-1] for row in table]


def _eliminate(table, row, column):
    """Makes a column of a table a unit vector, in place."""
    pivot = table[row][column]
    table[row] = [x / pivot for x in table[row]]
    for i, other in enumerate(table):
        factor = other[column]
        if i != row and factor != 0:
            table[i] = [x - factor * y for x, y in zip(other, table[row], strict=True)]


def _largest(system, limits, gains):
    """``max gains x`` subject to ``system x <= limits``, ``x >= 0``, where limits are none below 0.

    By the simplex method with Bland's rule, which ends.
    """
    m, n = len(system), len(gains)
    table = [
        [*row, *(Fraction(i == j) for j in range(m)), limit]
        for i, (row, limit) in enumerate(zip(system, limits, strict=True))
    ]
    table.append([*(-gain for gain in gains), *([Fraction(0)] * (m + 1))])
    basis = list(range(n, n + m))
    while True:
        enter = next((j for j in range(n + m) if table[-1][j] < 0), None)
        if enter is None:
            return float(table[-1][-1])
        ratios = [
            (table[i][-1] / table[i][enter], basis[i], i) for i in range(m) if table[i][enter] > 0
        ]
        if not ratios:
            return math.inf
        leave = min(ratios)[-1]
        basis[leave] = enter
        _eliminate(table, leave, enter)
