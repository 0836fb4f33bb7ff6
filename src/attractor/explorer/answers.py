"""What a state says, as objects of the library, and what Python finds for it."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.analysis.predictions.prediction import predicted_problem
from attractor.analysis.predictions.trained import what_was_trained, with_instances
from attractor.attention import LinearHead, get_parameterization
from attractor.explorer.state import PARAMETERIZATIONS, State
from attractor.geometry import Geometry, get_geometry
from attractor.margin import Solution
from attractor.margin.selection import Selection, optimal_tokens
from attractor.support.errors import (
    AttractorError,
    AttractorWarning,
    InvalidInputError,
    Status,
    TiedTokensWarning,
)
from attractor.tokens import Tokens
from attractor.training import get_optimizer, train

if TYPE_CHECKING:
    from attractor.attention import LinearHead, Parameterization
    from attractor.training import Optimizer, Trajectory


_SETTINGS = {"mirror_descent": ("p", "weight_decay")}
"""The settings of optimizers beside the learning rate; of most it is the weight decay alone."""


def tokens_of(state: State) -> Tokens:
    """The tokens, padded to one length; their values are their scores unless the head is trained.

    So the head is the number one and labels are +1: attention then answers with the average score.
    """
    sequences = state["keys"]
    length = max(map(len, sequences))
    keys = np.zeros((len(sequences), length, len(sequences[0][0])))
    mask = np.zeros(keys.shape[:-1], dtype=bool)
    scores = np.zeros((*keys.shape[:-1], 1))
    for i, sequence in enumerate(sequences):
        keys[i, : len(sequence)] = sequence
        mask[i, : len(sequence)] = True
        if not trains_head(state):
            scores[i, : len(sequence), 0] = state["scores"][i]
    queries = np.ones((len(keys), 1))
    if state["parameterization"] in ("W", "KQ"):
        queries = np.array(state["queries"][: len(keys)])
    if trains_head(state):
        return Tokens(keys, queries, state["labels"], mask)
    return Tokens(keys, queries, np.ones(len(keys)), mask, scores)


def trains_head(state: State) -> bool:
    """Whether the head is trained beside the prompt."""
    return state["parameterization"] == "pv"


def head_of(state: State) -> LinearHead:
    """The head: the number one, as values are scores; where it is trained, where it starts."""
    start = np.array(state["start"])
    return LinearHead(start[len(start) // 2 :] if trains_head(state) else np.ones(1))


def layer_of(state: State) -> Parameterization:
    """What is trained."""
    return get_parameterization(PARAMETERIZATIONS[state["parameterization"]])


def initial_of(state: State) -> Any:
    """Where training starts, as ``train`` takes it."""
    layer, tokens = layer_of(state), tokens_of(state)
    arrays, start = {}, np.array(state["start"])
    for name, shape in layer.shapes(tokens.key_dimension, tokens.query_dimension).items():
        size = int(np.prod(shape))
        arrays[name], start = start[:size].reshape(shape), start[size:]
    return arrays


def optimizer_of(training: dict[str, Any]) -> Optimizer:
    """The optimizer of one training."""
    name = training["optimizer"]
    taken = _SETTINGS.get(name, ("weight_decay",))
    settings = {setting: training[setting] for setting in taken if setting in training}
    return get_optimizer(name.replace("_", " "), training["learning_rate"], **settings)


def geometry_of(state: State) -> Geometry | None:
    """The norm that is minimized: the one named, or that which the first training descends.

    None where none is known.
    """
    if "norm" in state:
        return get_geometry(state["norm"])
    return optimizer_of(state["trainings"][0]).effective_geometry(layer_of(state))


def selection_of(state: State) -> Selection | None:
    """The tokens that the margin problem keeps; None where training of the head decides it.

    Of tokens that tie for the highest score it is the first: they exert no force on each other.
    """
    if "selection" in state:
        return Selection.from_index(tokens_of(state), state["selection"])
    if trains_head(state):
        return None
    with warnings.catch_warnings():  # ties are seen
        warnings.simplefilter("ignore", TiedTokensWarning)
        mask = optimal_tokens(tokens_of(state), head_of(state)).mask
    return Selection.from_index(tokens_of(state), mask.argmax(-1)[:, 0])


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
