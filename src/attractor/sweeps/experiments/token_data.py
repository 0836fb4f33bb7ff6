"""Data sets of experiments: random tokens, a data set for each instance number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from attractor.errors import InvalidInputError
from attractor.sweeps.experiments.parameters import Parameter, count, word
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


def token_parameters(n: int, T: int, d: int) -> dict[str, Parameter]:
    """What data sets an experiment can be told, with the sizes that hold otherwise."""
    return {
        "data": word("unit_tokens", tuple(GENERATORS), "how data sets are drawn"),
        "n": count(n, "sequences of a data set"),
        "T": count(T, "tokens of a sequence", least=2),
        "d": count(d, "dimension of tokens and queries"),
    }


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
    return GENERATORS[given["data"]](given["n"], given["T"], given["d"], np.asarray(instances))
