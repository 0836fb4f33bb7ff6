"""Proofs in rational arithmetic that a problem in the l_1 or l_inf norm has one solution.

Both are linear programs. A vertex with multipliers that are strictly right is the one solution:
however far from it matrices lie that are longer by less than any tolerance.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from fuzzing.exact_check import Answer, Problem

_AT_BOUND = 1e-4
"""Relative distance of an entry from zero, or from the largest, at which it is taken as there."""


def only_vertex(problem: Problem, answer: Answer) -> bool:
    """Whether the answer lies at a vertex that is proved to be the one solution.

    The vertex is read off the answer (its support, and its entries that are zero, or largest), and
    solved for exactly, with its multipliers. ``False`` says that this proved nothing.
    """
    if answer.family != "entrywise" or answer.p not in (1, math.inf):
        return False
    constraints = [
        [Fraction(float(a)) * Fraction(float(b)) for a in left for b in right]
        for left, right in zip(problem.left, problem.right, strict=True)
    ]
    bounds = [Fraction(float(bound)) for bound in problem.bounds]
    W = answer.W.ravel()
    size, signs = np.abs(W), [int(sign) for sign in np.sign(W)]
    highest = answer.p == math.inf
    at_bound = size >= (1 - _AT_BOUND) * size.max() if highest else size <= _AT_BOUND * size.max()
    free = [int(j) for j in np.flatnonzero(~at_bound)]
    held = [int(j) for j in np.flatnonzero(at_bound)]
    support = [i for i in range(len(bounds)) if answer.support[i] or problem.equality[i]]

    def unknowns(row: list[Fraction]) -> list[Fraction]:
        """A constraint on the norm, where it is unknown, and on the free entries."""
        norm = [sum((row[j] * signs[j] for j in held), Fraction(0))] if highest else []
        return norm + [row[j] for j in free]

    system = [unknowns(constraints[i]) for i in support]
    if not system or len(system) != len(system[0]):
        return False
    cost = [Fraction(1), *[Fraction(0)] * len(free)] if highest else [signs[j] for j in free]
    x = _solution(system, [bounds[i] for i in support])
    y = _solution([list(column) for column in zip(*system, strict=True)], cost)
    if x is None or y is None:
        return False
    norm = x.pop(0) if highest else Fraction(1)
    vertex = [norm * signs[j] if highest else Fraction(0) for j in range(W.size)]
    for j, value in zip(free, x, strict=True):
        vertex[j] = value
    dual = [sum((u * constraints[i][j] for u, i in zip(y, support, strict=True)), Fraction(0))
            for j in range(W.size)]  # fmt: skip
    others = [i for i in range(len(bounds)) if i not in support]
    inside = (
        all(abs(vertex[j]) < norm for j in free) and all(dual[j] * signs[j] > 0 for j in held)
        if highest
        else all(vertex[j] * signs[j] > 0 for j in free) and all(abs(dual[j]) < 1 for j in held)
    )
    return (
        inside
        and all(u > 0 or problem.equality[i] for u, i in zip(y, support, strict=True))
        and all(
            sum(r * w for r, w in zip(constraints[i], vertex, strict=True)) > bounds[i]
            for i in others
        )
    )


def _solution(matrix: list[list[Fraction]], right: list) -> list[Fraction] | None:
    """The solution of a square system; ``None`` where it is singular."""
    rows = [[*row, Fraction(value)] for row, value in zip(matrix, right, strict=True)]
    for column in range(len(rows)):
        pivot = next((i for i in range(column, len(rows)) if rows[i][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for i, row in enumerate(rows):
            if i != column and row[column]:
                rows[i] = [u - row[column] * v for u, v in zip(row, rows[column], strict=True)]
    return [row[-1] for row in rows]
