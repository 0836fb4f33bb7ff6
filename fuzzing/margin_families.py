"""Families of margin problems, from what the theory draws to what breaks solvers.

A problem is named by its family and a seed, and can be made again alone. Seeds that agree but for
their last digit base `ALIKE` have one shape, so that they fit one batch. Where a family knows a
matrix that meets the constraints, or integers that combine them into a contradiction, it says so;
that either does is checked exactly.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from attractor.datasets import unit_tokens

ALIKE = 8
"""How many seeds in a row give problems of one shape."""

GENERATOR_SIZES = (
    (6, 8, 10), (5, 5, 5), (15, 5, 5), (10, 10, 6), (5, 5, 2), (5, 5, 3), (5, 5, 4), (10, 5, 3),
    (15, 5, 4),
)  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A problem, and what is known of it."""

    left: np.ndarray
    right: np.ndarray
    bounds: np.ndarray
    equality: np.ndarray
    feasible: np.ndarray | None = None
    contradiction: np.ndarray | None = None
    optimum: dict[tuple[str, float], float] = field(default_factory=dict)


Family: TypeAlias = Callable[[np.random.Generator, int], Made]
"""From random numbers, and a number that chooses the size, to a problem."""

FAMILIES: dict[str, Family] = {}


def make(family: str, seed: int) -> Made:
    """The problem of that name."""
    rng = np.random.default_rng([zlib.crc32(family.encode()), seed])
    return FAMILIES[family](rng, seed // ALIKE)


def _family(function: Family) -> Family:
    FAMILIES[function.__name__] = function
    return function


def _made(left: np.ndarray, right: np.ndarray, bounds: object = 1.0, **known: object) -> Made:
    equality = np.broadcast_to(known.pop("equality", False), len(left)).copy()
    bounds = np.broadcast_to(np.asarray(bounds, dtype=float), len(left)).copy()
    return Made(
        np.asarray(left, dtype=float), np.asarray(right, dtype=float), bounds, equality, **known
    )


def _margins(left: np.ndarray, right: np.ndarray, W: np.ndarray) -> np.ndarray:
    return np.einsum("md,de,me->m", left, W, right)


def _shape(size: int, choices: tuple = ((3, 3), (4, 2), (5, 5), (2, 6), (8, 8), (3, 1))) -> tuple:
    return choices[size % len(choices)]


def _rows(rng: np.random.Generator, m: int, d: int, e: int) -> tuple[np.ndarray, ...]:
    return rng.normal(size=(m, d)), rng.normal(size=(m, e))


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def _kept(left: np.ndarray, right: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Left rows turned so that W has positive margins."""
    return left * np.where(_margins(left, right, W) < 0, -1.0, 1.0)[:, None]


def _scaled_up(left: np.ndarray, right: np.ndarray, W: np.ndarray, bounds: object) -> np.ndarray:
    """A multiple of W whose margins are at least twice their bounds, where they can be."""
    margins = _margins(left, right, W)
    asked = np.broadcast_to(bounds, margins.shape) > 0
    with np.errstate(all="ignore"):
        needed = np.max(np.where(asked, bounds / margins, 0.0), initial=0.0)
    return W * 2.0 ** np.ceil(np.log2(2 * needed)) if 0 < needed < 1e300 else W


def _planted(left: np.ndarray, right: np.ndarray, W: np.ndarray, bounds: object = 1.0) -> Made:
    left = _kept(left, right, W)
    return _made(left, right, bounds, feasible=_scaled_up(left, right, W, bounds))


def _dyadic(array: np.ndarray, bits: int = 5) -> np.ndarray:
    """Rounded so that products of three are exact."""
    return np.round(array * 2.0**bits) / 2.0**bits


def _from_tokens(keys: np.ndarray, queries: np.ndarray, chosen: np.ndarray) -> tuple:
    """``(x_chosen - x_t) z^T`` for every other token of every sequence."""
    n, T, _ = keys.shape
    others = np.arange(T) != chosen[:, None]
    left = (keys[np.arange(n), chosen][:, None] - keys)[others]
    return left, np.repeat(queries, T - 1, axis=0)


@_family
def random_tokens(rng: np.random.Generator, size: int) -> Made:
    """Generator "G": random unit tokens, cross attention, optimal tokens."""
    n, T, d = _shape(size, GENERATOR_SIZES)
    tokens, head = unit_tokens(n, T, d, seeds=[int(rng.integers(2**31))])
    keys, queries = tokens.keys[0], tokens.queries[0].reshape(n, -1)
    labels = np.asarray(tokens.labels)[0].reshape(n)
    chosen = (labels[:, None] * (keys.reshape(n, T, d) @ np.ravel(head.weight))).argmax(-1)
    return _made(*_from_tokens(keys.reshape(n, T, d), queries, chosen))


@_family
def random_selection(rng: np.random.Generator, size: int) -> Made:
    """Random unit tokens and a random selection: often infeasible."""
    n, T, d = _shape(size, GENERATOR_SIZES)
    keys, queries = _unit(rng.normal(size=(n, T, d))), _unit(rng.normal(size=(n, d)))
    return _made(*_from_tokens(keys, queries, rng.integers(0, T, size=n)))


@_family
def more_rows_than_entries(rng: np.random.Generator, size: int) -> Made:
    """More constraints than the rank of their matrix."""
    d, e = _shape(size, ((3, 3), (4, 3), (6, 2), (5, 5), (6, 6), (2, 2)))
    left, right = _rows(rng, int(d * e * 2.4), d, e)
    return _planted(left, right, rng.normal(size=(d, e)))


@_family
def near_infeasible(rng: np.random.Generator, size: int) -> Made:
    """Margins of 1e-2 to 1e-12 of the sizes of the rows."""
    d, e, m = _shape(size, ((20, 1, 60), (6, 3, 40), (4, 4, 30), (3, 3, 12), (2, 5, 15)))
    u, v = _unit(rng.normal(size=d)), _unit(rng.normal(size=e))
    left, right = _rows(rng, m, d, e)
    left = _unit(left - np.outer(left @ u, u))
    right += (1 + np.abs(right @ v) - right @ v)[:, None] * v
    margin = 10.0 ** -rng.integers(2, 13)
    left = left + margin * rng.uniform(1, 2, size=m)[:, None] * u
    return _planted(left, right, np.outer(u, v))


@_family
def near_opposite(rng: np.random.Generator, size: int) -> Made:
    """One row is the opposite of another, but for a part in 1e3 to 1e12."""
    d, e = _shape(size, ((3, 3), (3, 3), (4, 4), (2, 5), (6, 2), (1, 3)))
    left, right = _rows(rng, (2, 3, 6, 9, 4, 2)[size % 6], d, e)
    W = rng.normal(size=(d, e))
    left = _kept(left, right, W)
    noise = rng.normal(size=d) if d > 1 else rng.normal(size=e)
    apart = 10.0 ** -float(rng.integers(3, 13))
    if d > 1:
        right[1] = right[0]
        left[1] = -left[0] + apart * noise * np.sign(noise @ W @ right[0])
    else:
        left[1] = -left[0]
        right[1] = right[0] - apart * noise * np.sign(left[0] @ W @ noise)
    # The two hold W close to a plane: move it there before it is scaled up.
    row = np.outer(left[0], right[0])
    W = W - (1 - apart / 4) * (W * row).sum() / (row * row).sum() * row
    keep = _margins(left, right, W) > 0
    left[2:] = _kept(left[2:], right[2:], W)
    feasible = _scaled_up(left, right, W, 1.0) if keep[:2].all() else None
    return _made(left, right, feasible=feasible)


@_family
def line_six(rng: np.random.Generator, size: int) -> Made:
    """Two near-opposite rows of very different lengths, exactly as once found, and around there."""
    left, right = np.array([[0.01], [-0.0001]]), np.array([[-1, 0, 0], [-2e5, 0, 1e-4]])
    if rng.random() < 0.9:
        left = left * 10.0 ** rng.uniform(-2, 2, size=(2, 1))
        right = right * 10.0 ** rng.uniform(-1, 1, size=(2, 1))
        right[1, 2] *= 10.0 ** rng.uniform(-4, 4)
    if size % 2:
        left, right = right, left
    made = _made(left, right)
    W = np.zeros((left.shape[1], right.shape[1]))
    first = -2.0 / np.abs(np.outer(left[0], right[0])).max()
    second = 2 * (1 + abs(first) * np.abs(np.outer(left[1], right[1])).max())
    other = np.outer(left[1], right[1])
    place = np.unravel_index(2, W.shape)
    W.flat[0], W[place] = first, second / other[place]
    return Made(made.left, made.right, made.bounds, made.equality, feasible=W)


@_family
def contradictory(rng: np.random.Generator, size: int) -> Made:
    """Rows that cancel exactly: one is the opposite of another, or of a sum of two."""
    d, e = _shape(size)
    m = 3 + size % 6
    left, right = (_dyadic(x) for x in _rows(rng, m, d, e))
    x = np.zeros(m)
    right[1] = right[0]
    if rng.random() < 0.5:
        factor = 2.0 ** rng.integers(-3, 4)
        left[1], x[:2] = -left[0] * factor, (factor, 1)
    else:
        right[2] = right[0]
        left[2], x[:3] = -(left[0] + left[1]), 1
    order = rng.permutation(m)
    return _made(left[order], right[order], contradiction=x[order])


@_family
def token_cycles(rng: np.random.Generator, size: int) -> Made:
    """Selections of a vocabulary that prefer tokens in a circle, under one query."""
    vocabulary = 3 + size % 5
    length = int(rng.integers(2, vocabulary + 1))
    tokens = np.eye(vocabulary) if size % 2 else _dyadic(rng.normal(size=(vocabulary, 4)))
    query = tokens[0] if tokens[0].any() else tokens[0] + 1
    left = np.array([tokens[i] - tokens[(i + 1) % length] for i in range(length)])
    extra = int(vocabulary) + 1 - length
    more = rng.integers(0, vocabulary, size=(extra, 2))
    left = np.concatenate([left, tokens[more[:, 0]] - tokens[more[:, 1]]])
    x = np.append(np.ones(length), np.zeros(extra))
    return _made(left, np.repeat(query[None], len(left), axis=0), contradiction=x)


@_family
def generic_infeasible(rng: np.random.Generator, size: int) -> Made:
    """Far more random rows than entries, of random sides."""
    d, e = _shape(size, ((2, 2), (3, 2), (3, 3), (4, 1), (1, 3)))
    return _made(*_rows(rng, 6 * d * e + 4, d, e))


@_family
def with_equalities(rng: np.random.Generator, size: int) -> Made:
    """Equalities, some of them twice, and bounds of zero and either sign; all exactly met."""
    d, e = _shape(size)
    m = 5 + 2 * (size % 5)
    left, right = (_dyadic(x) for x in _rows(rng, m, d, e))
    left[1], right[1] = left[0], right[0]
    W = _dyadic(rng.normal(size=(d, e)))
    margins = _margins(left, right, W)
    equality = np.arange(m) < int(rng.integers(1, 5))
    room = _dyadic(rng.uniform(0, 1, size=m)) * (rng.random(m) < 0.8)
    return _made(
        left, right, np.where(equality, margins, margins - room), equality=equality, feasible=W
    )


@_family
def tied_tokens(rng: np.random.Generator, size: int) -> Made:
    """Equalities with bound zero beside inequalities with bound one, as ties ask for."""
    d, e = _shape(size)
    m = 6 + size % 7
    left, right = (_dyadic(x) for x in _rows(rng, m, d, e))
    W = _dyadic(rng.normal(size=(d, e)))
    left = _kept(left, right, W)
    ties = int(rng.integers(1, 4))
    margins = np.abs(_margins(left, right, W))
    for i in range(ties):  # a combination of two rows, under one query, with margin zero
        j = ties + 2 * i if ties + 2 * i + 1 < m else ties
        right[j + 1 if j + 1 < m else j] = right[j]
        left = _kept(left, right, W)
        margins = np.abs(_margins(left, right, W))
        k = min(j + 1, m - 1)
        left[i], right[i] = left[j] * margins[k] - left[k] * margins[j], right[j]
    equality = np.arange(m) < ties
    inequality_margins = _margins(left, right, W)[~equality]
    feasible = W * 2.0**12 if inequality_margins.min(initial=1.0) * 2**12 >= 1 else None
    return _made(left, right, np.where(equality, 0.0, 1.0), equality=equality, feasible=feasible)


@_family
def contradictory_equalities(rng: np.random.Generator, size: int) -> Made:
    """Two equalities, or an equality and an inequality, that ask for different margins."""
    d, e = _shape(size)
    m = 4 + size % 4
    left, right = (_dyadic(x) for x in _rows(rng, m, d, e))
    factor = 2.0 ** rng.integers(-2, 3) * (1 if rng.random() < 0.5 else -1)
    left[1], right[1] = left[0] * factor, right[0]
    apart = 2.0 ** -rng.integers(0, 30)
    bounds = np.ones(m)
    bounds[1] = factor + apart
    second = rng.random() < 0.5
    x = np.zeros(m)
    x[:2] = -factor, 1.0  # -factor c_0 + c_1 = apart
    return _made(
        left, right, bounds, equality=np.isin(np.arange(m), (0, 1) if second else (0,)),
        contradiction=x,
    )  # fmt: skip


@_family
def bounds_of_all_sizes(rng: np.random.Generator, size: int) -> Made:
    """Bounds from 1e-150 to 1e150, of either sign, zeros among them."""
    d, e = _shape(size)
    left, right = _rows(rng, 5 + size % 9, d, e)
    m = len(left)
    W = rng.normal(size=(d, e))
    left = _kept(left, right, W)
    spread = float(rng.choice([1, 6, 15, 40, 150]))
    bounds = 10.0 ** rng.uniform(-spread, spread, size=m)
    bounds *= rng.choice([1.0, 1.0, 1.0, 0.0, -1.0], size=m)
    return _made(left, right, bounds, feasible=_scaled_up(left, right, W, bounds))


@_family
def affine_bounds(rng: np.random.Generator, size: int) -> Made:
    """Bounds of mixed sign around the margins of a matrix, none of whose multiples will do."""
    d, e = _shape(size)
    left, right = (_dyadic(x) for x in _rows(rng, 5 + size % 11, d, e))
    W = _dyadic(rng.normal(size=(d, e)))
    room = 2.0 ** -rng.integers(0, 40, size=len(left))
    return _made(left, right, _margins(left, right, W) - room, feasible=W)


@_family
def bands(rng: np.random.Generator, size: int) -> Made:
    """Inequalities both ways, that leave a band of margins, or exactly one margin."""
    d, e = _shape(size)
    m = 2 + size % 4
    left, right = (_dyadic(x) for x in _rows(rng, m, d, e))
    W = _dyadic(rng.normal(size=(d, e)))
    margins = _margins(left, right, W)
    width = 0.0 if rng.random() < 0.3 else 2.0 ** -rng.integers(0, 36)
    bounds = np.concatenate([margins, -margins - width])
    return _made(np.concatenate([left, -left]), np.tile(right, (2, 1)), bounds, feasible=W)


@_family
def duplicated_rows(rng: np.random.Generator, size: int) -> Made:
    """Rows several times, and multiples of rows."""
    d, e = _shape(size)
    left, right = _rows(rng, 4, d, e)
    chosen = rng.integers(0, 4, size=12)
    scale = rng.choice([1.0, 1.0, 2.0, 3.0, 1 / 3], size=(12, 1))
    return _planted(left[chosen] * scale, right[chosen], rng.normal(size=(d, e)))


@_family
def zero_rows(rng: np.random.Generator, size: int) -> Made:
    """Rows of zeros: nothing to ask for, or what nobody can do."""
    d, e = _shape(size)
    left, right = _rows(rng, 6, d, e)
    W = rng.normal(size=(d, e))
    left = _kept(left, right, W)
    bounds = np.ones(6)
    side = left if rng.random() < 0.5 else right
    side[:2] = 0.0
    bounds[:2] = rng.choice([0.0, -1.0, -1e-30, 1.0, 1e-200], size=2)
    equality = np.arange(6) == 1
    bad = np.flatnonzero((bounds[:2] > 0) | (equality[:2] & (bounds[:2] != 0)))
    if bad.size:
        x = np.zeros(6)
        x[bad[0]] = np.sign(bounds[bad[0]])
        return _made(left, right, bounds, equality=equality, contradiction=x)
    feasible = _scaled_up(left, right, W, bounds)
    return _made(left, right, bounds, equality=equality, feasible=feasible)


@_family
def zero_tokens(rng: np.random.Generator, size: int) -> Made:
    """Tokens that are zero, at times the selected one."""
    d = 2 + size % 4
    keys, queries = rng.normal(size=(3, 4, d)), rng.normal(size=(3, d))
    keys[:, 1] = 0.0
    chosen = rng.choice([0, 1, 2], size=3)
    if rng.random() < 0.3:
        queries[0] = 0.0
    left, right = _from_tokens(keys, queries, chosen)
    x = np.zeros(9)
    x[0] = 1.0
    return _made(left, right, contradiction=None if queries[0].any() else x)


@_family
def no_constraints(rng: np.random.Generator, size: int) -> Made:
    """One token in every sequence."""
    d, e = _shape(size)
    return _made(np.zeros((0, d)), np.zeros((0, e)), feasible=np.zeros((d, e)))


@_family
def one_row(rng: np.random.Generator, size: int) -> Made:
    """A single constraint, of any size, or an equality."""
    d, e = _shape(size)
    left, right = _rows(rng, 1, d, e)
    left *= 10.0 ** rng.uniform(-100, 100)
    if rng.random() < 0.3:
        left, right = np.round(left / np.abs(left).max() * 2), np.round(right)
        left[0, 0], right[0, 0] = 1.0, 1.0
    bound = float(rng.choice([1.0, 1e-3, 1e30, 0.0, -1.0]))
    return _made(left, right, bound, equality=bool(rng.random() < 0.3))


@_family
def vectors(rng: np.random.Generator, size: int) -> Made:
    """Matrices of one row, of one column, or of one entry."""
    d, e = _shape(size, ((1, 3), (3, 1), (1, 1), (1, 8), (6, 1)))
    left, right = _rows(rng, 2 + 3 * (size % 3), d, e)
    if rng.random() < 0.4:
        left, right = np.round(left), np.round(right)
    return _planted(left, right, rng.normal(size=(d, e)))


@_family
def integer_grids(rng: np.random.Generator, size: int) -> Made:
    """Few small integers: degenerate linear programs, ties, rows and columns not asked for."""
    d, e = _shape(size, ((3, 3), (2, 3), (4, 4), (1, 4), (3, 2), (5, 3)))
    m = 1 + size % 7
    left, right = rng.integers(-2, 3, size=(m, d)), rng.integers(-2, 3, size=(m, e))
    W = rng.integers(-2, 3, size=(d, e)).astype(float)
    left = _kept(left.astype(float), right, W)
    margins = _margins(left, right, W)
    equality = rng.random(m) < 0.2
    bounds = np.where(equality, margins, np.minimum(margins, rng.integers(0, 3, size=m)))
    return _made(left, right, bounds, equality=equality, feasible=W)


@_family
def one_hot_tokens(rng: np.random.Generator, size: int) -> Made:
    """Tokens and queries of a vocabulary."""
    vocabulary, n, T = _shape(size, ((4, 3, 3), (6, 4, 3), (5, 6, 4), (8, 8, 3)))
    tokens = np.eye(vocabulary)
    keys = np.array([rng.permutation(vocabulary)[:T] for _ in range(n)])
    queries = tokens[rng.integers(0, vocabulary, size=n)]
    favorite = rng.permutation(vocabulary)
    chosen = favorite[keys].argmax(-1)
    left, right = _from_tokens(tokens[keys], queries, chosen)
    W = np.outer(favorite, np.ones(vocabulary)).astype(float)
    return _made(left, right, feasible=W)


@_family
def rank_deficient(rng: np.random.Generator, size: int) -> Made:
    """Rows in a line, a plane, or a space of three dimensions."""
    d, e = _shape(size, ((5, 5), (4, 6), (8, 8), (6, 3)))
    p, q = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    left, right = _rows(rng, 6 + size % 8, p, q)
    left, right = left @ rng.normal(size=(p, d)), right @ rng.normal(size=(q, e))
    return _planted(left, right, rng.normal(size=(d, e)))


@_family
def rows_of_all_sizes(rng: np.random.Generator, size: int) -> Made:
    """Rows from 1e-8 to 1e8 long, or from 1e-150 to 1e150."""
    d, e = _shape(size)
    left, right = _rows(rng, 4 + size % 7, d, e)
    spread = float(rng.choice([2, 8, 30, 70]))
    left *= 10.0 ** rng.uniform(-spread, spread, size=(len(left), 1))
    right *= 10.0 ** rng.uniform(-spread, spread, size=(len(left), 1))
    return _planted(left, right, rng.normal(size=(d, e)))


@_family
def columns_of_all_sizes(rng: np.random.Generator, size: int) -> Made:
    """Columns from 1e-8 to 1e8, that no scaling of rows cures."""
    d, e = _shape(size, ((3, 3), (4, 2), (5, 4)))
    left, right = _rows(rng, 5, d, e)
    W = rng.normal(size=(d, e))
    left = _kept(left, right, W)
    column = 10.0 ** rng.uniform(-8, 8, size=d)
    return _planted(left * column, right, W / column[:, None])


@_family
def scaled_whole(rng: np.random.Generator, size: int) -> Made:
    """All rows and bounds of one size, up to 1e150."""
    d, e = _shape(size)
    left, right = _rows(rng, 4 + size % 9, d, e)
    W = rng.normal(size=(d, e))
    scale = 10.0 ** rng.uniform(-150, 150, size=3)
    return _planted(left * scale[0], right * min(scale[1], 1e120), W, scale[2])


@_family
def low_rank(rng: np.random.Generator, size: int) -> Made:
    """Margins of a matrix of rank one or two."""
    d, e = _shape(size, ((6, 6), (8, 5), (10, 10), (4, 7)))
    left, right = _rows(rng, 3 * d, d, e)
    r = int(rng.integers(1, 3))
    return _planted(left, right, rng.normal(size=(d, r)) @ rng.normal(size=(r, e)))


@_family
def known_optimum(rng: np.random.Generator, size: int) -> Made:
    """Bounds such that a chosen matrix is a solution in one norm, and its norm the smallest."""
    d, e = _shape(size, ((3, 3), (4, 3), (5, 5), (2, 6)))
    family, p = (
        ("schatten", 1.0), ("schatten", math.inf), ("entrywise", 1.0), ("entrywise", math.inf),
        ("entrywise", 3.0), ("schatten", 4.0), ("entrywise", 1.5), ("entrywise", 2.0),
    )[int(rng.integers(8))]  # fmt: skip
    W, M = _dual_pair(rng, d, e, family, p)
    # Random factors of M: multipliers one on as many constraints as it has rows.
    mix = rng.normal(size=(min(d, e) + 2, min(d, e)))
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    left = mix @ (U * s).T
    right = np.linalg.pinv(mix).T @ Vt
    bounds = _margins(left, right, W)
    extra_left, extra_right = _rows(rng, 4, d, e)
    room = _margins(extra_left, extra_right, W) - rng.uniform(0.1, 1, size=4)
    value = float((W * M).sum())
    return _made(
        np.concatenate([left, extra_left]), np.concatenate([right, extra_right]),
        np.concatenate([bounds, room]), optimum={(family, p): value},
    )  # fmt: skip


def _dual_pair(rng: np.random.Generator, d: int, e: int, family: str, p: float) -> tuple:
    """W, and M of dual norm one with ``<M, W> = ||W||``; both with ties."""
    if family == "schatten":
        k = min(d, e)
        U, V = (np.linalg.qr(rng.normal(size=(n, k)))[0] for n in (d, e))
        w, m = _dual_pair(rng, 1, k, "entrywise", p)
        signs = np.where(w[0] != 0, np.sign(w[0]), 1.0)
        return (U * (w[0] * signs)) @ V.T, (U * (m[0] * signs)) @ V.T
    W = rng.normal(size=(d, e))
    free = rng.random((d, e)) < 0.4
    free.flat[0] = False
    if p == 1:
        W[free] = 0.0
        return W, np.where(free, rng.uniform(-0.9, 0.9, size=(d, e)), np.sign(W))
    if p == math.inf:
        largest = np.where(free, W / (1.1 * np.abs(W).max()), np.sign(W))
        M = np.where(free, 0.0, np.sign(W) * rng.uniform(0.5, 1, size=(d, e)))
        return 2.0 * largest, M / np.abs(M).sum()
    norm = (np.abs(W) ** p).sum() ** (1 / p)
    return W, np.sign(W) * (np.abs(W) / norm) ** (p - 1)


@_family
def orthogonal_designs(rng: np.random.Generator, size: int) -> Made:
    """Orthogonal rows with equal bounds: repeated singular values, faces of the balls."""
    d, e = _shape(size, ((3, 3), (4, 4), (5, 3), (2, 4)))
    k = int(rng.integers(1, min(d, e) + 1))
    plain = rng.random() < 0.5
    U, V = (np.eye(n) if plain else np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (d, e))
    left, right = U[:, np.arange(4) % k].T, V[:, np.arange(4) % k].T
    bounds = np.where(rng.random() < 0.7, 1.0, rng.integers(1, 3, size=4))
    W = 4.0 * U[:, :k] @ V[:, :k].T
    return _made(left, right, bounds, feasible=W)


@_family
def rotations(rng: np.random.Generator, size: int) -> Made:
    """Constraints ``u_i v_j^T`` with all pairs of few vectors: many equal singular values."""
    d, e = _shape(size, ((3, 3), (4, 4), (3, 5)))
    left, right = np.eye(d), np.eye(e)
    i, j = np.divmod(np.arange(d * e), e)
    W = rng.choice([-1.0, 1.0], size=(d, e)) * rng.integers(1, 3, size=(d, e))
    kept = rng.permutation(d * e)[: 2 + (size * 3) % (d * e - 2)]
    signs = np.sign(W[i, j])[kept, None]
    bounds = np.abs(W[i, j])[kept] if rng.random() < 0.5 else 1.0
    return _made(left[i][kept] * signs, right[j][kept], bounds, feasible=W)


@_family
def near_parallel(rng: np.random.Generator, size: int) -> Made:
    """Two opposite rows but for a part in 2^10 to 2^43, equalities and bounds of either sign."""
    d, e = _shape(size)
    m = 2 + size % 5
    left, right = (_dyadic(x) for x in _rows(rng, m, d, e))
    apart = 2.0 ** -rng.integers(10, 44) if rng.random() < 0.7 else 10.0 ** -rng.integers(4, 15)
    left[1] = -left[0] + apart * left[1]
    right[1] = right[0]
    W = _dyadic(rng.normal(size=(d, e)), 3)
    margins = _margins(left, right, W)
    equality = rng.random(m) < np.where(np.arange(m) < 2, 0.4, 0.2)
    room = rng.choice([0.0, 2.0**-40, 0.25], size=m)
    bounds = np.where(equality, margins, margins - room)
    return _made(left, right, bounds, equality=equality, feasible=W)


@_family
def many_harmless_rows(rng: np.random.Generator, size: int) -> Made:
    """Two rows that ask for a large matrix, among many that ask for next to nothing."""
    d = 2 + size % 3
    many = (30, 100, 200)[size % 3]
    apart = 2.0 ** -rng.integers(20, 49) if rng.random() < 0.5 else 10.0 ** -rng.integers(6, 15)
    left = np.zeros((2 + many, d))
    left[0, 0], left[1, :2] = 1.0, (-1.0, apart)
    left[2:, 1:] = np.round(rng.uniform(0, 4, size=(many, d - 1)))
    right = np.ones((2 + many, 1))
    bounds = np.zeros(2 + many)
    if rng.random() < 0.5:
        bounds[:2], second = (1.0, apart - 1.0), 2.0
    else:
        bounds[:2], second = 1.0, 4.0 / apart
    bounds[2:] = -rng.choice([0.0, 1.0], size=many)
    W = np.zeros((d, 1))
    W[:2, 0] = 1.0, second
    if second < 1e300 and apart * second == 4.0:
        W[0, 0] = 2.0
    order = rng.permutation(2 + many)
    return _made(left[order], right[order], bounds[order], feasible=W)


@_family
def columns_apart(rng: np.random.Generator, size: int) -> Made:
    """Small integers whose columns are scaled by up to 1e-12."""
    d, e = _shape(size, ((3, 1), (2, 2), (4, 1), (3, 2)))
    m = 2 + size % 4
    left = rng.integers(-7, 8, size=(m, d)).astype(float)
    right = rng.integers(-3, 4, size=(m, e)).astype(float)
    right[:, 0] = np.where(right.any(1), right[:, 0], 1.0)
    W = rng.integers(-4, 5, size=(d, e)).astype(float)
    left = _kept(left, right, W)
    powers = np.sort(rng.integers(0, 13, size=d)) * (np.arange(d) > 0)
    scale = 10.0**-powers if rng.random() < 0.5 else 2.0 ** -(3 * powers)
    W = W / scale[:, None]
    return _made(left * scale, right, feasible=_scaled_up(left * scale, right, W, 1.0))


@_family
def subnormal_bounds(rng: np.random.Generator, size: int) -> Made:
    """Bounds below the normal numbers, alone or beside ordinary ones, of either sign."""
    d, e = _shape(size)
    m = 4 + size % 6
    left, right = (_dyadic(x) for x in _rows(rng, m, d, e))
    W = _dyadic(rng.normal(size=(d, e)))
    left = _kept(left, right, W)
    tiny = 10.0 ** rng.uniform(-323, -306, size=m) * rng.choice([1.0, 1.0, -1.0], size=m)
    every = rng.random() < 0.5
    bounds = np.where((rng.random(m) < 0.5) | every, tiny, 1.0)
    equality = np.zeros(m, dtype=bool)
    equality[0] = rng.random() < 0.2
    if rng.random() < 0.5:
        left = left * 2.0 ** -float(rng.integers(400, 500))
    return _made(
        left, right, bounds, equality=equality, feasible=_scaled_up(left, right, W, 1e-300)
    )
