"""Where training goes: cosines between what is reached and what is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.papers.case import Case
from attractor.training import Optimizer, Trajectory, get_optimizer, train

NORMALIZED = "normalized gradient descent:learning_rate=0.1"


def trained(
    case: Case,
    seed: int,
    *,
    steps: int,
    optimizer: str | Optimizer = NORMALIZED,
    seeds: int = 1,
    initial: Any = None,
    **other: Any,
) -> Trajectory:
    """Trains on a case; what the case itself says of start, optimizer and length goes first.

    Args:
        case: The data.
        seed: The first seed.
        steps: How long, unless the case says.
        optimizer: By which steps, unless the case says.
        seeds: How many starts, unless the case has one of its own.
        initial: Where from, unless the case says.
        **other: Other arguments of ``train``.
    """
    start = initial if case.initial is None else case.initial
    chosen = optimizer if case.optimizer is None else case.optimizer
    steps = steps if case.steps is None else case.steps
    run = {"steps": steps, "seeds": 1 if start is not None and initial is None else seeds}

    def compute() -> Trajectory:
        return train(
            case.tokens,
            case.head,
            get_optimizer(chosen) if isinstance(chosen, str) else chosen,
            parameterization=case.parameterization,
            initial=start,
            seed=seed,
            **run,
            **other,
        )

    name = chosen if isinstance(chosen, str) else (chosen.name, str(chosen.settings))
    from_where = None if start is None else str(start)
    return case.once(("trained", name, seed, from_where, str(run), str(sorted(other))), compute)


def cosines(
    matrices: Float[np.ndarray, "*batch d e"], direction: Float[np.ndarray, "d e"]
) -> Float[np.ndarray, "*batch"]:
    """Cosines of the angles between matrices and a direction; NaN for a matrix of zeros."""
    products = (matrices * direction).sum((-1, -2))
    lengths = np.linalg.norm(matrices, axis=(-1, -2)) * np.linalg.norm(direction)
    with np.errstate(invalid="ignore", divide="ignore"):
        return products / lengths
