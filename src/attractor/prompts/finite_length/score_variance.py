"""The law of the score variance over Gaussian queries, as a quadrature that is nearly exact.

The score variance of a query is a quadratic form ``v = sum_i lambda_i g_i^2`` of independent
standard normal ``g_i``. Its Laplace transform ``E exp(-p v)`` is a product, and so are those of
``v`` weighted by ``g_i^2``; they are inverted along a contour around their branch points, which all
lie on the negative real axis.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float

_PANEL, _PANEL_LENGTH = 20, 2.5
"""Nodes of a panel, and its length in scales on which the density varies."""
_TURN, _LARGEST_TOKEN = 1.6, 16.0
"""Deviations below which functions vary as they do, and where they vary most for their size."""
_TRIED = 400
"""Points among which panels end."""
_NARROW, _LEAST = 0.05, 1.0  # of the narrowest variance, or this: the least ``v`` among them
_ANGLES, _DOUBLINGS = 20, 5
_LEAST_EXPONENT = 8.0  # of the contour at its rightmost, enough for its nodes to resolve it
_MASS_OFF = 1e-10
_NEGLIGIBLE = 1e-12  # of the largest score variance along an axis
_SMALLEST = 1e-14  # score variances below it are zero to every function of them


class ScoreVariance(NamedTuple):
    """The law of ``v = s^2 = sum_i lambda_i g_i^2``, for means of functions of ``s`` with powers.

    With ``r_i = 1 / (1 + 2 p lambda_i)``, and sums over nodes and the points of their contours,
    ``E f(s) = Re sum w f(s)``, ``E g_i^2 f = Re sum w f r_i``, ``E g_i^2 g_j^2 f = (1 + 2 [i = j])
    Re sum w f r_i r_j``, and a derivative ``df/dv`` in place of ``f`` is a factor ``-p`` where
    ``g`` appears. All are derivatives of the first in the ``lambda_i``, of the sum as of the mean.

    Attributes:
        deviations: ``s``, increasing.
        weights: ``w``.
        transform: ``p``.
        factors: ``r_i``.
    """

    deviations: Float[np.ndarray, "node"]
    weights: Complex[np.ndarray, "node point"]
    transform: Complex[np.ndarray, "node point"]
    factors: Complex[np.ndarray, "d node point"]

    @classmethod
    def of(cls, variances: Float[np.ndarray, "d"], rarest: float) -> ScoreVariance:
        """Chooses nodes that serve functions which are smooth in ``s`` and bounded.

        Args:
            variances: ``lambda_i``, not negative.
            rarest: Mass that may be left out at either end.
        """
        rates = np.where(variances > _NEGLIGIBLE * variances.max(), variances, 0.0)
        widest = np.argmax(rates)
        rates[widest] = max(rates[widest], _SMALLEST)
        seen = rates[rates > 0]
        s, masses, saddle = _nodes(seen, rarest)
        count = _ANGLES + math.isqrt(len(seen))
        found = _inverted(rates, s, masses, saddle, count)
        # One wide axis beside many narrow ones delays the contour's decay.
        for doubling in range(1, _DOUBLINGS):
            if abs(np.real(found.weights).sum() - 1) <= _MASS_OFF:
                break
            found = _inverted(rates, s, masses, saddle, count * 2**doubling)
        return found

    @property
    def masses(self) -> Float[np.ndarray, "node"]:
        """``w`` of each node: ``E f(s)`` is the sum of these times ``f``."""
        return np.real(self.weights).sum(-1)

    def masses_along(self, gains: Float[np.ndarray, "d"]) -> Float[np.ndarray, "node"]:
        """Those of ``E sum_i gains_i g_i^2 f(s)``."""
        return np.real(np.tensordot(gains, self.factors, 1) * self.weights).sum(-1)


def _inverted(
    rates: Float[np.ndarray, "d"],
    s: Float[np.ndarray, "node"],
    masses: Float[np.ndarray, "node"],
    saddle: Float[np.ndarray, "node"],
    count: int,
) -> ScoreVariance:
    """Inverts the transform at every node, along a contour of its own with so many points.

    The contour ``p = -1 / (2 max lambda) + w (x cot x + i x)`` is the steepest descent from the
    saddle where the ``lambda_i`` are equal; ``w`` is that of the saddle, or larger where points
    would not resolve it.
    """
    v, widest = s[:, None] ** 2, rates.max()
    size = np.maximum(saddle[:, None], _LEAST_EXPONENT / v)
    angle = (np.arange(count) + 0.5) * np.pi / count
    shifted = size * (angle / np.tan(angle) + 1j * angle)
    speed = size * (1 / np.tan(angle) - angle / np.sin(angle) ** 2 + 1j)
    transform = shifted - 1 / (2 * widest)
    bases = 2 * np.multiply.outer(rates, shifted) + (1 - rates / widest)[:, None, None]
    log_size, phase = _root_of_product(bases[rates > 0])
    mass = speed / count * (2 * s * masses)[:, None]
    weights = -1j * mass * np.exp(v * transform - log_size) / phase
    return ScoreVariance(s, weights, transform, 1 / bases)


def _nodes(rates: Float[np.ndarray, "d"], rarest: float) -> tuple[Float[np.ndarray, "node"], ...]:
    """Gauss-Legendre nodes and masses in ``s``, and the saddles of ``exp(p v) E exp(-p v)``.

    By the saddle point ``p(v)`` the density varies on the scale ``sqrt(-dv/dp)``: panels are so
    many of these, and end where next to no mass is left.
    """
    widest, narrowest = float(rates.max()), float(rates.min())
    # s concentrates like a normal number of deviation sqrt(max lambda) below sqrt(sum lambda).
    high = 2 * (float(rates.sum()) - 2 * widest * math.log(rarest))
    # With w = p + 1 / (2 max lambda), from the largest v to the least.
    least = min(_NARROW * narrowest, _LEAST)
    start, stop = -math.log(2 * high), math.log(len(rates) / (2 * least))
    w = np.exp(np.linspace(start, stop, _TRIED))
    bases = 2 * rates[:, None] * w + (1 - rates / widest)[:, None]
    terms = rates[:, None] / bases
    v, variance = terms.sum(axis=0), 2 * (terms**2).sum(axis=0)
    log_density = v * (w - 1 / (2 * widest)) - np.log(bases).sum(axis=0) / 2
    # In s, whose density is regular at zero, scales above s itself resolve it. Averages over
    # prompts vary on the scale of one up to the largest token, and beyond on that of s.
    s = np.sqrt(v)
    turns = np.maximum(1.0, np.minimum(s / _TURN, _LARGEST_TOKEN**2 / (_TURN * s)))
    steps = np.maximum(np.sqrt(variance) * w, turns * np.gradient(-np.log(v), np.log(w)))
    lengths = np.concatenate([[0], np.cumsum((steps[1:] + steps[:-1]) / 2)])
    lengths *= (stop - start) / (_TRIED - 1)
    kept = np.flatnonzero(log_density > math.log(rarest))
    first, last = lengths[kept[0]], lengths[kept[-1]]
    places = np.linspace(first, last, max(2, math.ceil((last - first) / _PANEL_LENGTH) + 1))
    edges = np.sqrt(np.interp(places, lengths, v))[::-1]
    if kept[-1] == _TRIED - 1:
        edges = np.concatenate([[0.0], edges])
    x, masses = _panel()
    half = np.diff(edges)[:, None] / 2
    s = (edges[:-1, None] + half * (x + 1)).ravel()
    saddle = np.exp(np.interp(-np.log(s**2), -np.log(v), np.log(w)))
    return s, (half * masses).ravel(), saddle


@functools.cache
def _panel() -> tuple[Float[np.ndarray, "node"], Float[np.ndarray, "node"]]:
    """Gauss-Legendre nodes and masses of one panel on [-1, 1]."""
    return np.polynomial.legendre.leggauss(_PANEL)


def _root_of_product(
    bases: Complex[np.ndarray, "d node point"],
) -> tuple[Float[np.ndarray, "node point"], Complex[np.ndarray, "node point"]]:
    """The square root of the product of numbers in the upper half plane, whose own roots multiply.

    Returns:
        The logarithm of its size, and its phase.
    """
    if len(bases) % 2:
        bases = np.concatenate([bases, np.ones_like(bases[:1])])
    # The argument of a product of two is below 2 pi: this is the root whose argument is half of it.
    roots = 1j * np.sqrt(-bases[::2] * bases[1::2])
    sizes = np.abs(roots)
    return np.log(sizes).sum(axis=0), (roots / sizes).prod(axis=0)
