"""Moments of a token beside its score, as analytic functions: what errors of finite prompts need.

For a direction ``a``, a matrix ``P`` and a center ``c``, with ``f = P (x - c)``, these are

    E[exp(q u)],    E[f exp(q u)],    E[f^T f exp(q u)],        u = a^T (x - c),

at complex ``q``, wherever they exist for its real part: the law's own moment generating function
with two derivatives, continued from the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float


class ScoreLine(NamedTuple):
    """What is asked of a law.

    Attributes:
        direction: ``a``, of the scores ``u``.
        projection: ``P``.
        center: ``c``.
    """

    direction: Float[np.ndarray, "d"]
    projection: Float[np.ndarray, "p d"]
    center: Float[np.ndarray, "d"]


class Generated(NamedTuple):
    """The three moments at places ``q``, the slope its real part, the frequency its imaginary one.

    Each is over ``exp(log_scale)``, so that nothing overflows.

    Attributes:
        log_scale: A logarithm of the size at a slope.
        value: ``E exp(q u)``.
        vector: ``E[f exp(q u)]``.
        square: ``E[f^T f exp(q u)]``.
    """

    log_scale: Float[np.ndarray, "slope"]
    value: Complex[np.ndarray, "slope frequency"]
    vector: Complex[np.ndarray, "p slope frequency"]
    square: Complex[np.ndarray, "slope frequency"]

    def plus_independent(self, other: Generated) -> Generated:
        """The moments of a sum of independent tokens: ``u`` and ``f`` add up."""
        crossed = (self.vector * other.vector).sum(0)
        return Generated(
            self.log_scale + other.log_scale,
            self.value * other.value,
            self.vector * other.value + self.value * other.vector,
            self.square * other.value + 2 * crossed + self.value * other.square,
        )

    def moved(
        self, q: Complex[np.ndarray, "slope frequency"], score: float, shift: Float[np.ndarray, "p"]
    ) -> Generated:
        """The moments of tokens moved so that ``u`` grows by a number and ``f`` by a vector."""
        turn = np.exp(1j * np.imag(q) * score)
        along = np.tensordot(shift, self.vector, 1)
        return Generated(
            self.log_scale + np.real(q)[:, 0] * score,
            turn * self.value,
            turn * (self.vector + shift[:, None, None] * self.value),
            turn * (self.square + 2 * along + (shift @ shift) * self.value),
        )


def mixed(weights: Float[np.ndarray, "part"], parts: Sequence[Generated]) -> Generated:
    """The moments of a mixture, with weights of sum one."""
    scales = np.stack([part.log_scale for part in parts])
    log_scale = scales.max(0)
    shares = weights[:, None] * np.exp(scales - log_scale)
    value, vector, square = (
        np.sum(
            [
                share[:, None] * getattr(part, name)
                for share, part in zip(shares, parts, strict=True)
            ],
            axis=0,
        )
        for name in ("value", "vector", "square")
    )
    return Generated(log_scale, value, vector, square)


def from_cumulants(
    log_value: Complex[np.ndarray, "slope frequency"],
    mean: Complex[np.ndarray, "p slope frequency"],
    trace: Complex[np.ndarray, "slope frequency"],
) -> Generated:
    """The moments from the logarithm of the first, and mean and variance of ``f``, tilted.

    Args:
        log_value: A logarithm of ``E exp(q u)``.
        mean: The mean of ``f`` under the law tilted by ``q``.
        trace: The trace of its covariance there.
    """
    log_scale = np.real(log_value).max(-1)
    value = np.exp(log_value - log_scale[:, None])
    return Generated(log_scale, value, value * mean, value * (trace + (mean * mean).sum(0)))
