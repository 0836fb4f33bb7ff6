"""Sub-Gaussian parameters of laws of tokens: upper bounds with a proof, lower ones by a witness."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from attractor.support.randomness import generator

if TYPE_CHECKING:
    from attractor.prompts.measures.contract import Measure

_DIRECTIONS = 64
_RATIO = 1.005
"""Of neighboring slopes on a line, so that a bound between two of them is 1 % off at most."""
_SLOPES_AT_ONCE = 256


class SubGaussianParameter(NamedTuple):
    """What is known of the least ``sigma`` with ``E exp(a^T (X - E X)) <= exp(sigma^2 |a|^2 / 2)``.

    The two are equal where the least ``sigma`` is known.

    Attributes:
        lower: No smaller number will do: some ``a`` needs it.
        upper: This one does for every ``a``, by proof; infinite where none is known.
    """

    lower: float
    upper: float


def witnessed_proxy(law: Measure) -> float:
    """The largest ``2 log E exp(a^T (X - E X)) / |a|^2`` found, a lower bound on ``sigma^2``.

    Small ``a`` give the largest variance; others are tried along principal axes, coordinates and
    random directions.
    """
    covariance = np.asarray(law.covariance)
    values, axes = np.linalg.eigh(covariance)
    largest = float(values[-1])
    if not 0 < largest < math.inf:
        return largest
    d = law.dimension
    random = generator(0, purpose="directions of exponential moments")
    tried = np.concatenate([axes.T, np.eye(d), random.normal(size=(_DIRECTIONS, d))])
    tried = np.concatenate([tried, -tried])
    tried /= np.linalg.norm(tried, axis=-1, keepdims=True)
    slopes = np.geomspace(0.05, 20, 24) / math.sqrt(largest)
    tilts = slopes[:, None, None] * tried
    tilts = tilts[np.asarray(law.exists(tilts))]
    if not len(tilts):
        return largest
    logs = np.asarray(law.log_normalizer(tilts)) - tilts @ np.asarray(law.mean)
    return max(largest, float((2 * logs / (tilts**2).sum(-1)).max()))


def bounded_proxy(
    points: Float[np.ndarray, "point d"], weights: Float[np.ndarray, "point"], mean: np.ndarray
) -> float:
    """A variance proxy of finitely many values, with a proof.

    By Hoeffding's lemma the square of half the width in a direction, which is at most the radius of
    any ball around all values; on a line within 1 % of the least.
    """
    if points.shape[1] == 1:
        on_line = points[:, 0] - float(mean[0])
        hoeffding = float(np.ptp(on_line)) ** 2 / 4
        return min(hoeffding, _proxy_on_line(on_line, weights / weights.sum()))
    center = (points.max(0) + points.min(0)) / 2
    for step in range(1, 200):  # toward the smallest such ball; every center gives a proof
        off = points - center
        center = center + off[(off**2).sum(-1).argmax()] / (step + 1)
    radii = [((points - one) ** 2).sum(-1).max() for one in (center, mean)]
    return float(min(radii))


def _proxy_on_line(
    points: Float[np.ndarray, "point"], weights: Float[np.ndarray, "point"]
) -> float:
    """``sup 2 log E exp(a X) / a^2`` of centered values, from above.

    ``log E exp(a X)`` is convex, zero with its slope at zero, and so grows to both sides: between
    two neighbors it is at most the value at the outer one. Near zero the variance grows by a factor
    ``exp(|a| width)`` at most; far out the logarithm is at most ``|a|`` times the largest value.
    """
    width = float(np.ptp(points))
    if width == 0:
        return 0.0
    variance = float(weights @ points**2)
    nearest, farthest = 1e-3 / width, 2e3 / width
    slopes = np.geomspace(nearest, farthest, math.ceil(math.log(2e6) / math.log(_RATIO)))
    bounds = [variance * math.exp(nearest * width), 2 * float(np.abs(points).max()) / farthest]
    for sign in (1.0, -1.0):
        logs = np.concatenate([
            np.asarray(logsumexp(sign * np.multiply.outer(part, points), axis=-1, b=weights))
            for part in np.array_split(slopes, math.ceil(len(slopes) / _SLOPES_AT_ONCE))
        ])  # fmt: skip
        bounds.append(float((2 * logs[1:] / slopes[:-1] ** 2).max()))
    return max(bounds)


def of_independent_parts(moments: Iterable[Float[np.ndarray, "5"]]) -> Float[np.ndarray, "5"]:
    """``E |x|^(2 j)`` for ``j`` up to 4 from those of independent parts of ``x``."""
    total = np.eye(1, 5)[0]
    for own in moments:
        total = np.array([
            sum(math.comb(j, i) * total[i] * own[j - i] for i in range(j + 1)) for j in range(5)
        ])  # fmt: skip
    return total


def of_sum(*moments: Float[np.ndarray, "5"]) -> Float[np.ndarray, "5"]:
    """Bounds on ``E |x|^(2 j)`` for a sum of tokens, by Minkowski's inequality."""
    powers = 2.0 * np.arange(1, 5)
    roots = sum(own[1:] ** (1 / powers) for own in moments)
    return np.concatenate([[1.0], roots**powers])
