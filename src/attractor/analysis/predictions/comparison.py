"""The outcome of comparing each trial with its solution."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attractor.analysis.losses.finite_minimum import Minima
from attractor.analysis.outcomes import (
    AT_REST,
    BESIDE,
    COMPARED,
    INFEASIBLE,
    NOT_FOUND,
    UNDEFINED,
    UNPREDICTED,
    ZERO,
)
from attractor.analysis.predictions.prediction import NONE
from attractor.analysis.predictions.reference import Reference
from attractor.support.errors import InvalidInputError, TrialStatus

if TYPE_CHECKING:
    from attractor.training import Trajectory


def check_some_finite(W: Float[np.ndarray, "instance seed d e"], trajectory: Trajectory) -> None:
    """Checks that there is something to verify.

    Raises:
        InvalidInputError: If no matrix is finite.
    """
    if np.isfinite(W).all((-1, -2)).any():
        return
    ended = Counter(str(TrialStatus(status)) for status in trajectory.data["status"].values.flat)
    raise InvalidInputError(
        "trajectory",
        f"at the last {trajectory.axis} no trial has a matrix of finite numbers (the trials ended "
        f"{', '.join(f'{name}: {count}' for name, count in ended.items())})",
        "Give a run with weights; look at its loss and learning rate first",
    )


def comparison(
    W: Float[np.ndarray, "instance seed d e"],
    reference: Reference,
    curves: dict[str, np.ndarray],
    minima: Minima,
) -> np.ndarray:
    """The outcome of comparing each trial with its reference, in words."""
    last = reference.number[:, :, -1]
    kinds = np.array(reference.kind)[last]
    ratio = curves["margin_ratio"][:, :, -1]
    return np.select(
        [
            ~np.isfinite(W).all((-1, -2)),
            minima.at_rest,
            minima.found,
            kinds == NONE,
            reference.infeasible[last],
            ~reference.feasible[last],
            ~(W != 0).any((-1, -2)),
            np.isfinite(ratio),
        ],
        [UNDEFINED, AT_REST, BESIDE, UNPREDICTED, INFEASIBLE, NOT_FOUND, ZERO, COMPARED],
        UNPREDICTED,
    )
