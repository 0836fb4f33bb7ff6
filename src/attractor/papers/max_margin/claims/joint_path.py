"""Head and prompt at the minimum of the loss over two balls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attractor.files.case import Case
from attractor.geometry.vectors import cosines
from attractor.margin import (
    RateRatioDirection,
    Solution,
    rate_ratio_direction,
    relaxed_problem,
    solve,
)
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import (
    ALL_LABELS_SUPPORT,
    FEASIBLE,
    LABELS_SEPARABLE,
    ONE_TOKEN_A_ROW,
    PURE_SELECTION,
    PURE_SELECTION_AT_MARGIN,
    SOME_LABEL_BEYOND,
    label_solution,
    supports,
    trains,
)
from attractor.papers.ledger.claim import once
from attractor.papers.max_margin.data import joint_training
from attractor.papers.measurements.paths import RADII, end_of_path, path
from attractor.results.paper import MAX_MARGIN
from attractor.tokens import Tokens
from attractor.training import Trajectory

CLAIMS = Claims(MAX_MARGIN, Case)

_TOLD_APART = 10.0
"""Radius times the slack of a label from which on attention leaves it out.

With the head's radius the square of that of the prompt, its loss is smaller by the exponential."""


def _contrast(
    run: Callable[[Case, int], Trajectory | None],
    words: str,
    direction: Callable[[Case], np.ndarray],
    wrong_words: str,
    wrong_direction: Callable[[Case], np.ndarray],
) -> Comparison[Case, np.ndarray]:
    """The distance of a path from a direction of attention, and from a wrong one."""
    quantity = "larger 1 - cos of the path with {} and with the label solution"
    reason = "both angles fall like c / R; at 10,000 norms of the solution the bound lets c be 14"
    return Comparison(
        quantity.format(words),
        lambda case, seed, named: distance_of_both(run(case, seed), case, named),
        lambda case, seed: direction(case),
        quantity.format(wrong_words),
        lambda case, seed: wrong_direction(case),
        bound=1e-6,
        reason=reason,
    )


def _ratio(case: Case) -> float:
    """Half the critical ratio of the radii, from which on the relaxed direction is reached."""
    critical = float(at_ratio(case, 1.0).critical_ratio)
    return critical / 2 if np.isfinite(critical) and critical > 0 else 0.5


def _with_keys(*keys: list[list[float]]) -> Case:
    """The tight case with other keys of its first two sequences."""
    every = np.array([*keys, [[0, 0], [0.5, 1]]], float)
    tokens = Tokens(every, np.ones((3, 1)), np.array([1.0, -1.0, 1.0]))
    return _tight_case().replace(tokens=tokens)


def _tight_case() -> Case:
    return joint_training(all_labels_support=True)


def _loose_case() -> Case:
    return joint_training(all_labels_support=False)


_ASSUMPTIONS = (
    trains("v, p", "v, W"),
    ONE_TOKEN_A_ROW.broken_by(lambda: _with_keys([[1, 1], [2, 1]], [[0, 0], [1, -1]])),
    FEASIBLE.broken_by(lambda: _with_keys([[0, 0], [1, 1]], [[0, 0], [-1, -1]])),
    LABELS_SEPARABLE,
)


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


@once
def at_ratio(case: Case, ratio: float) -> RateRatioDirection:
    """The direction of attention beside a head whose norm is a multiple of its own."""
    return rate_ratio_direction(case.tokens, case.selection, ratio, label=label_solution(case))


def head_outgrows(case: Case, seed: int) -> Trajectory | None:
    """The path with ``r = R^2``, in norms of the two solutions: the head grows without bound.

    None where no row at the label margin has a choice of tokens, and attention has no direction.
    """
    unit, head_unit = (float(one(case).value) for one in (relaxed_solution, label_solution))
    if unit == 0:
        return None
    return path(case, seed, unit=unit, head_radius=tuple(head_unit * R**2 for R in RADII))


def at_fixed_ratio(case: Case, seed: int) -> Trajectory | None:
    """The path with ``r = c R``, c half the critical ratio; None as for ``head_outgrows``."""
    ratio, unit = _ratio(case), float(relaxed_solution(case).value)
    if unit == 0:
        return None
    return path(case, seed, unit=unit, head_radius=tuple(ratio * unit * R for R in RADII))


def distance_of_both(run: Trajectory | None, case: Case, direction: np.ndarray) -> Measurement:
    """The larger ``1 - cos``, of attention with a direction and of the head with its own.

    A label beyond the margin by little is told from those at it only at large radii.
    """
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
    slack = least_slack(case)
    if np.isfinite(slack):
        details["least slack of labels beyond the margin"] = slack
    begun = RADII[-1] * slack >= _TOLD_APART
    return end_of_path(np.maximum(attention, head), 1, details, begun=begun)


def least_slack(case: Case) -> float:
    """By how much of the label margin labels are beyond it, at least; infinite where none is."""
    solution = label_solution(case)
    slacks = solution.problem.margins(solution.W) - 1
    return float(slacks[~supports(case).ravel()].min(initial=np.inf))


JOINT_PATH = CLAIMS.claim(
    "joint-path",
    "if all labels support the head, head and prompt tend to their max-margin directions",
    statement="joint regularization path with all labels at the margin",
    assuming=(*_ASSUMPTIONS, ALL_LABELS_SUPPORT, PURE_SELECTION),
    contrast=_contrast(
        head_outgrows,
        "the max-margin direction",
        lambda case: case.solution().W,
        "the solution as if one label were beyond the margin",
        lambda case: one_support_fewer(case).W,
    ),
    data=lambda seed: [_tight_case()],
    note="the ball of the head grows like the square of that of the prompt",
)

RELAXED_JOINT_PATH = CLAIMS.claim(
    "relaxed-joint-path",
    "labels beyond the head's margin relax the prompt's problem to margins of zero",
    statement="joint regularization path",
    assuming=(*_ASSUMPTIONS, SOME_LABEL_BEYOND, PURE_SELECTION_AT_MARGIN),
    contrast=_contrast(
        head_outgrows,
        "the relaxed direction",
        lambda case: relaxed_solution(case).W,
        "the max-margin direction, as if all labels were at the margin",
        lambda case: case.solution().W,
    ),
    data=lambda seed: [_loose_case()],
    note="the head first: its ball grows like the square of that of the prompt",
)

JOINT_PATH_AT_ANY_RATES = CLAIMS.claim(
    "relaxed-joint-path-at-any-rates",
    "the relaxed direction is the limit however the two balls grow",
    statement="joint regularization path, read for any order of limits",
    assuming=(*_ASSUMPTIONS, PURE_SELECTION_AT_MARGIN),
    contrast=_contrast(
        at_fixed_ratio,
        "the relaxed direction",
        lambda case: relaxed_solution(case).W,
        "the direction as if one more label were beyond the margin",
        lambda case: one_support_fewer(case).W,
    ),
    data=lambda seed: [_tight_case(), _loose_case()],
    holding=_tight_case,
    note="fails where a label is beyond the margin and the head's ball grows too slowly",
)

JOINT_ORDER_OF_LIMITS = CLAIMS.claim(
    "joint-order-of-limits",
    "at r = c R, c between 0 and a critical ratio, the direction depends on c",
    statement="joint regularization path at a fixed ratio of radii",
    assuming=(*_ASSUMPTIONS, SOME_LABEL_BEYOND, PURE_SELECTION_AT_MARGIN),
    contrast=_contrast(
        at_fixed_ratio,
        "the direction of largest joint margin at that ratio",
        lambda case: at_ratio(case, _ratio(case)).direction,
        "the max-margin direction",
        lambda case: case.solution().W,
    ),
    data=lambda seed: [_loose_case()],
    note="derived, not quoted; measured at half the critical ratio",
)
