"""Nuclear and spectral margin problems: a smoothing Newton method for a semidefinite program.

The conditions for optimality say that W and ``M = sum_j lambda_j a_j b_j^T`` lie on the graph of
the subdifferential of the norm, and slacks and multipliers on that of the non-negative numbers.
Both graphs are rounded off to hyperbolas, on which Newton's method is run while the area under
them goes to zero (Chen and Tseng 2003, non-interior continuation for semidefinite programs).
Unlike the iterates of an interior-point method these need not be feasible: they start from the
Frobenius solution, and the last of them are those of Newton's method on the face of the solution,
accurate to the last digits. A step solves one system, as large as there are constraints.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from attractor.margin.batching.iterates import BestIterates
from attractor.margin.batching.reduction import reduce_to_spans
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.correction import meet_constraints
from attractor.margin.methods import Candidates, Task
from attractor.margin.semidefinite.smoothing_path import PathSettings, SmoothingPath

_AGGRESSIVE_NUCLEAR = PathSettings(
    most_steps=30,
    first_area=0.1,
    first=0.1,
    fastest=0.01,
    slowest=0.5,
    near=np.inf,
    closeness=np.inf,
    bound=5.0,
    growth=2.0,
)
_AGGRESSIVE_SPECTRAL = dataclasses.replace(
    _AGGRESSIVE_NUCLEAR, first=0.3, fastest=0.15, near=0.5, closeness=5.0, bound=3.0
)
_CONSERVATIVE = PathSettings(
    most_steps=200,
    first_area=1.0,
    first=0.5,
    fastest=0.55,
    slowest=0.7,
    near=0.1,
    closeness=1.0,
    bound=0.03,
    growth=0.99,
)
"""The aggressive settings were the fastest measured on random data; they leave a few instances in a
thousand unsolved."""

_SMALL_GAP = 1e-8
"""Gap from which on iterates that are much better than all before are kept."""
_STUCK = 3
"""Steps at the last area after which rounding may be what is left of the residual."""


def solve_by_semidefinite_programming(task: Task) -> Candidates:
    """Candidates for the nuclear and the spectral norm.

    Instances not solved with the aggressive settings are solved again with the conservative ones.
    """
    W, x = np.full_like(task.W, np.nan), np.zeros_like(task.multipliers)
    size = np.abs(task.W).max((-1, -2), initial=0.0)
    W[size == 0] = 0.0
    known = np.flatnonzero(size > 0)  # false for NaN
    if known.size:
        part = task.choose(known)
        for places, scaled, left, right in reduce_to_spans(part.scaled):
            chosen = known[places]
            W[chosen], x[chosen] = _solve_in_spans(part.choose(places), scaled, left, right)
    return W, x


def _solve_in_spans(
    task: Task,
    scaled: ScaledConstraints,
    left: Float[np.ndarray, "k d p"],
    right: Float[np.ndarray, "k e q"],
) -> Candidates:
    """Candidates for instances whose spans have the same dimensions.

    Args:
        task: The instances, each with a matrix to start from.
        scaled: Their constraints in coordinates of the spans.
        left: Bases of the spans of the ``a``.
        right: Bases of the spans of the ``b``.
    """
    count = len(task.W)
    start = np.swapaxes(left, -1, -2) @ task.W @ right
    wide = start.shape[-2] < start.shape[-1]
    if wide:
        scaled, left, right = _transposed(scaled), right, left
        start = np.swapaxes(start, -1, -2)
    reduced = dataclasses.replace(task, scaled=scaled, W=start)
    best = BestIterates(count, start.shape[1:], task.multipliers.shape[-1])
    best.offer(np.arange(count), scaled, start, task.multipliers, task.geometry)
    spectral = task.geometry.name == "spectral"
    for settings in (_AGGRESSIVE_SPECTRAL if spectral else _AGGRESSIVE_NUCLEAR, _CONSERVATIVE):
        unsolved = np.flatnonzero(best.gap > task.tolerance / 2)
        if not unsolved.size:
            break
        try:
            with np.errstate(all="ignore"):  # what breaks down leaves the path
                path = SmoothingPath.start(reduced.choose(unsolved), settings, spectral=spectral)
                _follow(path, task, unsolved, best)
        except np.linalg.LinAlgError:
            if count > 1:  # the caller tries the halves of the batch
                raise
    found = left @ best.W @ np.swapaxes(right, -1, -2)
    return (np.swapaxes(found, -1, -2) if wide else found), best.multipliers


def _follow(path: SmoothingPath, task: Task, places: np.ndarray, best: BestIterates) -> None:
    """Follows the path of each instance to its end, or one step beyond the gap required.

    That step costs little and makes W, whose error is much larger than the gap, far better.
    """
    goal = task.tolerance / 2
    for step in range(path.settings.most_steps):
        factors, z, pairs = path.evaluate()
        last = path.ended | (step == path.settings.most_steps - 1)
        beyond = best.gap[places] <= goal
        much_better = pairs.gap < np.minimum(0.1 * best.gap[places], _SMALL_GAP)
        stuck = last | (path.lingering >= _STUCK)
        for chosen, active in (
            (beyond | last | much_better | (pairs.gap <= goal), np.zeros_like(z, dtype=bool)),
            (stuck, z > 0),
        ):
            if chosen.any():
                scaled = path.conditions.scaled.choose(chosen)
                met_exactly = scaled.inequality & active[chosen]
                W = meet_constraints(scaled, pairs.W[chosen], met_exactly)
                best.offer(places[chosen], scaled, W, pairs.multipliers[chosen], task.geometry)
        active_instances = ~(last | beyond)
        if not active_instances.any():
            break
        path.step(factors, z, pairs, active_instances)
        if not active_instances.all():
            path, places = path.choose(active_instances), places[active_instances]


def _transposed(scaled: ScaledConstraints) -> ScaledConstraints:
    """The constraints on the transpose of W."""
    return dataclasses.replace(scaled, left=scaled.right, right=scaled.left)
