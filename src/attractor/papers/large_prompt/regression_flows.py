"""Gradient flows of a case, on finite prompts and on infinite ones, followed once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.files.regression import RegressionCase
from attractor.papers.claim import Measurement
from attractor.papers.once import once_a_case
from attractor.prompt.regression._infinite_flow import BlockFlow, infinite_flow
from attractor.prompt.regression.blocks import Blocks
from attractor.prompt.regression.isotropic_flow import IsotropicFlow, isotropic_finite_flow

_LONGEST = 1e9
_RECORDS = 60


def clock(case: RegressionCase) -> Float[np.ndarray, "time"]:
    """The times at which flows of a case are recorded, up to its time or to convergence."""
    if math.isfinite(case.time):
        return np.linspace(0, case.time, _RECORDS)
    return np.concatenate([[0], np.geomspace(0.05, _LONGEST, _RECORDS)])


@once_a_case
def finite_flow(case: RegressionCase, length: int) -> IsotropicFlow:
    """The flow on finite prompts of independent inputs, from a balanced start."""
    d, noise = case.task.dimension, case.task.label_noise
    return isotropic_finite_flow(
        d, length, case.initial_scale, clock(case), label_noise=noise, tolerance=1e-9
    )


@once_a_case
def limit_flow(case: RegressionCase) -> BlockFlow:
    """The flow on infinite prompts."""
    return infinite_flow(case.task, case.start, clock(case))


def balanced_head(product: Float[np.ndarray, "d d"]) -> Blocks:
    """The head with ``b A = product`` and ``||A|| = b``, and nothing else."""
    b = math.sqrt(float(np.linalg.norm(product)))
    zeros = np.zeros(len(product))
    return Blocks(product / b, zeros, zeros, np.array(b))


def off_balanced(
    trained: Blocks, product: Float[np.ndarray, "d d"], details: Mapping[str, Any]
) -> Measurement:
    """Relative distance of a trained head from the balanced one with ``b A = product``.

    Args:
        trained: The trained head.
        product: The product.
        details: What to tell beside it.
    """
    limit = balanced_head(product)
    pairs = zip(trained, limit, strict=True)
    square = sum(float(np.sum((found - wanted) ** 2)) for found, wanted in pairs)
    b = float(limit.value_label)
    told = {"b": float(trained.value_label), "b of the limit": b}
    told["balance"] = float(trained.balance)
    return Measurement(math.sqrt(square / 2) / b, details=told | dict(details))


def gaps(
    case: RegressionCase, lengths: tuple[int, ...], path: Float[np.ndarray, "2 time"]
) -> Float[np.ndarray, "length time"]:
    """Distances of the flow on prompts of some lengths from a path.

    Args:
        case: The data, of independent inputs.
        lengths: Numbers of tokens.
        path: ``||A||`` and ``b`` at the times of ``clock``; ``A`` is a multiple of the identity.
    """
    flows = (finite_flow(case, length).parameters for length in lengths)
    return np.array([np.hypot(flow.norm - path[0], flow.value - path[1]) for flow in flows])
