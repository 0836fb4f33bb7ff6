"""One start for all optimizers, from which they keep the same tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.attention import Head, Parameterization
from attractor.errors import InvalidInputError
from attractor.geometry import Frobenius
from attractor.margin import MarginProblem, Solution, solve
from attractor.selection import optimal_tokens
from attractor.tokens import Tokens

MARGIN = 5.0
"""Smallest margin of the optimal tokens at the start: their softmax weight is near one."""


def matched_start(tokens: Tokens, head: Head) -> Float[np.ndarray, "instance d e"]:
    """``W_0 = 5 W*``, with ``W*`` the Frobenius solution that selects the optimal tokens.

    The optimal tokens win every row by 5 at least, and no other selection has a smaller loss.

    Args:
        tokens: Data sets, with an axis of instances.
        head: The head.

    Raises:
        InvalidInputError: If in some data set no matrix selects the optimal tokens.
    """
    problem = MarginProblem.from_selection(tokens, optimal_tokens(tokens, head), ties="equal")
    solution = solve(problem, Frobenius())
    assert isinstance(solution, Solution)
    impossible = ~np.isfinite(solution.W).all((-1, -2))
    if impossible.any():
        raise InvalidInputError(
            "matched",
            f"no matrix selects the optimal tokens of data set "
            f"{tokens.instance_numbers[impossible][0]}",
            "Start from random weights instead, or leave such data sets out",
        )
    return MARGIN * solution.W


def initial_arrays(W: Float[np.ndarray, "instance d e"], layer: Parameterization) -> dict[str, Any]:
    """The arrays of a parameterization that stand for given matrices."""
    arrays = layer.to_arrays(layer.from_matrix(W))
    return {name: np.asarray(array) for name, array in arrays.items()}
