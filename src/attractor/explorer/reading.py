"""What a state says, as objects of the library."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.explorer.state import PARAMETERIZATIONS, State
from attractor.geometry import Geometry, get_geometry
from attractor.margin.selection import Selection, optimal_tokens
from attractor.support.errors import TiedTokensWarning
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.attention import LinearHead, Parameterization
    from attractor.training import Optimizer

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
    from attractor.attention import LinearHead

    start = np.array(state["start"])
    return LinearHead(start[len(start) // 2 :] if trains_head(state) else np.ones(1))


def layer_of(state: State) -> Parameterization:
    """What is trained."""
    from attractor.attention import get_parameterization

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
    from attractor.training import get_optimizer

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
