"""The distance of one head, and of linear attention, from the posterior mean of a point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import scipy.optimize
from jaxtyping import Float
from scipy.special import softmax

from attractor.papers import Assumption, Claim, Comparison, Measurement, once
from attractor.papers.measures import Points
from attractor.prompts import HeadCase
from attractor_further.gaussian_mixtures.claims import CLAIMS
from attractor_further.gaussian_mixtures.denoising import attention, posterior_mean
from attractor_further.gaussian_mixtures.denoising_data import (
    CLUSTERS_APART,
    DENOISING,
    DIFFERENT_VARIANCES,
    TWO_DIMENSIONS,
    noisy_points,
    variances,
)
from attractor_further.gaussian_mixtures.mixture_data import FEW_DIMENSIONS, clusters
from attractor_further.gaussian_mixtures.quadrature import cluster_points
from attractor_further.shapes import Outputs, Queries

_STARTS = 4
_NODES = {1: 24, 2: 24, 3: 10}
"""Nodes along an axis, by the dimension."""
_Named = TypeVar("_Named")


def _moved_by_gate(case: HeadCase) -> float:
    """The square of how far the gate between the clusters moves ``E[X | Z]`` from the middle."""
    spread, noise = variances(case)
    first, second = clusters(case).means
    return float((noise / (spread + noise)) ** 2 * np.sum((first - second) ** 2) / 4)


def _seen(case: HeadCase) -> Points:
    return cluster_points(case, _NODES[case.V.shape[1]])


@once
def _wanted(case: HeadCase) -> Outputs:
    return posterior_mean(case, _seen(case).points)


def _least_missed(case: HeadCase, features: Float[np.ndarray, "point feature"]) -> float:
    """Mean squared distance from ``E[X | Z]`` of the nearest linear function of features."""
    scale = np.exp(_seen(case).log_weights / 2)[:, None]
    features, wanted = scale * features, scale * _wanted(case)
    fitted = features @ np.linalg.lstsq(features, wanted)[0]
    return float(((fitted - wanted) ** 2).sum() / _moved_by_gate(case))


def _missed_by_heads(case: HeadCase, seed: int, count: int) -> Measurement:
    """The least that so many heads miss, over score matrices found by descent, with best values."""
    weights, means, covariances = clusters(case)
    seen = _seen(case).points
    unit = np.abs(case.U).max() or 1.0  # of what descent moves, whose steps are absolute

    def output(U: Float[np.ndarray, "d d"]) -> Outputs:
        a = seen @ U.T
        gates = softmax(np.log(weights) + a @ means.T, axis=-1)
        return gates @ means + a @ covariances[0]

    def missed(flat: Float[np.ndarray, "entry"]) -> float:
        outputs = [output(unit * U) for U in flat.reshape(count, *case.U.shape)]
        return _least_missed(case, np.concatenate(outputs, axis=-1))

    draws = np.random.default_rng([seed, 31]).standard_normal((_STARTS, count, *case.U.shape))
    draws[0, 0] = case.U / unit
    found = [
        scipy.optimize.minimize(missed, start.ravel(), method="BFGS", options={"maxiter": 60}).fun
        for start in draws
    ]
    return Measurement(float(min(found)), len(found), {"found": found})


def _missed_from_features(
    case: HeadCase, seed: int, features: Callable[[HeadCase, Queries], Outputs]
) -> Measurement:
    """The least that linear functions of features of what is seen miss."""
    return Measurement(_least_missed(case, features(case, _seen(case).points)))


def _with_output(case: HeadCase, seen: Queries) -> Outputs:
    """What is seen, and the output of the head for it."""
    return np.concatenate([seen, attention(case, case.head, seen)], axis=-1)


def _misses(
    name: str,
    statement: str,
    summary: str,
    what: str,
    missed: Callable[[HeadCase, int, _Named], Measurement],
    right: _Named,
    wrong: tuple[str, _Named],
    further: Sequence[Assumption],
    note: str,
    exchange: str,
) -> Claim:
    return CLAIMS.claim(
        name,
        summary,
        statement=statement,
        assuming=(*DENOISING, FEW_DIMENSIONS, *further),
        contrast=Comparison(
            f"mean squared distance of {what} from E[X | Z], over the square of what the gate "
            "moves it",
            missed,
            lambda case, seed: right,
            f"the same for {wrong[0]}",
            lambda case, seed: wrong[1],
            bound=1e-4,
            reason="far above rounding; clusters that are barely apart leave 1e-3",
            sense=">=",
        ),
        data=lambda seed: [
            noisy_points(),
            noisy_points(spread=1.5, noise=1.0, probability=0.3),
            noisy_points((1.0, 2.0), (-2.0, 1.0), spread=0.5, noise=1.5),
        ],
        note=note,
        exchange=exchange,
    )


ONE_HEAD_GAP = _misses(
    "one-head-gap",
    "one head does not realize the posterior mean where noise and spread differ",
    "one head alone misses E[X | Z] where the noise is not as large as the spread of points",
    "the best head",
    _missed_by_heads,
    1,
    ("the best two heads, of the same search", 2),
    (CLUSTERS_APART, DIFFERENT_VARIANCES, TWO_DIMENSIONS),
    "the best head is the best that descent finds; its values are best for its scores",
    exchange="no heads at all miss what one head misses",
)
LINEAR_ATTENTION_GAP = _misses(
    "linear-attention-gap",
    "linear attention does not realize the posterior mean",
    "linear attention, whose gates are fixed, misses E[X | Z] whatever its matrices are",
    "the best linear map",
    _missed_from_features,
    lambda case, seen: seen,
    ("the best linear map of what is seen and of the output of the head", _with_output),
    (CLUSTERS_APART,),
    "over infinitely many tokens linear attention is a linear map of its query",
    exchange="linear maps of nearly anything miss it",
)
