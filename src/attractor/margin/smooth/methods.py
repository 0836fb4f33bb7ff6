"""Margin problems in the l_p norms of entries and singular values, for 1 < p < inf but p = 2."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from attractor.geometry import Geometry, Lp, Schatten
from attractor.margin.methods import Candidates, Task
from attractor.margin.reduction import reduce_to_spans
from attractor.margin.scaling import ScaledConstraints
from attractor.margin.smooth.newton_variables import MatrixAndMultipliers, MultipliersAlone
from attractor.margin.smooth.norm_expansions import EntrywiseExpansions, SingularValueExpansions
from attractor.margin.smooth.predictor_corrector import (
    AGGRESSIVE,
    CONSERVATIVE,
    StepSettings,
    iterate,
)

_BLOCK_ENTRIES = 2**20
"""Entries of the constraints, written out as matrices, of the instances iterated at a time."""
_LEAST_MULTIPLIER = 0.02
"""Least multiplier to start from, beside the largest."""
_LEAST_SCALE = 0.1
_MOST_REDUCTIONS = 20
_MOST_GROWTH = 1.3
"""How much larger the norm may become by it."""
_FIRST_EXPONENTS = (4.0, 3.0)
"""Largest exponent to start from when the multipliers are varied alone, and W with them."""


def solve_by_bold_newton(task: Task) -> Candidates:
    """Candidates for an ``Lp`` or ``Schatten`` geometry, started from the Frobenius solution."""
    return _solve_in_blocks(task, AGGRESSIVE)


def solve_by_careful_newton(task: Task) -> Candidates:
    """The same in shorter steps."""
    return _solve_in_blocks(task, CONSERVATIVE)


def _solve_in_blocks(task: Task, settings: StepSettings) -> Candidates:
    geometry = task.geometry
    assert isinstance(geometry, (Lp, Schatten))
    W, multipliers = task.W.copy(), np.zeros_like(task.multipliers)
    known = task.warm_started
    entries = task.scaled.left.size * task.W.shape[-1] // max(len(task.W), 1)
    step = max(1, _BLOCK_ENTRIES // max(entries, 1))
    for first in range(0, known.size, step):
        block = known[first : first + step]
        part = task.choose(block)
        with np.errstate(all="ignore"):  # what fails is not finite, and given up
            W[block], multipliers[block] = _solve(part, geometry, settings)
    return W, multipliers


def _solve(task: Task, geometry: Lp | Schatten, settings: StepSettings) -> Candidates:
    """Candidates for a block of instances that all have a matrix to start from."""
    if not geometry.unitarily_invariant:
        return _solve_in_full(task, geometry, settings)
    scaled, left, right = reduce_to_spans(task.scaled)
    W = np.swapaxes(left, -1, -2) @ task.W @ right
    W, multipliers = _solve_in_full(replace(task, scaled=scaled, W=W), geometry, settings)
    return left @ W @ np.swapaxes(right, -1, -2), multipliers


def _solve_in_full(task: Task, geometry: Lp | Schatten, settings: StepSettings) -> Candidates:
    scaled = task.scaled
    unit = geometry.norm(task.W)
    unit = np.where(unit > 0, unit, 1.0)
    present = (scaled.inequality | scaled.equality) & (scaled.norms > 0)
    scaled = replace(
        scaled,
        bounds=scaled.bounds / unit[:, None],
        inequality=scaled.inequality & present,
        equality=scaled.equality & present,
    )
    multipliers = _first_multipliers(scaled, task.multipliers, geometry)
    kind = SingularValueExpansions if isinstance(geometry, Schatten) else EntrywiseExpansions
    expansions = kind(scaled.left, scaled.right)
    alone = geometry.p < 2
    variables = (MultipliersAlone if alone else MatrixAndMultipliers)(scaled, expansions)
    last = geometry.q if alone else geometry.p
    first = min(last, _FIRST_EXPONENTS[0 if alone else 1])
    W = 1.1 * task.W / unit[:, None, None]
    best = iterate(
        scaled, variables, multipliers, W, (first, last), geometry, task.tolerance / 2, settings
    )
    return best.W * unit[:, None, None], best.multipliers


def _first_multipliers(
    scaled: ScaledConstraints, multipliers: Float[np.ndarray, "k m"], geometry: Geometry
) -> Float[np.ndarray, "k m"]:
    """The Frobenius multipliers at the scale that is best in the geometry, away from zero.

    Multipliers may nearly cancel one another: raising them must not raise what is left of them.
    """
    x = np.where(scaled.inequality | scaled.equality, multipliers, 0.0)
    norm = geometry.dual_norm(scaled.combine(x))
    x = np.where((norm > 0)[:, None], x, scaled.inequality)
    norm = np.where(norm > 0, norm, 1.0)
    scale = np.maximum((scaled.bounds * x).sum(-1) / norm, _LEAST_SCALE)
    x, norm = x * (scale / norm)[:, None], scale
    least = _LEAST_MULTIPLIER * np.abs(x).max(-1, keepdims=True)
    raised = x
    for _ in range(_MOST_REDUCTIONS):
        raised = np.where(scaled.inequality, np.maximum(x, least), x)
        large = geometry.dual_norm(scaled.combine(raised)) > _MOST_GROWTH * norm
        if not large.any():
            break
        least = np.where(large[:, None], 0.25 * least, least)
    return raised
