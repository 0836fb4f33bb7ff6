"""Gradient flows of a case, on finite prompts and on infinite ones, followed once."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from attractor.files.regression import RegressionCase
from attractor.prompt.regression._infinite_flow import BlockFlow, infinite_flow
from attractor.prompt.regression.isotropic_flow import IsotropicFlow, isotropic_finite_flow

_LONGEST = 1e9
_RECORDS = 60


def clock(case: RegressionCase) -> Float[np.ndarray, "time"]:
    """The times at which flows of a case are recorded, up to its time or so late that all rest."""
    if math.isfinite(case.time):
        return np.linspace(0, case.time, _RECORDS)
    return np.concatenate([[0], np.geomspace(0.05, _LONGEST, _RECORDS)])


def finite_flow(case: RegressionCase, length: int) -> IsotropicFlow:
    """The flow on finite prompts of independent inputs, from a balanced start."""
    task = case.task
    return case.once(
        ("finite flow", length),
        lambda: isotropic_finite_flow(
            task.dimension,
            length,
            case.initial_scale,
            clock(case),
            label_noise=task.label_noise,
            tolerance=1e-9,
        ),
    )


def limit_flow(case: RegressionCase) -> BlockFlow:
    """The flow on infinite prompts."""
    return case.once("infinite flow", lambda: infinite_flow(case.task, case.start, clock(case)))


def gaps(case: RegressionCase) -> Float[np.ndarray, "length time"]:
    """Distances ``||(A, b) - (A, b)_inf||`` of the flow on finite prompts from that on infinite."""
    limit = limit_flow(case).blocks
    diagonal = limit.key_query[:, 0, 0]  # of a multiple of the identity, as the finite flow's
    found = []
    for length in case.lengths:
        flow = finite_flow(case, length)
        squares = case.task.dimension * (flow.a - diagonal) ** 2
        found.append(np.sqrt(squares + (flow.b - limit.value_label) ** 2))
    return np.array(found)
