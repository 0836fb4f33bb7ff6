"""Solving again from a neighbor's multipliers: only the constraints that hold the solution."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.large.constraint_generation import keep
from attractor.margin.large.driver import is_large
from attractor.margin.methods import Candidates, Method, Task, attempt, is_open
from attractor.support.errors import Status

_MOST_ROUNDS = 30
_MOST = 0.75
"""Share of the constraints beyond which all of them cost no more."""
_TRIFLE = 1e-6
"""Share of the largest multiplier below which one may be what an interior point leaves."""
_FEWEST_ADDED = 64
_MET = 1e-11
"""Shortfall, in units of the largest bound, of a constraint that counts as met."""


def from_working_set(methods: tuple[Method, ...]) -> Method:
    """A method that solves on the constraints with a positive multiplier, and adds what it misses.

    Of the constraints left out, those whose margin falls short most join the next round. The
    answer is that of all constraints once none does: multipliers of the rest are zero. A
    contradiction among a few is one among all.

    Args:
        methods: Methods for the working set, in the order to try them.
    """

    def solve_on_few(task: Task) -> Candidates:
        W, x = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
        for i in range(len(W)):
            W[i], x[i] = _solve_one(task.choose(np.s_[i : i + 1]), methods)
        return W, x

    return solve_on_few


def _solve_one(task: Task, methods: tuple[Method, ...]) -> Candidates:
    """W and multipliers of one instance; NaN and zeros where rounds run out or are not settled."""
    scaled = task.scaled
    nothing = np.full(task.W.shape[1:], np.nan), np.zeros(task.multipliers.shape[1:])
    among = scaled.nonzero[0]
    weights = task.multipliers[0] * scaled.norms[0]
    working = among & (scaled.equality[0] | (weights > _TRIFLE * weights.max(initial=0.0)))
    if not working.any():
        return nothing
    for _ in range(_MOST_ROUNDS):
        if working.sum() > _MOST * among.sum() or is_large(int(working.sum())):
            return nothing
        few = keep(scaled, working)
        W, multipliers, _, status = attempt(few, task.geometry, methods, task.tolerance)
        if is_open(status)[0]:
            return nothing
        x = np.zeros_like(nothing[1])
        x[working] = multipliers[0]
        if status[0] is Status.INFEASIBLE:
            return nothing[0], x
        missed = _worst(scaled, W, working)
        if not missed.any():
            return W[0], x
        working |= missed
    return nothing


def _worst(
    scaled: ScaledConstraints, W: np.ndarray, working: Bool[np.ndarray, "m"]
) -> Bool[np.ndarray, "m"]:
    """The inequalities left out that a matrix misses by most, half as many as there are now.

    Those it misses at first are several times as many as hold the solution in the end.
    """
    shortfall = np.where(scaled.inequality, scaled.bounds - scaled.margins(W), 0.0)[0]
    missed = (shortfall > _MET) & ~working
    most = max(_FEWEST_ADDED, int(working.sum()) // 2)
    if missed.sum() > most:
        shortfall = np.where(missed, shortfall, 0.0)
        missed[:] = False
        missed[np.argpartition(-shortfall, most)[:most]] = True
    return missed
