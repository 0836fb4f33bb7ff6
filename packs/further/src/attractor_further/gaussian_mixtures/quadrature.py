"""Gaussian mixtures as points with weights, with no closed form."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.papers import once
from attractor.papers.measures import Points, gaussian_points
from attractor.prompts import HeadCase
from attractor_further.gaussian_mixtures.mixture_data import clusters


def union(weights: Float[np.ndarray, "part"], parts: list[Points]) -> Points:
    """The points of a mixture."""
    shifted = [
        part.log_weights + np.log(weight) for weight, part in zip(weights, parts, strict=True)
    ]
    return Points(np.concatenate([part.points for part in parts]), np.concatenate(shifted))


@once
def cluster_points(case: HeadCase, nodes: int) -> Points:
    """The law of the tokens of a case, a Gaussian mixture, as points with weights.

    Args:
        case: The data.
        nodes: Number of nodes along every axis of a component.
    """
    weights, means, covariances = clusters(case)
    parts = [
        gaussian_points(mean, covariance, nodes)
        for mean, covariance in zip(means, covariances, strict=True)
    ]
    return union(weights, parts)
