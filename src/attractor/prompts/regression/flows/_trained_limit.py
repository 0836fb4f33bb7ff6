"""The limit of gradient flow: the trained head, and the initial scales of the literature."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.optimize
from jaxtyping import ArrayLike, Float

from attractor.prompts.regression.blocks import Blocks
from attractor.prompts.regression.risks.infinite_prompts import leading_order, limit_horizon
from attractor.prompts.regression.risks.linear_attention import (
    check_length,
    linear_attention_optimum,
)
from attractor.prompts.regression.task import RegressionTask
from attractor.support.checks import check_kinds, check_number
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64

_NODES, _STEP = 64, 1e-5


class TrainedLimit(NamedTuple):
    """The limit of gradient flow on one head with ``c = v = 0``.

    Attributes:
        blocks: The trained head, ``A`` and ``b``.
        risk: Its risk on prompts of the length trained on.
        horizon: Its horizon ``||S^{1/2} A S_q^{1/2}||``.
    """

    blocks: Blocks
    risk: float
    horizon: float


def trained_limit(
    task: RegressionTask, length: float = math.inf, *, imbalance: float = 0.0
) -> TrainedLimit:
    """Limit of gradient flow on the exact risk, from heads with ``c = v = 0``.

    The risk is least where ``b A = G^{-1}``, with ``G = S`` on prompts of infinite length and
    ``G = (1 + 1/L) S + (tr S + n/t)/L I`` for linear attention on finite ones. The flow keeps
    ``||A||_F^2 - b^2``, so that a balanced start ends at ``b = tr(G^{-2})^{1/4}``,
    ``A = G^{-1} / b``. Softmax attention on finite prompts keeps no such balance and ends
    elsewhere, however long they are: see ``finite_prompt_limit``.

    Args:
        task: The law of prompts and queries.
        length: Infinite, or the length of the prompts of linear attention.
        imbalance: ``||A||_F^2 - b^2`` at the start.

    Returns:
        The limit with ``b > 0``.

    Raises:
        InvalidInputError: If the length is not positive, or the imbalance not finite.

    Source:
        Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt Regime"
        (arXiv 2512.11784), training in in-context linear regression; for linear attention Zhang,
        Frei, Bartlett, "Trained Transformers Learn Linear Models In-Context" (JMLR 25, 2024).
    """
    check_kinds(task=(task, RegressionTask))
    imbalance = check_number("imbalance", imbalance, least=-LARGEST, most=LARGEST)
    product, risk = linear_attention_optimum(task, length)
    square = float(np.sum(product**2))
    # ||product||^2 / b^2 - b^2 = imbalance, solved for b^2 without cancellation.
    root = math.hypot(imbalance, 2 * math.sqrt(square))
    value = 2 * square / (root + imbalance) if imbalance > 0 else (root - imbalance) / 2
    b = math.sqrt(value)
    zeros = np.zeros(task.dimension)
    blocks = Blocks(product / b, zeros, zeros, np.array(b))
    return TrainedLimit(blocks, risk, float(limit_horizon(task, blocks)))


def finite_prompt_limit(task: RegressionTask) -> float:
    """The limit of ``b`` of softmax attention as training time, then prompt length, go to infinity.

    For prompts of infinite length every head with ``b A = S^{-1}`` has the least risk, and the flow
    ends at the balanced one. On finite prompts the risk differs along this curve by one over the
    length, and the flow continues, slowly, to where that is least: the two limits do not commute.
    ``b^2`` minimizes the coefficient of ``leading_order`` along the curve, and exceeds twice the
    largest eigenvalue of ``S^{-1} S_q``. With queries distributed as inputs and no noise it
    minimizes ``(t - 1) (1 - 2/t)^{-k}``, ``k = d/2 + 1``: ``b^2 = 1 + k + sqrt(1 + k^2)``.

    Args:
        task: The law of prompts and queries.

    Returns:
        ``b``, positive.
    """
    check_kinds(task=(task, RegressionTask))
    inverse = np.linalg.inv(np.linalg.cholesky(task.covariance))
    s, variance = task.covariance, task.weight_variance
    ratios, vectors = np.linalg.eigh(inverse @ task.query_covariance @ inverse.T)
    ratios = np.clip(ratios, 0, None)
    # Queries in coordinates in which those of ratio r have variance r / (1 - 2 r / t) after the
    # tilt; the output's part along the score adds their variance in the original metric.
    turned = np.linalg.cholesky(s) @ vectors
    spread = ratios * np.sum(turned**2, axis=0)
    label_variance = variance * np.trace(s) + task.label_noise

    def slope(excess: float) -> float:
        """Slope of the coefficient in ``b^2 = 2 max(ratios) + excess``, up to a positive factor."""
        gaps = excess + 2 * (ratios.max() - ratios)
        pull = (ratios / gaps).sum()
        along = (spread / gaps).sum() * pull + 2 * (spread * ratios / gaps**2).sum()
        return label_variance * (1 - pull) - variance * along

    largest = float(ratios.max())
    low, high = largest, largest
    while slope(low) > 0:
        low /= 2
    while slope(high) < 0:
        high *= 2
    root = scipy.optimize.root_scalar(slope, bracket=(low, high), xtol=1e-15 * largest).root
    return math.sqrt(2 * largest + root)


def drift_time(task: RegressionTask, first: float, last: float) -> float:
    """Time that gradient flow on long prompts takes from one value ``b`` to another, over length.

    Heads with ``b A = S^{-1}`` predict exactly from infinite prompts. On prompts of length ``L``
    their risk is ``C(b) / L`` to leading order, and the flow moves along this curve, whose velocity
    in ``b`` has the square ``1 + ||S^{-1}||_F^2 / b^4``: ``L b' = -C'(b) / (1 + ||S^{-1}||_F^2 /
    b^4)``. So it takes times of the order of the length, and ``finite_prompt_limit`` is reached
    only in the limit of time. Where ``C`` is infinite, as ``b^2`` is less
    than twice the largest eigenvalue of ``S^{-1} S_q``, the risk falls with less than a power one
    of the length; the drift is faster there and counts as instant.

    Args:
        task: The law of prompts and queries.
        first: ``b`` where it begins.
        last: ``b`` where it ends, between ``first`` and ``finite_prompt_limit``.

    Returns:
        The time divided by the length.

    Raises:
        InvalidInputError: If a value is not positive, or ``last`` does not lie between.
    """
    check_kinds(task=(task, RegressionTask))
    first = check_number("first", first, above=0.0, most=LARGEST, example=1.5)
    last = check_number("last", last, above=0.0, most=LARGEST, example=2.0)
    end = finite_prompt_limit(task)
    if not 0 <= (last - first) / (end - first) < 1:
        raise InvalidInputError(
            "last",
            f"it is {last:.6g}, and the flow goes from {first:.6g} to {end:.6g}",
            "Give a value that it passes",
        )
    inverse = np.linalg.inv(task.covariance)
    square, zeros = float(np.sum(inverse**2)), np.zeros(task.dimension)

    def coefficient(b: float) -> float:
        return leading_order(task, Blocks(inverse / b, zeros, zeros, np.array(b))).coefficient

    def pace(b: float) -> float:
        slope = (coefficient(b * (1 + _STEP)) - coefficient(b * (1 - _STEP))) / (2 * _STEP * b)
        return (1 + square / b**4) / abs(slope) if math.isfinite(slope) else 0.0

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    values = (first + last) / 2 + (last - first) / 2 * nodes
    return abs(last - first) / 2 * float(weights @ [pace(b) for b in values])


class InitialScaleBounds(NamedTuple):
    """Scales of a balanced start below which two papers prove that training succeeds.

    Attributes:
        large_prompt: ``sqrt(2) / (d^{1/4} ||S||)``, of the large-prompt paper.
        linear_attention: ``sqrt(2) / (d^{1/4} ||G||^{1/2})`` with ``G = (1 + 1/L) S + tr(S)/L I``,
            of the paper on linear attention.
    """

    large_prompt: float
    linear_attention: float


def initial_scale_bounds(
    covariance: Float[ArrayLike, "d d"], length: float = math.inf
) -> InitialScaleBounds:
    """Bounds on the scale of a balanced start under which convergence is proved.

    The norms are spectral. The two bounds differ by the power of the norm, and neither implies the
    other; on infinite prompts the flow converges from every positive scale.

    Args:
        covariance: Covariance ``S`` of the inputs.
        length: Of the prompts of linear attention.

    Source:
        Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt Regime"
        (arXiv 2512.11784); Zhang, Frei, Bartlett, "Trained Transformers Learn Linear Models
        In-Context" (JMLR 25, 2024): their assumptions on the initialization.
    """
    s = as_float64("covariance", covariance, largest=LARGEST)
    if s.ndim != 2 or s.shape[0] != s.shape[1] or not s.any():
        raise InvalidInputError(
            "covariance", f"its shape is {s.shape}", "Give a square matrix that is not zero"
        )
    check_length(length)
    norm = float(np.linalg.norm(s, ord=2))
    finite = (1 + 1 / length) * norm + float(np.trace(s)) / length
    scale = math.sqrt(2) / len(s) ** 0.25
    return InitialScaleBounds(scale / norm, scale / math.sqrt(finite))
