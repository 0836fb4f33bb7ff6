"""Points of two clusters that are seen with noise, and hypotheses on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from attractor.papers import Assumption, Check
from attractor.prompts import AttentionHead, HeadCase
from attractor_further.gaussian_mixtures.mixture_data import (
    MIXTURE_TOKENS,
    clusters,
    noisy_points,
    random_mixture,
)

_ROUNDING = 1e-12
"""Of matrices and norms beside their own size: outputs are off by at most some hundreds of it."""


def _clustered(case: HeadCase) -> Check:
    found = clusters(case)
    d = found.means.shape[1]
    total = float(found.covariances[0][0, 0])
    off = float(np.abs(found.covariances - total * np.eye(d)).max())
    if len(found.means) != 2 or off > _ROUNDING * total:
        return Check(False, "the tokens are not of two clusters of one variance in all directions")
    return Check(total > 0, f"two clusters of variance {total:.4g}")


TWO_CLUSTERS = Assumption[HeadCase](
    "two clusters",
    "What is seen is of two clusters, with one variance in all directions.",
    _clustered,
    lambda: random_mixture(0),
)


def _equal_norms(case: HeadCase) -> Check:
    norms = np.linalg.norm(clusters(case).means, axis=-1)
    words = " and ".join(f"{norm:.4g}" for norm in norms)
    return Check(float(np.ptp(norms)) <= _ROUNDING * norms.max(), f"norms {words}")


EQUAL_NORMS = Assumption[HeadCase](
    "means of equal norm",
    "The means of the clusters have one norm.",
    _equal_norms,
    lambda: noisy_points((3.0, 0.0), (0.0, 1.0)),
)


class Variances(NamedTuple):
    """Variances of what is seen.

    Attributes:
        spread: ``gamma^2``, of points around the mean of their cluster.
        noise: ``xi^2``, of the noise.
    """

    spread: float
    noise: float


def variances(case: HeadCase) -> Variances:
    """The variances of points and noise, as the head encodes them."""
    total = float(clusters(case).covariances[0][0, 0])
    noise = total * float(case.V[0, 0])
    return Variances(max(total - noise, 0.0), noise)


def _denoising(case: HeadCase) -> Check:
    d = case.V.shape[1]
    if case.V.shape != (d, d) or case.U.shape != (d, d):
        return Check(False, "the matrices are not square")
    total = float(clusters(case).covariances[0][0, 0])
    share = float(case.V[0, 0])
    if not 0 < share <= 1 + _ROUNDING:
        return Check(False, f"the share of the noise is {share:.4g}")
    off = max(  # of each matrix beside its own size, whatever the unit of the tokens
        float(np.abs(case.U * total - np.eye(d)).max()),
        float(np.abs(case.V / share - np.eye(d)).max()),
    )
    return Check(off <= _ROUNDING, f"off by {off:.2g} of it, share of the noise {share:.4g}")


DENOISING_HEAD = Assumption[HeadCase](
    "denoising head",
    "Scores are over the variance of what is seen, and values are times the share of the noise.",
    _denoising,
    lambda: noisy_points().replace(head=AttentionHead(np.eye(2), np.eye(2))),
)

DENOISING = (MIXTURE_TOKENS, TWO_CLUSTERS, EQUAL_NORMS, DENOISING_HEAD)
"""The hypotheses on a head that denoises."""


TWO_DIMENSIONS = Assumption[HeadCase](
    "two dimensions",
    "Points have two entries at least.",
    lambda case: Check(case.V.shape[1] >= 2, f"points have {case.V.shape[1]} entries"),
    lambda: noisy_points((2.0,), (-2.0,)),
)


def _equal(case: HeadCase) -> Check:
    spread, noise = variances(case)
    met = abs(spread - noise) <= _ROUNDING * noise
    return Check(met, f"variances {spread:.4g} of points and {noise:.4g} of the noise")


EQUAL_VARIANCES = Assumption[HeadCase](
    "noise like the spread",
    "The noise has the variance that points have around the mean of their cluster.",
    _equal,
    noisy_points,
)


def _different(case: HeadCase) -> Check:
    spread, noise = variances(case)
    return Check(
        max(spread, noise) >= 1.5 * min(spread, noise),
        f"variances {spread:.4g} of points and {noise:.4g} of the noise",
    )


DIFFERENT_VARIANCES = Assumption[HeadCase](
    "noise unlike the spread",
    "Of the variances of the noise and of points around their mean one is 1.5 times the other.",
    _different,
    lambda: noisy_points(spread=2.0),
)


def _apart(case: HeadCase) -> Check:
    return Check(separation(case) >= 0.5, f"half the distance is {separation(case):.4g} of it")


CLUSTERS_APART = Assumption[HeadCase](
    "clusters apart",
    "Half the distance of the means is at least half the deviation of what is seen.",
    _apart,
    lambda: noisy_points((1.0, 0.5), (1.0, -0.5)),
)


def separation(case: HeadCase) -> float:
    """``|m_1 - m_2| / 2`` over the standard deviation of what is seen of a cluster."""
    means, covariances = clusters(case)[1:]
    return float(np.linalg.norm(means[0] - means[1]) / 2 / np.sqrt(covariances[0][0, 0]))
