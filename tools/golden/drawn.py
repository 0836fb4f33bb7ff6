"""Small data that several parts use, drawn by NumPy alone."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


def unit(seed: int, *shape: int) -> np.ndarray:
    """Random vectors of length one."""
    array = np.random.default_rng(seed).normal(size=shape)
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


@functools.cache
def head_on_tokens(instances: int = 0) -> tuple[Any, Any]:
    """Four sequences of five unit tokens in R^6 and a linear head; or a batch of such data."""
    import attractor as at

    batch = (instances,) if instances else ()
    labels = np.broadcast_to([1.0, -1.0, 1.0, -1.0], (*batch, 4))
    tokens = at.Tokens(keys=unit(1, *batch, 4, 5, 6), queries=unit(2, *batch, 4, 6), labels=labels)
    return tokens, at.LinearHead(unit(3, *batch, 6))


@functools.cache
def selected() -> tuple[Any, Any, Any, Any]:
    """The same, with the optimal tokens and the solution for them."""
    import attractor as at

    tokens, head = head_on_tokens()
    selection = at.optimal_tokens(tokens, head)
    return tokens, head, selection, at.solve(at.MarginProblem.from_selection(tokens, selection))
