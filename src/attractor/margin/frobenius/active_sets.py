"""Active sets of least-norm problems: block pivoting, and exact rational numbers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped

from attractor.margin.batching.batches import inner_products
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.exact_elimination import eliminate
from attractor.margin.ill_conditioned.rounding import exact_rows, round_together
from attractor.margin.methods import Candidates, Task

_SLACK = 1e-11
"""Shortfall, in units of the largest bound, of a constraint that counts as met."""
_RIDGE = 1e-14
"""Added to the diagonal, so that repeated constraints do not make G singular."""
_LARGEST = 1e10
"""Multipliers beyond this are made by the ridge, or too inaccurate to be of use."""
_PATIENCE = 3
_CROWDED = 0.75
"""Share of active instances below which the others are left out of further work."""
_MOST_PIVOTS = 60
_STEP = 8
"""Sizes of blocks are multiples of this: few sizes, and few rows to spare."""


def solve_by_block_pivoting(task: Task) -> Candidates:
    """Candidates for the instances that pivoting suits; NaN for the others.

    It does not suit more constraints than the matrix has entries: their Gram matrix is singular.
    """
    scaled = task.scaled
    count, m, d = scaled.left.shape
    e = scaled.right.shape[-1]
    present = scaled.nonzero
    W, x = np.full((count, d, e), np.nan), np.zeros((count, m))
    suited = np.flatnonzero(present.sum(-1) <= d * e)
    if not suited.size:
        return W, x
    left, right, bounds, present, inequality = (
        _with_empty_slot(array[suited])
        for array in (scaled.left, scaled.right, scaled.bounds, present, scaled.inequality)
    )
    gram = left @ np.swapaxes(left, -1, -2)
    gram *= right @ np.swapaxes(right, -1, -2)
    found, ended = pivot(gram, bounds, present, inequality)
    ended &= np.abs(found).max(axis=-1, initial=0.0) < _LARGEST
    suited, found = suited[ended], found[ended, :m]
    left, right = scaled.left[suited], scaled.right[suited]
    matrices = np.swapaxes(left, -1, -2) @ (found[..., None] * right)
    norm = np.sqrt(inner_products(matrices, matrices))[:, None]
    W[suited] = matrices
    x[suited] = found / np.where(norm > 0, norm, 1.0)
    return W, x


def _with_empty_slot(array: Shaped[np.ndarray, "k m *n"]) -> Shaped[np.ndarray, "k m+1 *n"]:
    """One slot more, for the block solves to fill up with."""
    result = np.zeros((len(array), array.shape[1] + 1, *array.shape[2:]), dtype=array.dtype)
    result[:, :-1] = array
    return result


def pivot(
    gram: Float[np.ndarray, "instances m m"],
    bounds: Float[np.ndarray, "instances m"],
    present: Bool[np.ndarray, "instances m"],
    inequality: Bool[np.ndarray, "instances m"],
) -> tuple[Float[np.ndarray, "instances m"], Bool[np.ndarray, "instances"]]:
    """Multipliers x, and whether pivoting came to an end.

    Args:
        gram: Gram matrices, with a diagonal of about one; the last slot is empty, all zero.
        bounds: The c of each constraint, at most one.
        present: Constraints to use.
        inequality: Of those present, the ones whose multiplier must not be negative.
    """
    count, m = bounds.shape
    result, ended = np.zeros((count, m)), np.zeros(count, dtype=bool)
    free = present.copy()
    fewest = np.full(count, m + 1)
    patience = np.full(count, _PATIENCE)
    active = np.arange(count)
    for _ in range(_MOST_PIVOTS):
        x = _solve_free(gram, bounds, free)
        y = (gram @ x[..., None])[..., 0] - bounds
        wrong = (free & inequality & (x < 0)) | (present & ~free & (y < -_SLACK))
        number = wrong.sum(-1)
        done = number == 0
        ended[active[done]] = True
        result[active[done]] = x[done]
        keep = np.flatnonzero(~done)
        if not keep.size:
            break
        if keep.size < _CROWDED * len(active):
            gram, bounds, present = gram[keep], bounds[keep], present[keep]
            inequality, free, wrong = inequality[keep], free[keep], wrong[keep]
            number, fewest, patience = number[keep], fewest[keep], patience[keep]
            active = active[keep]
        better = number < fewest
        fewest = np.where(better, number, fewest)
        patience = np.where(better, _PATIENCE, patience - 1)
        # Where exchanging all has stopped helping, the last one alone (Murty's rule).
        last = np.arange(m) == (m - 1 - np.argmax(wrong[:, ::-1], axis=-1))[:, None]
        free = free ^ (wrong & (last | (patience >= 0)[:, None]))
    return result, ended


def _solve_free(
    gram: Float[np.ndarray, "instances m m"],
    bounds: Float[np.ndarray, "instances m"],
    free: Bool[np.ndarray, "instances m"],
) -> Float[np.ndarray, "instances m"]:
    """The x with ``(G x)_free = c_free``, zero elsewhere.

    The free rows of every instance are gathered into a block of its own size, rounded up: how it is
    eliminated then does not depend on the others. What is left over in a block points at the empty
    slot, and becomes a row of the identity.
    """
    m = bounds.shape[-1]
    x = np.zeros_like(bounds)
    sizes = np.minimum(-(-free.sum(-1) // _STEP) * _STEP, m)
    for size in set(sizes.tolist()):
        which = np.flatnonzero(sizes == size)
        order = np.argsort(~free[which], axis=-1, kind="stable")[:, :size]
        taken = np.take_along_axis(free[which], order, axis=-1)
        order = np.where(taken, order, m - 1)
        row = which[:, None] * m + order
        block = gram.ravel().take((row * m)[:, :, None] + order[:, None, :])
        diagonal = np.arange(size)
        block[:, diagonal, diagonal] += np.where(taken, _RIDGE, 1.0)
        right = bounds.ravel().take(row)
        x.ravel()[row] = np.linalg.solve(block, right[..., None])[..., 0]
    return x


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
