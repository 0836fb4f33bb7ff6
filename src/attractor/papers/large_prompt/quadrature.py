"""Attention over Gaussian tokens by quadrature over all of their space, with no closed form."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attractor.prompts.files.head import root


class Points(NamedTuple):
    """Quadrature points of a law, with the logarithms of their weights."""

    points: Float[np.ndarray, "point d"]
    log_weights: Float[np.ndarray, "point"]


def gaussian_points(
    mean: Float[np.ndarray, "d"], covariance: Float[np.ndarray, "d d"], nodes: int
) -> Points:
    """The tensor Gauss-Hermite rule of a Gaussian law along its axes.

    With two nodes it is the law of random signs with the same mean and covariance.

    Args:
        mean: The mean.
        covariance: The covariance; along axes of variance zero there is one node.
        nodes: Number of nodes along every other axis.
    """
    factor = root(covariance)
    standard = standard_points(factor.shape[1], nodes)
    return Points(mean + standard.points @ factor.T, standard.log_weights)


@cache
def standard_points(dimension: int, nodes: int) -> Points:
    """The tensor Gauss-Hermite rule of the standard normal law."""
    nodes_of_axis, weights = np.polynomial.hermite_e.hermegauss(nodes)
    logs = np.log(weights / weights.sum())
    grid = np.meshgrid(*[nodes_of_axis] * dimension, indexing="ij")
    points = np.stack(grid, axis=-1).reshape(-1, dimension) if grid else np.zeros((1, 0))
    log_weights = np.zeros(1)
    for _ in range(dimension):
        log_weights = (log_weights[:, None] + logs).ravel()
    return Points(points, log_weights)


def attended_means(
    law: Points, directions: Float[np.ndarray, "query d"]
) -> Float[np.ndarray, "query d"]:
    """The mean of a law reweighted by ``exp(a^T x)``, for each direction ``a``."""
    found = np.empty((len(directions), law.points.shape[1]))
    for place, direction in enumerate(directions):  # one at a time: points may be many
        scores = law.points @ direction + law.log_weights
        weights = np.exp(scores - scores.max())
        found[place] = weights @ law.points / weights.sum()
    return found
