"""The distance of one head, and of linear attention, from the posterior mean of a point."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.optimize
from jaxtyping import Float
from scipy.special import softmax

from attractor.files.head import HeadCase
from attractor.papers.assumption import Assumption
from attractor.papers.claim import Claim, Contrast, Measurement
from attractor.papers.large_prompt.claims import MIXTURE_CLAIMS
from attractor.papers.large_prompt.denoising import (
    Denoiser,
    both_heads,
    posterior_mean,
    residual,
)
from attractor.papers.large_prompt.denoising_data import (
    CLUSTERS_APART,
    DENOISING,
    DIFFERENT_VARIANCES,
    TWO_DIMENSIONS,
    noisy_points,
    variances,
)
from attractor.papers.large_prompt.mixture_data import FEW_DIMENSIONS, clusters
from attractor.papers.large_prompt.quadrature import Points, cluster_points

_QUERIES = 64
_STARTS = 2
_NODES = {1: 24, 2: 24, 3: 10}
"""Nodes along an axis, by the dimension."""


def _moved_by_gate(case: HeadCase) -> float:
    """The square of how far the gate between the clusters moves ``E[X | Z]`` from the middle."""
    spread, noise = variances(case)
    first, second = clusters(case).means
    return float((noise / (spread + noise)) ** 2 * np.sum((first - second) ** 2) / 4)


def _seen(case: HeadCase) -> Points:
    return cluster_points(case, _NODES[case.V.shape[1]])


def _least_missed(case: HeadCase, features: Float[np.ndarray, "point feature"]) -> float:
    """Mean squared distance from ``E[X | Z]`` of the nearest linear function of features."""
    seen, logs = _seen(case)
    scale = np.exp(logs / 2)[:, None]
    features, wanted = scale * features, scale * posterior_mean(case, seen)
    fitted = features @ np.linalg.lstsq(features, wanted)[0]
    return float(((fitted - wanted) ** 2).sum() / _moved_by_gate(case))


def _missed_by_one_head(case: HeadCase, seed: int) -> Measurement:
    """The least that one head misses, over score matrices found by descent, with best values."""
    weights, means, covariances = clusters(case)
    seen = _seen(case).points

    def missed(flat: Float[np.ndarray, "entry"]) -> float:
        a = seen @ flat.reshape(case.U.shape).T
        gates = softmax(np.log(weights) + a @ means.T, axis=-1)
        return _least_missed(case, gates @ means + a @ covariances[0])

    draws = np.random.default_rng([seed, 31]).standard_normal((_STARTS, case.U.size))
    starts = [case.U.ravel(), *(draws * np.abs(case.U).max())]
    found = [
        scipy.optimize.minimize(missed, start, method="BFGS", options={"maxiter": 60}).fun
        for start in starts
    ]
    return Measurement(float(min(found)), len(starts), {"found": found})


def _missed_by(denoiser: Denoiser) -> Callable[[HeadCase, int], Measurement]:
    def measure(case: HeadCase, seed: int) -> Measurement:
        seen = case.queries.sample(_QUERIES, seed=seed)
        difference = denoiser(case, seen) - posterior_mean(case, seen)
        error = (difference**2).sum(-1).mean() / _moved_by_gate(case)
        return Measurement(float(error), len(seen))

    return measure


def _misses(
    name: str,
    statement: str,
    summary: str,
    what: str,
    missed: Callable[[HeadCase, int], Measurement],
    right: tuple[str, Denoiser],
    further: Sequence[Assumption],
    note: str,
) -> Claim:
    return MIXTURE_CLAIMS.claim(
        name,
        summary,
        statement=statement,
        assuming=(*DENOISING, FEW_DIMENSIONS, *further),
        contrast=Contrast(
            f"mean squared distance of {what} from E[X | Z], over the square of what the gate "
            "moves it",
            missed,
            f"the same for {right[0]}",
            _missed_by(right[1]),
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
    )


ONE_HEAD_GAP = _misses(
    "one-head-gap",
    "one head does not realize the posterior mean where noise and spread differ",
    "one head alone misses E[X | Z] where the noise is not as large as the spread of points",
    "the best head",
    _missed_by_one_head,
    ("two heads", both_heads),
    (CLUSTERS_APART, DIFFERENT_VARIANCES, TWO_DIMENSIONS),
    "the best head is the best that descent finds; its values are best for its scores",
)
LINEAR_ATTENTION_GAP = _misses(
    "linear-attention-gap",
    "linear attention does not realize the posterior mean",
    "linear attention, whose gates are fixed, misses E[X | Z] whatever its matrices are",
    "the best linear map",
    lambda case, seed: Measurement(_least_missed(case, _seen(case).points)),
    ("the head with its residual connection", residual),
    (CLUSTERS_APART,),
    "over infinitely many tokens linear attention is a linear map of its query",
)
