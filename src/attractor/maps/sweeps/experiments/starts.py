"""Where training starts: random parameters, or factors of a random matrix, at any scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from attractor.maps.sweeps.experiments.parameters import (
    Parameter,
    combinations,
    filled_in,
    text,
    word,
)
from attractor.maps.sweeps.experiments.token_data import SIZES, draw_tokens
from attractor.support.checks import check_number
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_seed

if TYPE_CHECKING:
    from attractor.attention import Parameterization
    from attractor.tokens import Tokens

_PARAMETERS, _MATRIX = "parameters", "matrix"


def _parameterization_named(name: str) -> Parameterization:
    from attractor.attention import get_parameterization

    return get_parameterization(name)


START_PARAMETERS = {
    "parameterization": text("W", _parameterization_named, "what is trained"),
    "start": word(
        _PARAMETERS,
        (_PARAMETERS, _MATRIX),
        "what is random: the parameters, or W, of which keys and queries are balanced factors",
    ),
    "initial_scale": Parameter(
        1.0,
        lambda name, it: check_number(name, it, least=0.0, example=1.0),
        "factor on what is random, which is uniform on [-1/sqrt(d), 1/sqrt(d)]",
    ),
    "gauge": Parameter(
        0,
        check_seed,
        "number of the orthogonal matrix that keys and queries are turned by at the start, not 0",
    ),
}
"""What is trained, and from where."""


def layer_of(given: Mapping[str, Any]) -> Parameterization:
    """What is trained at a point.

    Raises:
        InvalidInputError: If it has no factors, but a gauge.
    """
    from attractor.attention import Joint, KeyQuery

    layer = _parameterization_named(given["parameterization"])
    if not given["gauge"]:
        return layer
    turned = KeyQuery(gauge=given["gauge"])
    if layer not in (turned, Joint(turned)):
        raise InvalidInputError(
            "gauge", f"{layer.name} has no factors to turn", "Give 0, or train KQ"
        )
    return Joint(turned) if isinstance(layer, Joint) else turned


def check_trainable(
    parameters: Mapping[str, Parameter],
    axes: Mapping[str, Sequence[Any]],
    settings: Mapping[str, Any],
) -> None:
    """Checks that what is drawn at every point can be trained, and training can leave its start.

    Raises:
        InvalidInputError: If it cannot, as from keys and queries that are zero.
    """
    from attractor.training.inputs import check_inputs

    for point in combinations(axes, ("data", *SIZES, "parameterization", "gauge", "loss")):
        given = filled_in(parameters, point, settings)
        layer_of(given)
        tokens, head = draw_tokens(given, np.arange(1))
        check_inputs(tokens, head, given["loss"], given["parameterization"], None, 1, 0)
    if 0 in (*axes.get("initial_scale", ()), settings.get("initial_scale", 1.0)):
        for point in combinations(axes, ("parameterization",)):
            layer = layer_of(filled_in(parameters, point, settings))
            layer.check_initial({name: np.zeros((1, 1)) for name in layer.shapes(1, 1)})


def start(
    given: Mapping[str, Any],
    tokens: Tokens,
    instances: Int[np.ndarray, "instances"],
    seeds: range,
) -> dict[str, Any]:
    """What is trained and from where, as ``train`` takes it: a scale, or arrays of every trial.

    Args:
        given: The value of every parameter.
        tokens: The data sets.
        instances: Their numbers.
        seeds: Seeds of what is random.
    """
    if given["start"] == _PARAMETERS:
        return {"parameterization": layer_of(given), "initial": given["initial_scale"]}
    from attractor.attention import AttentionMatrix, MultiHead
    from attractor.training.programs.trials import initial_parameters

    layer = layer_of(given)
    shape = (len(instances), len(seeds))
    numbers = np.broadcast_to(np.asarray(instances)[:, None], shape).ravel()
    repeats = np.broadcast_to(np.array(seeds), shape).ravel()
    prepared = layer.prepare(tokens)
    sizes = (prepared.key_dimension, prepared.query_dimension)
    heads = layer.attention_heads
    drawn = AttentionMatrix() if heads is None else MultiHead("W", heads)
    W = drawn.to_arrays(initial_parameters(drawn, repeats, numbers, *sizes))["W"]
    scaled = layer.from_matrix(np.asarray(W) * given["initial_scale"])
    arrays = layer.to_arrays(layer.in_gauge(scaled))
    return {
        "parameterization": given["parameterization"],
        "initial": {name: one.reshape(*shape, *one.shape[1:]) for name, one in arrays.items()},
    }
