"""One row of the matrix: training from the common tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from attractor.analysis.bias.matched_start import initial_arrays
from attractor.analysis.bias.methods import Method
from attractor.attention import Head
from attractor.errors import InvalidInputError
from attractor.tokens import Tokens
from attractor.training import Optimizer, Trajectory, train

RECORDS = 40


def recorded_steps(steps: int) -> Int[np.ndarray, "record"]:
    """Steps to record: evenly spread over the logarithm of the step, with half the steps among."""
    spread = np.rint(np.geomspace(1, steps, RECORDS)).astype(np.int64)
    return np.unique(np.append(spread, [halfway(steps), steps]))


def halfway(steps: int) -> int:
    """Half the number of steps."""
    return max(steps // 2, 1)


def check_methods(methods: Sequence[Method], tokens: Tokens) -> None:
    """Checks, before anything is trained, that all methods can be.

    Raises:
        InvalidInputError: If there is none, two share a name, or one trains something else.
    """
    if not methods:
        raise InvalidInputError("methods", "there are none", "Give one or more")
    names = [method.name for method in methods]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(
                "methods", f"{names.count(name)} are called {name!r}", "Give each its own name"
            )
    for method in methods:
        if method.layer.prepare(tokens) is not tokens:
            raise InvalidInputError(
                "parameterization",
                f"{method.layer.name!r} turns the tokens into others, and with them the margin "
                "problem",
                "Give 'W' or 'KQ'",
            )


def run_method(
    method: Method,
    tokens: Tokens,
    head: Head,
    *,
    steps: int,
    seed: int,
    loss: str,
    start: Float[np.ndarray, "instance d e"] | None,
    progress: bool,
) -> Trajectory:
    """Trains every data set once, from random weights or from the matrices given."""
    steps = method.steps or steps
    layer = method.layer
    common = {
        "steps": steps,
        "seed": seed,
        "loss": loss,
        "initial": None if start is None else initial_arrays(start, layer),
        "parameterization": layer,
        "record": recorded_steps(steps),
        "progress": progress,
    }
    if isinstance(method.optimizer, Optimizer):
        return train(tokens, head, method.optimizer, weights="all", **common)
    from attractor.torch import train_with_torch

    return train_with_torch(tokens, head, method.optimizer, **common)
