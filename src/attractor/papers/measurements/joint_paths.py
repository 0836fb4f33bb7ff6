"""Where regularization paths of attention and head together lead."""

from __future__ import annotations

from typing import Any

import numpy as np

from attractor.files.case import Case
from attractor.geometry._lengths import cosines
from attractor.margin import (
    RateRatioDirection,
    Solution,
    rate_ratio_direction,
    relaxed_problem,
    solve,
)
from attractor.papers.claim import Measurement
from attractor.papers.joint_hypotheses import label_solution, supports
from attractor.papers.measurements.paths import RADII, path
from attractor.training import Trajectory


def relaxed_solution(case: Case, rows: np.ndarray | None = None) -> Solution:
    """The solution of attention that only rows at the label margin ask for a margin.

    Args:
        case: The data.
        rows: Rows taken for such, in place of those that are, ``(n, K)``.
    """
    rows = supports(case) if rows is None else rows
    return case.once(
        ("relaxed", case.selection.mask.tobytes(), rows.tobytes()),
        lambda: solve(relaxed_problem(case.tokens, case.selection, rows)),
    )


def one_support_fewer(case: Case) -> Solution:
    """The relaxed solution as if the row that bears most of it were beyond the label margin."""
    solution = relaxed_solution(case)
    problem, rows = solution.problem, supports(case).copy()
    assert problem.sequence is not None and problem.query is not None
    weights = np.zeros(rows.shape)
    held = problem.present & (problem.bounds > 0)
    np.add.at(weights, (problem.sequence[held], problem.query[held]), solution.multipliers[held])
    rows[np.unravel_index(int(weights.argmax()), rows.shape)] = False
    return relaxed_solution(case, rows)


def at_ratio(case: Case, ratio: float) -> RateRatioDirection:
    """The direction of attention beside a head whose norm is a multiple of its own."""
    return case.once(
        ("rate ratio", ratio),
        lambda: rate_ratio_direction(
            case.tokens, case.selection, ratio, label=label_solution(case)
        ),
    )


def head_outgrows(case: Case, seed: int) -> Trajectory | None:
    """The path with ``r = R^2``, in norms of the two solutions: the head grows without bound.

    None where no row at the label margin has a choice of tokens, and attention has no direction.
    """
    unit = float(relaxed_solution(case).value)
    head_unit = float(label_solution(case).value)
    if unit == 0:
        return None
    return path(case, seed, unit=unit, head_radius=tuple(head_unit * R**2 for R in RADII))


def at_fixed_ratio(case: Case, seed: int, ratio: float) -> Trajectory | None:
    """The path with ``r = ratio R``; None as for ``head_outgrows``."""
    unit = float(relaxed_solution(case).value)
    if unit == 0:
        return None
    return path(case, seed, unit=unit, head_radius=tuple(ratio * unit * R for R in RADII))


def distance_of_both(run: Trajectory | None, case: Case, direction: np.ndarray) -> Measurement:
    """The larger ``1 - cos``, of attention with a direction and of the head with its own."""
    if run is None:
        return Measurement(np.nan, checked=0)
    W = run.data["W"].to_numpy()[0, 0]
    heads = run.data["head_weight"].to_numpy()[0, 0][..., None]
    attention, head = 1 - cosines(W, direction), 1 - cosines(heads, label_solution(case).W)
    details: dict[str, Any] = {
        "radii": run.steps.tolist(),
        "1 - cos of attention": attention.tolist(),
        "1 - cos of the head": head.tolist(),
        "optimality": float(run.data["optimality"].max()),
    }
    return Measurement(float(max(attention[-1], head[-1])), 1, details)
