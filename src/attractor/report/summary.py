"""Results as plain numbers for JSON."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.margin import Solution
from attractor.report.constraints import conflicts
from attractor.results import finite_or_none
from attractor.support.errors import Status

if TYPE_CHECKING:
    from attractor.analysis import Verdict


def solution_summary(solution: Solution, instance_numbers: np.ndarray) -> dict[str, Any]:
    """Status, norm and certificate of a solution, and the conflicts where it is infeasible.

    Args:
        solution: Solution for one data set or several.
        instance_numbers: Number of each data set.
    """
    several = solution.problem.instances is not None
    statuses = [str(status) for status in (solution.status if several else [solution.status])]
    summary: dict[str, Any] = {
        "geometry": solution.geometry.name,
        "problems": len(statuses),
        "status": dict(Counter(statuses)) if several else statuses[0],
    }
    for name in ("norm", "value", "margin", "gap", "kkt_residual", "norm_lower_bound"):
        values = getattr(solution, name)
        summary[name] = [*map(finite_or_none, values)] if several else finite_or_none(values)
    found = conflicts(solution, instance_numbers)
    if found:
        summary["conflicts"] = [dataclasses.asdict(one) for one in found]
    return summary


def report_summary(
    prediction: Solution | None, verdict: Verdict | None, instance_numbers: np.ndarray
) -> dict[str, Any]:
    """A prediction and what training did, each where there is one.

    Args:
        prediction: Solution of the margin problem predicted beforehand.
        verdict: What training did.
        instance_numbers: Number of each data set of the prediction.
    """
    summary: dict[str, Any] = {}
    if prediction is not None:
        summary["prediction"] = solution_summary(prediction, instance_numbers)
    if verdict is not None:
        summary["verdict"] = verdict.summary()
    return summary


def infeasible_count(solution: Solution) -> int:
    """Number of data sets whose problem has no solution."""
    statuses = solution.status if solution.problem.instances is not None else [solution.status]
    return sum(status is Status.INFEASIBLE for status in statuses)
