"""The Gaussian law with the mean and covariance of another."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attractor.errors import InvalidInputError
from attractor.prompt.measures.contract import Measure
from attractor.prompt.measures.empirical import Empirical
from attractor.prompt.measures.gaussian import Gaussian


def gaussian_of(argument: str, law: Measure) -> Gaussian:
    """Returns the Gaussian law of the same mean and covariance.

    Raises:
        InvalidInputError: If samples have weights, or are prompts side by side.
    """
    if isinstance(law, Gaussian):
        return law
    if isinstance(law, Empirical):
        return moments_of(sample_points(argument, law))
    return Gaussian(np.asarray(law.mean), np.asarray(law.covariance))


def moments_of(points: Float[np.ndarray, "n d"]) -> Gaussian:
    """Returns the Gaussian law with the mean and covariance of points of equal weight."""
    mean = points.mean(0)
    centered = points - mean
    return Gaussian(mean, centered.T @ centered / len(points))


def sample_points(argument: str, samples: Empirical) -> Float[np.ndarray, "n d"]:
    """The points of one sample of equal weights.

    Raises:
        InvalidInputError: If there are weights, or prompts side by side.
    """
    if samples.weights is not None or samples.points.ndim != 2:
        raise InvalidInputError(
            argument,
            "they have weights or are prompts side by side, not one sample",
            "Give Empirical(points) with points (n, d)",
        )
    return np.asarray(samples.points)
