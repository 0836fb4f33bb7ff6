"""The margin problems of the norms l_1 and l_inf by the simplex method, one at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from jaxtyping import Bool, Float

from attractor.geometry import Lp
from attractor.margin.batching.iterates import BestIterates
from attractor.margin.linear.interior_points import EntrywiseProgram
from attractor.margin.linear.methods import program_of
from attractor.margin.linear.vertices import project_on_face
from attractor.margin.methods import Candidates, Task

_SETTINGS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_AT_BOUND = 1e-9
"""Distance from a bound, in units of the largest entry, that is rounding."""


def solve_by_simplex(task: Task) -> Candidates:
    """Solves in l_1 or l_inf by the HiGHS simplex method, and anew where it ends.

    Args:
        task: Its geometry is ``Lp(1)`` or ``Lp(inf)``, its W a matrix that meets the constraints.
    """
    best = BestIterates(len(task.W), task.W.shape[1:], task.multipliers.shape[-1])
    assert isinstance(task.geometry, Lp)
    solve = {1.0: _sum_of_entries, math.inf: _largest_entry}[task.geometry.p]
    for i in task.warm_started:
        one, place = task.choose([i]), np.array([i])
        with np.errstate(all="ignore"):
            program = program_of(one)
        found = solve(program, np.abs(task.W[i]).max())
        if found is None:
            continue
        w, multipliers, between = found
        slack = program.margins(w[None])[0] - program.bounds[0]
        tight = slack <= _AT_BOUND * max(np.abs(w).max(), 1.0)
        tight |= ~program.inequality[0] | (multipliers > 0)
        signs = np.where(w > 0, 1.0, -1.0)
        again = project_on_face(program, signs, between, tight & program.present[0], w, multipliers)
        for entries, x in ((w, multipliers), again):
            W = entries.reshape(1, *task.W.shape[1:])
            best.offer(place, one.scaled, W, x[None], task.geometry)
    return best.W, best.multipliers


_Found = tuple[Float[np.ndarray, "D"], Float[np.ndarray, "m"], Bool[np.ndarray, "D"]]
"""Entries, multipliers, and which entries lie between their bounds."""


def _sum_of_entries(program: EntrywiseProgram, size: float) -> _Found | None:
    """``min sum(u + v)`` with ``w = size (u - v)``."""
    rows = np.hstack([program.rows[0], -program.rows[0]])
    found = _linprog(program, np.ones(rows.shape[1]), rows, program.bounds[0] / size, (0, None))
    if found is None:
        return None
    w = size * (found[0][: rows.shape[1] // 2] - found[0][rows.shape[1] // 2 :])
    return w, found[1], np.abs(w) > _AT_BOUND * np.abs(w).max()


def _largest_entry(program: EntrywiseProgram, size: float) -> _Found | None:
    """``max g`` with ``F x >= g c`` and ``|x| <= 1``, where ``w = x / g``."""
    rows = np.hstack([program.rows[0], -program.bounds[0][:, None] / size])
    entries = rows.shape[1] - 1
    costs = np.append(np.zeros(entries), -1.0)
    limits = [*[(-1, 1)] * entries, (0, None)]
    found = _linprog(program, costs, rows, np.zeros(len(rows)), limits)
    if found is None or not found[0][-1] > 0:
        return None
    return size * found[0][:-1] / found[0][-1], found[1], np.abs(found[0][:-1]) < 1 - _AT_BOUND


def _linprog(
    program: EntrywiseProgram, costs: Any, rows: Any, bounds: Any, limits: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """The solution and multipliers of ``rows x >= bounds``, equal on equalities."""
    above = program.inequality[0]
    equal = program.present[0] & ~above
    found = scipy.optimize.linprog(
        costs,
        A_ub=-rows[above],
        b_ub=-bounds[above],
        A_eq=-rows[equal],
        b_eq=-bounds[equal],
        bounds=limits,
        method="highs-ds",
        options=_SETTINGS,
    )
    if found.x is None or not np.isfinite(found.x).all():
        return None
    multipliers = np.zeros(len(rows))
    multipliers[above], multipliers[equal] = -found.ineqlin.marginals, -found.eqlin.marginals
    return found.x, multipliers
