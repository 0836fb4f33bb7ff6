"""What Python finds for a state: the solution, and training."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.analysis.predictions.prediction import predicted_problem
from attractor.analysis.predictions.trained import what_was_trained, with_instances
from attractor.explorer.reading import (
    geometry_of,
    head_of,
    initial_of,
    optimizer_of,
    selection_of,
    tokens_of,
    trains_head,
)
from attractor.explorer.state import PARAMETERIZATIONS, State
from attractor.geometry import Geometry
from attractor.margin import Solution
from attractor.margin.selection import Selection, optimal_tokens
from attractor.support.errors import AttractorError, AttractorWarning, InvalidInputError, Status

if TYPE_CHECKING:
    from attractor.training import Trajectory


_WORDS = {
    Status.OPTIMAL: "solved",
    Status.INFEASIBLE: "infeasible",
    Status.OUT_OF_REACH: "not converged",
    Status.STOPPED_EARLY: "not converged",
}
"""What a page calls the ends of margin problems."""


def status_of(solution: Solution) -> str:
    """How a margin problem ended, as a page says it."""
    return _WORDS[solution.status] if int(solution.problem.constraints) else "empty"


def solution_of(state: State) -> Solution:
    """The solution of the problem that theory predicts for a state.

    Raises:
        InvalidInputError: If no norm is known.
    """
    geometry = geometry_of(state)
    if geometry is None:
        raise InvalidInputError(
            "norm",
            f"none is known for {state['trainings'][0]['optimizer'].replace('_', ' ')} of "
            f"{state['parameterization']}",
            "Choose one",
        )
    return solved(state, selection_of(state) or _selection_of_trained_head(state), geometry)


def _selection_of_trained_head(state: State) -> Selection:
    """The tokens of the highest score at the end: where a head is trained, it goes there first."""
    from attractor.attention import LinearHead

    weight = trained(state, record=[state["steps"]]).data["head_weight"].values[0, 0, -1]
    return optimal_tokens(tokens_of(state), LinearHead(weight))


def solved(state: State, selection: Selection, geometry: Geometry) -> Solution:
    """The solution that theory predicts for a selection in a norm."""
    tokens = with_instances(tokens_of(state))
    kept = Selection(selection.mask[None], selection.tied[None])
    head = head_of(state)
    trained = what_was_trained(tokens, head, state["loss"], head_trained=trains_head(state))
    return predicted_problem(tokens, kept, trained, geometry).solution[0]


def trained(state: State, number: int = 0, record: Any = None) -> Trajectory:
    """One of the trainings of a state.

    Args:
        state: The state.
        number: Which of its trainings.
        record: Steps to record, as ``train`` takes them.
    """
    from attractor.training import train

    training = state["trainings"][number]
    own = training.get("parameterization", state["parameterization"])
    initial = initial_of(state)
    if own != state["parameterization"]:  # W beside its factors starts at their product
        initial = {"W": initial["K"] @ initial["Q"].T}
    return train(
        tokens_of(state),
        head_of(state),
        optimizer_of(training),
        steps=state["steps"],
        initial=initial,
        loss=state["loss"],
        parameterization=PARAMETERIZATIONS[own],
        kernel="plain" if training.get("plain") else "exact",
        record=record,
    )


def paths_of(state: State, record: Any = None) -> list[dict[str, list[Any]]]:
    """The parameters of every training at recorded steps, as a state holds them.

    Args:
        state: The state.
        record: Steps to record, as ``train`` takes them.
    """
    paths = []
    for number, training in enumerate(state["trainings"]):
        run = trained(state, number, record)
        own = training.get("parameterization", state["parameterization"])
        names = {"KQ": ("K", "Q"), "pv": ("p", "head_weight")}.get(own, (own,))
        arrays = [run.data[name].isel(instance=0, seed=0).values for name in names]
        points = np.concatenate([array.reshape(len(array), -1) for array in arrays], -1)
        paths.append({"steps": run.data["step"].values.tolist(), "points": points.ravel().tolist()})
    return paths


def report_on(state: State) -> dict[str, Any]:
    """What a kernel answers to a state: value, gap, ends of the paths; else why there is none."""
    begun = time.perf_counter()
    report: dict[str, Any] = {"state": state.get("id", "")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttractorWarning)
        try:
            solution = solution_of(state)
            report["status"] = status_of(solution)
            if np.isfinite(solution.value):
                report |= {"value": float(solution.value), "gap": float(solution.gap)}
        except AttractorError as error:
            report["message"] = str(error)
        try:
            ends = [path["points"] for path in paths_of(state, [state["steps"]])]
            if np.isfinite(np.concatenate(ends)).all():
                report["ends"] = ends
        except AttractorError as error:
            report["message"] = str(error)
    report["milliseconds"] = round(1e3 * (time.perf_counter() - begun), 1)
    return report
