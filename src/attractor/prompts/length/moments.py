"""The Gaussian law with the mean and covariance of another."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.empirical import Empirical
from attractor.prompts.measures.gaussian import Gaussian
from attractor.support.errors import InvalidInputError


def gaussian_of(argument: str, law: Measure) -> Gaussian:
    """Returns the Gaussian law of the same mean and covariance.

    Raises:
        InvalidInputError: If samples are prompts side by side.
    """
    if isinstance(law, Gaussian):
        return law
    points = sampled_points(argument, law)
    if points is not None:
        return moments_of(points)
    return Gaussian(np.asarray(law.mean), np.asarray(law.covariance))


def moments_of(points: Float[np.ndarray, "n d"]) -> Gaussian:
    """Returns the Gaussian law with the mean and covariance of points of equal weight."""
    mean = points.mean(0)
    centered = points - mean
    return Gaussian(mean, centered.T @ centered / len(points))


def sampled_points(argument: str, law: Measure) -> Float[np.ndarray, "n d"] | None:
    """The points of a sample from a law that is not known: those of ``Empirical`` without weights.

    With weights the points are all that there is, a law like any other: None.

    Raises:
        InvalidInputError: If samples are prompts side by side.
    """
    if not isinstance(law, Empirical):
        return None
    if law.points.ndim != 2:
        raise InvalidInputError(
            argument,
            "they are prompts side by side, not one sample",
            "Give Empirical(points) with points (n, d)",
        )
    return np.asarray(law.points) if law.weights is None else None
