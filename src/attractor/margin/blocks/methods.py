"""Margin problems in the maximum, or the sum, of the norms of blocks.

Blocks that no constraint joins are problems of their own. Each is solved in its own norm by the
methods of that norm, so that it is solved as well as if it stood alone; the smallest maximum is
the largest of their values, and multipliers of that one prove it; the smallest sum is their sum.
What constraints do join is solved together, by Newton steps on proximal points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.geometry import BlockMaximum, BlockSum, Geometry
from attractor.geometry.blocks import Block, Piece
from attractor.margin.batching.empty_slots import alike, as_places, without_empty_slots
from attractor.margin.batching.iterates import BestIterates
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import Certificate
from attractor.margin.certificates.correction import meet_constraints
from attractor.margin.large.constraint_generation import is_overdetermined
from attractor.margin.large.driver import is_large, large_methods_of
from attractor.margin.large.proximal_newton import solve_by_proximal_newton
from attractor.margin.methods import Candidates, Method, Task, attempt, is_open
from attractor.margin.problem import MarginProblem, derived
from attractor.support.errors import Status

_LEAST_GAIN = 1e-20
"""Least gain of a block, in units of the largest, that its units are chosen by."""

MethodsOf: TypeAlias = Callable[[Geometry, tuple[Method, ...] | None], tuple[Method, ...]]
"""From a geometry, and methods of one's own if there are any, to the methods to try."""


def solve_by_blocks(task: Task, methods_of: MethodsOf) -> Candidates:
    """Candidates for a ``BlockMaximum`` or a ``BlockSum``.

    Args:
        task: The instances.
        methods_of: Gives the methods of the norms of blocks.
    """
    geometry = task.geometry
    assert isinstance(geometry, (BlockMaximum, BlockSum))
    pieces = geometry.pieces(task.W.shape[1:])
    touched = _touched(task.scaled, pieces)
    groups = [_groups(touched[i]) for i in range(len(task.W))]
    W, x = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
    for same in sorted(set(groups)):
        places = np.array([i for i, group in enumerate(groups) if group == same])
        part = task.choose(places)
        found = []
        for numbers in same:
            held = np.asarray(touched[places][..., list(numbers)].any(-1))
            blocks = tuple(pieces[b] for b in numbers)
            found.append(_solve_part(part, blocks, held, methods_of))
        W[places], x[places] = _together(part, found)
    return W, x


def _touched(
    scaled: ScaledConstraints, pieces: tuple[Piece, ...]
) -> Bool[np.ndarray, "instances m blocks"]:
    """Which blocks a constraint has entries in."""
    left = np.stack([scaled.left[..., piece.rows].any(-1) for piece in pieces], -1)
    right = np.stack([scaled.right[..., piece.columns].any(-1) for piece in pieces], -1)
    present: Any = scaled.present
    return left & right & present[..., None]


def _groups(touched: Bool[np.ndarray, "m blocks"]) -> tuple[tuple[int, ...], ...]:
    """The blocks that constraints join, directly or by others; blocks without any are left out."""
    label = np.arange(touched.shape[-1])
    for joined in np.unique(touched[touched.sum(-1) > 1], axis=0):
        members = np.isin(label, label[joined])
        label[members] = label[members].min()
    used: Any = touched.any(0)
    return tuple(
        tuple(np.flatnonzero(label == one).tolist()) for one in np.unique(label) if used[one]
    )


@dataclass(frozen=True)
class _Part:
    """The solutions of the constraints on some blocks, in the units of the task.

    Attributes:
        W: Matrices, zero in all other blocks; NaN where there is none.
        multipliers: Of dual norm one in the geometry; Farkas multipliers where there is no matrix.
        lower: Lower bounds on the norm.
        infeasible: Where the constraints contradict each other.
    """

    W: Float[np.ndarray, "k d e"]
    multipliers: Float[np.ndarray, "k m"]
    lower: Float[np.ndarray, "k"]
    infeasible: Bool[np.ndarray, "k"]


def _solve_part(
    task: Task,
    blocks: tuple[Piece, ...],
    held: Bool[np.ndarray, "k m"],
    methods_of: MethodsOf,
) -> _Part:
    """Solves the constraints on some blocks by themselves: one in its own norm.

    Args:
        task: The instances.
        blocks: The blocks, which no other constraint has entries in.
        held: The constraints.
        methods_of: Gives the methods of the norm.
    """
    scaled, count = task.scaled, len(task.W)
    joint = len(blocks) > 1
    rows, columns, weight, norm = slice(None), slice(None), 1.0, task.geometry
    if not joint:
        rows, columns, weight, norm = next(iter(blocks))
    problem = MarginProblem(
        scaled.left[..., rows], scaled.right[..., columns], scaled.bounds, scaled.equality, held
    )
    part = _Part(
        np.zeros_like(task.W), np.zeros_like(task.multipliers), np.zeros(count), np.zeros(count) > 0
    )
    gains = scaled.combine(task.multipliers)
    for m, instances in alike(problem):
        singly = joint or is_large(m)
        for chosen in np.split(instances, len(instances)) if singly else [instances]:
            few, place = without_empty_slots(problem, as_places(chosen))
            if joint:
                found = _solve_joint(few, task, gains[chosen[0]], methods_of)
            else:
                found = _solve_in(few, norm, None, task.tolerance, methods_of)
            W, x, certificate, status = found
            part.W[chosen, rows, columns] = W
            part.multipliers[place] = weight * x
            part.lower[chosen] = weight * certificate.dual_value
            part.infeasible[chosen] = status == Status.INFEASIBLE
    # Multipliers of a bound alone may be of any scale.
    alone = np.flatnonzero(np.isnan(part.W).any((-1, -2)) & ~part.infeasible)
    size = task.geometry.dual_norm(scaled.choose(alone).combine(part.multipliers[alone]))
    part.multipliers[alone] /= np.where(size > 0, size, 1.0)[:, None]
    return part


def _solve_in(
    problem: MarginProblem,
    norm: Geometry,
    own: tuple[Method, ...] | None,
    tolerance: float,
    methods_of: MethodsOf,
) -> tuple[np.ndarray, np.ndarray, Certificate, np.ndarray]:
    """W, multipliers, what they prove, and the status, by the methods of a norm or one's own."""
    m = problem.bounds.shape[-1]
    if is_large(m):
        many = is_overdetermined(m, problem.shape, norm)
        methods = large_methods_of(norm, _unheard, own, overdetermined=many)
    else:
        methods = methods_of(norm, own)
    scaled = ScaledConstraints.of(problem)
    *found, certificate, status = attempt(scaled, norm, methods, tolerance)
    return *scaled.restore(*found), certificate, status


def _solve_joint(
    problem: MarginProblem, task: Task, gains: Float[np.ndarray, "d e"], methods_of: MethodsOf
) -> tuple[np.ndarray, np.ndarray, Certificate, np.ndarray]:
    """The same for one problem that joins blocks, in the units in which it is solved best.

    A block of W is about ``1 / c_b`` large, and proximal steps move it by its gain ``||M_b||``,
    ``M = sum_j lambda_j a_j b_j^T``: in units of ``(c_b ||M_b||)^(-1/2)`` one is as large as the
    other. Gains are alike where no block is far better at meeting constraints than others are.

    Args:
        problem: The problem, with an axis of instances.
        task: Has the norm and the tolerance.
        gains: M, as far as it is known.
        methods_of: Gives the methods of a norm.
    """
    assert isinstance(task.geometry, (BlockMaximum, BlockSum))
    pieces = task.geometry.pieces(problem.shape)
    weights = np.array([piece.weight for piece in pieces])
    known = np.array([piece.geometry.dual_norm(gains[piece[:2]]) for piece in pieces])
    known = np.maximum(known, _LEAST_GAIN * known.max())
    best = None
    for sizes in (weights, weights * known):
        norm, rows, columns = in_units(task.geometry, problem.shape, np.frexp(sizes)[1] // 2)
        left, right = np.ldexp(problem.left, -rows), np.ldexp(problem.right, -columns)
        changed = derived(problem, left=left, right=right)
        found = _solve_in(changed, norm, (_solve_jointly,), task.tolerance, methods_of)
        if best is None or found[2].gap[0] < best[2].gap[0]:
            best = np.ldexp(found[0], -np.add.outer(rows, columns)), *found[1:]
        if not is_open(found[3])[0]:
            return np.ldexp(found[0], -np.add.outer(rows, columns)), *found[1:]
    assert best is not None
    return best


def in_units(
    geometry: BlockMaximum | BlockSum, shape: tuple[int, int], exponents: Int[np.ndarray, "blocks"]
) -> tuple[Geometry, Int[np.ndarray, "d"], Int[np.ndarray, "e"]]:
    """The norm of matrices in other units, and binary exponents of those of rows and of columns.

    Where neither all blocks beside nor all on top of each other have units alike, they stay as
    they are.

    Args:
        geometry: The norm.
        shape: Of the matrices.
        exponents: Binary exponents of the units of the blocks.
    """
    pieces = geometry.pieces(shape)
    spread = np.zeros(shape, dtype=int)
    for piece, exponent in zip(pieces, exponents, strict=True):
        spread[piece[:2]] = exponent
    rows, columns = spread[:, 0], spread[0]
    if (spread == rows[:, None]).all():
        columns = np.zeros_like(columns)
    elif (spread == columns).all():
        rows = np.zeros_like(rows)
    else:
        return geometry, np.zeros_like(rows), np.zeros_like(columns)
    blocks = (
        Block(
            piece.geometry,
            (piece.rows.start, piece.rows.stop),
            (piece.columns.start, piece.columns.stop),
            math.ldexp(piece.weight, -int(exponent)),
        )
        for piece, exponent in zip(pieces, exponents, strict=True)
    )
    return type(geometry)(*blocks), rows, columns


def _unheard(stage: int, gap: float) -> None:
    """Reports the stages of one block to nobody."""


def _together(task: Task, parts: list[_Part]) -> Candidates:
    """The whole matrices, and the multipliers of all parts or of the one that decides."""
    W, x = np.zeros_like(task.W), np.zeros_like(task.multipliers)
    if not parts:
        return W, x
    for part in parts:
        W += part.W
    lower = np.stack([part.lower for part in parts])
    infeasible = np.stack([part.infeasible for part in parts])
    multipliers = np.stack([part.multipliers for part in parts])
    each = np.arange(len(W))
    if isinstance(task.geometry, BlockSum):
        x = multipliers.sum(0)
    else:
        x = multipliers[np.argmax(lower, axis=0), each]
    contradicted = np.asarray(infeasible.any(0))
    return W, np.where(contradicted[:, None], multipliers[np.argmax(infeasible, 0), each], x)


def _solve_jointly(task: Task) -> Candidates:
    """Candidates where constraints join blocks, one instance at a time.

    W is corrected to meet the constraints that carry a multiplier where that makes it better: of a
    tiny bound, scaling W up until it is met would cost far more.
    """
    best = BestIterates(len(task.W), task.W.shape[1:], task.multipliers.shape[-1])
    for i in range(len(task.W)):
        one, place = task.choose(np.s_[i : i + 1]), np.array([i])
        scaled = one.scaled
        W, x = solve_by_proximal_newton(one, _unheard)
        best.offer(place, scaled, meet_constraints(scaled, W), x, task.geometry)
        if best.gap[i] > task.tolerance / 2:
            W = meet_constraints(scaled, W, scaled.inequality & (x > 0))
            best.offer(place, scaled, W, x, task.geometry)
    return best.W, best.multipliers
