"""Heads on tokens of Gaussian mixtures, and on points of two classes with labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from attractor.papers import Assumption, Check, once
from attractor.papers.data import line
from attractor.prompts import AttentionHead, HeadCase
from attractor.prompts.measures import Empirical, Gaussian, Mixture

_ROUNDING = 1e-9


class Clusters(NamedTuple):
    """The components of a mixture of Gaussian laws.

    Attributes:
        weights: Probabilities of the components.
        means: Their means.
        covariances: Their covariances.
    """

    weights: Float[np.ndarray, "component"]
    means: Float[np.ndarray, "component d"]
    covariances: Float[np.ndarray, "component d d"]


@once
def clusters(case: HeadCase) -> Clusters:
    """The components of the law of the tokens, where it is a Gaussian mixture."""
    law = case.tokens
    assert isinstance(law, Mixture)
    weights = np.asarray(law.weights, dtype=np.float64)
    return Clusters(
        weights / weights.sum(),
        np.stack([np.asarray(one.mean, dtype=np.float64) for one in law.components]),
        np.stack([np.asarray(one.covariance, dtype=np.float64) for one in law.components]),
    )


def mixture(weights: ArrayLike, means: ArrayLike, covariances: Sequence[ArrayLike]) -> Mixture:
    """A Gaussian mixture."""
    parts = zip(np.asarray(means, dtype=float), covariances, strict=True)
    return Mixture(weights, [Gaussian(mean, covariance) for mean, covariance in parts])


@cache
def random_mixture(seed: int, dimension: int = 2, components: int = 3) -> HeadCase:
    """A random head on a random Gaussian mixture, whose components have their own covariances."""
    draws = np.random.default_rng([seed, 17, dimension, components])
    means = draws.standard_normal((components, dimension))
    factors = draws.standard_normal((components, dimension, dimension)) / np.sqrt(dimension)
    U, V = draws.standard_normal((2, dimension, dimension)) / np.sqrt(2 * dimension)
    law = mixture(
        draws.uniform(0.5, 1.5, components), means, [factor @ factor.T for factor in factors]
    )
    about = f"random mixture of {components} in R^{dimension}, seed {seed}"
    return HeadCase(AttentionHead(U, V), law, Gaussian.isotropic(dimension), about=about)


@cache
def two_classes(
    positive: tuple[float, ...] = (1.0, 0.0),
    negative: tuple[float, ...] = (0.0, 1.0),
    probability: float = 0.6,
    *,
    wide: bool = False,
) -> HeadCase:
    """Points of two classes with their labels, ``(X, Y)``; queries are points, ``(x, 0)``.

    Args:
        positive: Mean of the points with the label 1.
        negative: Mean of the points with the label -1.
        probability: Of the label 1.
        wide: Whether covariances are that of neighboring coordinates, not the identity.
    """
    d = len(positive)
    between = 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    covariance = np.zeros((d + 1, d + 1))
    covariance[:d, :d] = between if wide else np.eye(d)
    weights = np.array([probability, 1 - probability])
    points = np.array([positive, negative])
    tokens = mixture(weights, np.column_stack([points, [1.0, -1.0]]), [covariance] * 2)
    queries = mixture(weights, np.column_stack([points, [0.0, 0.0]]), [covariance] * 2)
    head = AttentionHead(np.eye(d + 1), np.eye(d + 1)[-1:])
    words = "correlated" if wide else "independent"
    about = f"classes at {positive} and {negative}, {words} coordinates, P(Y = 1) = {probability:g}"
    return HeadCase(head, tokens, queries, about=about)


@cache
def noisy_points(
    first: tuple[float, ...] = (3.0, 0.0),
    second: tuple[float, ...] = (0.0, 3.0),
    spread: float = 1.0,
    noise: float = 2.0,
    probability: float = 0.5,
) -> HeadCase:
    """Points of two clusters, ``N(m_k, spread^2 I)``, seen with noise ``N(0, noise^2 I)``.

    The head is the one that, added to a multiple of its query, returns the mean of the point given
    what is seen: scores over the variance of what is seen, and values times the share of the noise
    in it.

    Args:
        first: Mean of the first cluster.
        second: Mean of the second cluster.
        spread: Standard deviation of points around the mean of their cluster.
        noise: Standard deviation of the noise.
        probability: Of the first cluster.
    """
    d, total = len(first), spread**2 + noise**2
    seen = mixture([probability, 1 - probability], [first, second], [total * np.eye(d)] * 2)
    head = AttentionHead(np.eye(d) / total, noise**2 / total * np.eye(d))
    about = f"clusters of deviation {spread:g} at {first} and {second}, noise of {noise:g}"
    return HeadCase(head, seen, seen, about=about)


def _mixture(case: HeadCase) -> Check:
    law = case.tokens
    if not isinstance(law, Mixture) or not all(isinstance(one, Gaussian) for one in law.components):
        if isinstance(law, Empirical):
            return Check(False, f"{law.points.shape[-2]:,} samples")
        return Check(False, f"their law is {type(law).__name__}")
    return Check(True, f"{len(law.components)} components")


MIXTURE_TOKENS = Assumption[HeadCase](
    "Gaussian mixture",
    "The tokens are a mixture of Gaussian laws that are given.",
    _mixture,
    lambda: line(1.0),
)
FEW_DIMENSIONS = Assumption[HeadCase](
    "three dimensions at most",
    "Tokens have three entries at most, so that all of their space can be integrated over.",
    lambda case: Check(case.tokens.dimension <= 3, f"tokens have {case.tokens.dimension} entries"),
    lambda: noisy_points((3.0, 0.0, 0.0, 0.0), (0.0, 3.0, 0.0, 0.0)),
)


def _labeled(case: HeadCase) -> Check:
    found = clusters(case)
    labels, covariance = found.means[:, -1], found.covariances[0]
    scale = _ROUNDING * np.abs(covariance).max()
    if len(labels) != 2 or not np.array_equal(np.sort(labels), [-1.0, 1.0]):
        return Check(False, "the means do not have labels 1 and -1 as their last entries")
    if np.abs(covariance[-1]).max() > scale or len(covariance) < 2:
        return Check(False, "the last entry of a token is no label")
    if np.abs(found.covariances[1] - covariance).max() > scale:
        return Check(False, "the classes have different covariances")
    if np.linalg.eigvalsh(covariance[:-1, :-1])[0] <= scale:
        return Check(False, "the covariance of the points is singular")
    return Check(True, "two classes of one covariance")


LABELED = Assumption[HeadCase](
    "labeled classes",
    "A token is a point with its label 1 or -1, and the points of both classes have one regular "
    "covariance.",
    _labeled,
    lambda: random_mixture(0),
)


CLASSES = (MIXTURE_TOKENS, LABELED)
"""The hypotheses on tokens that are points with labels."""
