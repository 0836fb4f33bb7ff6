"""Gradient flows of a case, on finite prompts and on infinite ones, followed once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.papers.claim import Measurement
from attractor.papers.large_prompt.regression_hypotheses import INDEPENDENT
from attractor.papers.once import once_a_case
from attractor.prompts.files.regression import RegressionCase
from attractor.prompts.regression import BlockFlow, infinite_flow
from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.flows import block_flows
from attractor.prompts.regression.flows.isotropic_flow import isotropic_finite_flow

_LONGEST = 1e9
"""In units of the time in which the slowest direction of the trained head moves, if that is longer
than one."""
_RECORDS = 60
_TOLERANCE, _FINE_TOLERANCE = 1e-9, 1e-11
"""Of flows that end at rest, and of those that are compared on their way."""


def time_to_rest(case: RegressionCase, moment: Float[np.ndarray, "d d"] | None = None) -> float:
    """A time after which a flow on prompts of infinite length, or of linear attention, rests.

    Args:
        case: The data.
        moment: The matrix ``G`` with ``b A = G^-1`` in the limit; the covariance if None.
    """
    task = case.task
    inputs, queries = map(np.linalg.eigvalsh, (task.covariance, task.query_covariance))
    moments = inputs if moment is None else np.linalg.eigvalsh(moment)
    least = queries[queries > queries[-1] * len(queries) * np.finfo(np.float64).eps][0]
    value = float(np.linalg.norm(1 / moments))  # b^2 of the balanced trained head
    slowest = value * inputs[0] * moments[0] * least * task.weight_variance
    return _LONGEST / min(1.0, slowest)


def clock(case: RegressionCase) -> Float[np.ndarray, "time"]:
    """The times at which flows of a case are recorded, up to its time or to convergence."""
    if math.isfinite(case.time):
        return np.linspace(0, case.time, _RECORDS)
    return np.concatenate([[0], np.geomspace(0.05, time_to_rest(case), _RECORDS)])


@once_a_case
def finite_flow(case: RegressionCase, length: int) -> BlockFlow:
    """The flow on finite prompts."""
    if not INDEPENDENT.check(case).met or case.value != case.initial_scale:
        tolerance = _TOLERANCE if math.isinf(case.time) else _FINE_TOLERANCE
        return block_flows.finite_flow(
            case.task, length, case.start, clock(case), tolerance=tolerance
        )
    # A and b are two numbers, which are followed many times as fast.
    d, noise = case.task.dimension, case.task.label_noise
    found = vars(
        isotropic_finite_flow(
            d, length, case.initial_scale, clock(case), label_noise=noise, tolerance=_TOLERANCE
        )
    )
    norm, value = found["parameters"]
    zeros = np.zeros((len(value), d))
    blocks = Blocks(norm[:, None, None] / math.sqrt(d) * np.eye(d), zeros, zeros, value)
    kept = {name: found[name] for name in ("times", "risk", "_compiled", "_path")}
    return BlockFlow(parameters=blocks, **kept)


@once_a_case
def fixed_value_flow(case: RegressionCase, length: int) -> BlockFlow:
    """The flow of ``A`` alone on finite prompts, with ``b`` fixed at its start."""
    return block_flows.finite_flow(
        case.task, length, case.start, clock(case), value="fixed", tolerance=_TOLERANCE
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


def path_of(flow: BlockFlow) -> Float[np.ndarray, "time parameter"]:
    """The entries of ``A``, and ``b``, along a flow of one head."""
    a, b = flow.blocks.key_query, flow.blocks.value_label
    return np.concatenate([a.reshape(len(b), -1), b[:, None]], axis=1)


def gaps(
    case: RegressionCase, lengths: tuple[int, ...], path: Float[np.ndarray, "time parameter"]
) -> Float[np.ndarray, "length time"]:
    """Distances of the flow on prompts of some lengths from a path.

    Args:
        case: The data.
        lengths: Numbers of tokens.
        path: ``A`` and ``b`` at the times of ``clock``, as of ``path_of``.
    """
    flows = (path_of(finite_flow(case, length)) for length in lengths)
    return np.array([np.linalg.norm(flow - path, axis=1) for flow in flows])
