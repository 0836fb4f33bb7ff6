"""Data sets of experiments: random tokens, a data set for each instance number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from attractor.maps.sweeps.experiments.parameters import (
    Parameter,
    combinations,
    count,
    filled_in,
    number,
    word,
)
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens

if TYPE_CHECKING:
    from attractor.attention import LinearHead


def _unit_tokens(
    n: int, T: int, d: int, instances: Int[np.ndarray, "instances"]
) -> tuple[Tokens, LinearHead]:
    from attractor.datasets import unit_tokens

    return unit_tokens(n, T, d, seeds=instances.tolist())


def _first_token_queries(
    n: int, T: int, d: int, instances: Int[np.ndarray, "instances"]
) -> tuple[Tokens, LinearHead]:
    tokens, head = _unit_tokens(n, T, d, instances)
    queries = tokens.keys[..., 0, :]
    return Tokens(tokens.keys, queries, tokens.labels, instance_numbers=instances), head


GENERATORS: Mapping[str, Callable[..., tuple[Tokens, LinearHead]]] = {
    "unit_tokens": _unit_tokens,
    "first_token_queries": _first_token_queries,
}
"""How data sets are drawn, by name.

``unit_tokens`` draws tokens, queries, labels and a head as ``attractor.datasets.unit_tokens`` does;
``first_token_queries`` has the same, with the first token of each sequence as its query.
"""


SCALED = {"n_per_d": "n", "T_per_d": "T"}
"""Sizes in units of others, and the size that each takes the place of."""
SIZES = ("n", "T", "d", *SCALED)
"""Parameters that say how large data sets are."""


def token_parameters(n: int, T: int, d: int) -> dict[str, Parameter]:
    """What data sets an experiment can be told, with the sizes that hold otherwise."""
    return {
        "data": word("unit_tokens", tuple(GENERATORS), "how data sets are drawn"),
        "n": count(n, "sequences of a data set"),
        "T": count(T, "tokens of a sequence", least=2),
        "d": count(d, "dimension of tokens and queries"),
        "n_per_d": number(None, "sequences for each dimension, in place of n", above=0),
        "T_per_d": number(None, "tokens for each dimension, in place of T", above=0),
    }


def token_sizes(given: Mapping[str, Any]) -> tuple[int, int, int]:
    """Sequences, tokens and dimension of data sets.

    Args:
        given: The value of every parameter.

    Raises:
        InvalidInputError: If a multiple of d is no whole number of sequences, or of tokens.
    """
    n, T, d = given["n"], given["T"], given["d"]
    if given["T_per_d"] is not None:
        T = _multiple("T_per_d", given["T_per_d"], d, least=2)
    if given["n_per_d"] is not None:
        n = _multiple("n_per_d", given["n_per_d"], d, least=1)
    return n, T, d


def _multiple(name: str, ratio: float, d: int, *, least: int) -> int:
    exact = ratio * d
    size = round(exact)
    if size < least or abs(exact - size) > 1e-9 * size:
        raise InvalidInputError(
            name,
            f"{ratio:g} times d = {d} is {exact:g}",
            f"Give ratios that make whole numbers, at least {least}, with every d",
        )
    return size


def check_sizes(
    parameters: Mapping[str, Parameter],
    axes: Mapping[str, Sequence[Any]],
    settings: Mapping[str, Any],
) -> None:
    """Checks that every size is said in one way, and is a size at every point.

    Raises:
        InvalidInputError: With the name of an axis or a setting.
    """
    told = {*axes, *settings}
    for name, size in SCALED.items():
        if {name, size} <= told:
            raise InvalidInputError(name, f"it stands beside {size}", "Give one of them")
    for point in combinations(axes, SIZES):
        token_sizes(filled_in(parameters, point, settings))


def draw_tokens(
    given: Mapping[str, Any], instances: Int[np.ndarray, "instances"]
) -> tuple[Tokens, LinearHead]:
    """The data sets of some instance numbers, and their heads.

    Args:
        given: The value of every parameter.
        instances: Numbers of the data sets.

    Raises:
        InvalidInputError: If a number is none that names a data set.
    """
    if len(instances) and int(np.max(instances)) >= 2**32:
        raise InvalidInputError(
            "first_instance", f"instance {int(np.max(instances))} is named", "Stay below 2^32"
        )
    return GENERATORS[given["data"]](*token_sizes(given), np.asarray(instances))
