"""Margin problems in the maximum, or the sum, of the norms of blocks.

Blocks that no constraint joins are problems of their own. Each is solved in its own norm by the
methods of that norm, so that it is solved as well as if it stood alone; the smallest maximum is
the largest of their values, and multipliers of that one prove it; the smallest sum is their sum.
What constraints do join is solved together, by Newton steps on proximal points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.errors import Status
from attractor.geometry import BlockMaximum, BlockSum, Geometry
from attractor.geometry.blocks import Piece
from attractor.margin.correction import meet_constraints
from attractor.margin.empty_slots import alike, as_places, without_empty_slots
from attractor.margin.iterates import BestIterates
from attractor.margin.large.constraint_generation import is_overdetermined
from attractor.margin.large.driver import is_large, large_methods_of
from attractor.margin.large.proximal_newton import solve_by_proximal_newton
from attractor.margin.methods import Candidates, Method, Task, attempt
from attractor.margin.problem import MarginProblem
from attractor.margin.scaling import ScaledConstraints

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
            held = touched[places][..., list(numbers)].any(-1)
            blocks = tuple(pieces[b] for b in numbers)
            found.append(_solve_part(part, blocks, held, methods_of))
        W[places], x[places] = _together(part, found)
    return W, x


def _touched(
    scaled: ScaledConstraints, pieces: tuple[Piece, ...]
) -> Bool[np.ndarray, "instances m blocks"]:
    """Which blocks a constraint has entries in."""
    left = [scaled.left[..., piece.rows].any(-1) for piece in pieces]
    right = [scaled.right[..., piece.columns].any(-1) for piece in pieces]
    return np.stack(left, -1) & np.stack(right, -1) & scaled.present[..., None]


def _groups(touched: Bool[np.ndarray, "m blocks"]) -> tuple[tuple[int, ...], ...]:
    """The blocks that constraints join, directly or by others; blocks without any are left out."""
    label = np.arange(touched.shape[-1])
    for joined in np.unique(touched[touched.sum(-1) > 1], axis=0):
        members = np.isin(label, label[joined])
        label[members] = label[members].min()
    used = touched.any(0)
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
    left, right, own, units_of = scaled.left, scaled.right, None, (0, 0)
    if len(blocks) == 1:
        ((rows, columns, weight, norm),) = blocks
    else:
        rows, columns, weight = np.s_[:], np.s_[:], 1.0
        norm, *units_of = with_moderate_weights(task.geometry, task.W.shape[1:])
        left, right = np.ldexp(left, -units_of[0]), np.ldexp(right, -units_of[1])
        own = (_solve_jointly,)
    problem = MarginProblem(
        left[..., rows], right[..., columns], scaled.bounds, scaled.equality, held
    )
    part = _Part(
        np.zeros_like(task.W), np.zeros_like(task.multipliers), np.zeros(count), np.zeros(count) > 0
    )
    for m, instances in alike(problem):
        large = is_large(m)
        for chosen in np.split(instances, len(instances)) if large else [instances]:
            few, place = without_empty_slots(problem, as_places(chosen))
            units = ScaledConstraints.of(few)
            if large:
                many = is_overdetermined(m, few.shape, norm)
                methods = large_methods_of(norm, _unheard, own, overdetermined=many)
            else:
                methods = methods_of(norm, own)
            *found, certificate, status = attempt(units, norm, methods, task.tolerance)
            W, x = units.restore(*found)
            part.W[chosen, rows, columns] = np.ldexp(W, -np.add.outer(*units_of))
            part.multipliers[place] = weight * x
            part.lower[chosen] = weight * certificate.dual_value
            part.infeasible[chosen] = status == Status.INFEASIBLE
    # Multipliers of a bound alone may be of any scale.
    alone = np.flatnonzero(np.isnan(part.W).any((-1, -2)) & ~part.infeasible)
    size = task.geometry.dual_norm(scaled.choose(alone).combine(part.multipliers[alone]))
    part.multipliers[alone] /= np.where(size > 0, size, 1.0)[:, None]
    return part


def with_moderate_weights(
    geometry: BlockMaximum | BlockSum, shape: tuple[int, ...]
) -> tuple[Geometry, Int[np.ndarray, "d"], Int[np.ndarray, "e"]]:
    """A norm with the roots of the weights, and binary exponents of units of rows and of columns.

    Matrices in these units have the same norm. A block is about ``1 / c_b`` large, and proximal
    steps move it by about its gain ``||M_b||``, which is as large in all blocks: in units of
    ``c_b^(-1/2)``, as powers of two, both are alike. Where neither all blocks beside nor all on
    top of each other have weights alike, they stay as they are.
    """
    exponents = np.zeros(shape, dtype=int)
    for piece in geometry.pieces(shape):
        exponents[piece.rows, piece.columns] = _half_exponent(piece.weight)
    rows, columns = exponents[:, 0], exponents[0]
    if (exponents == rows[:, None]).all():
        columns = np.zeros_like(columns)
    elif (exponents == columns).all():
        rows = np.zeros_like(rows)
    else:
        return geometry, np.zeros_like(rows), np.zeros_like(columns)
    moderate = (
        replace(block, weight=math.ldexp(block.weight, -_half_exponent(block.weight)))
        for block in geometry.blocks
    )
    return type(geometry)(*moderate), rows, columns


def _half_exponent(weight: float) -> int:
    """Half the binary exponent."""
    return math.frexp(weight)[1] // 2


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
    contradicted = infeasible.any(0)
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
