"""Averages over finite prompts of ratios of sums, as integrals over one variable.

Along the direction of its scores a Gaussian token is ``g ~ N(0, 1)``, and its weight is
proportional to ``w = exp(s g - s^2 / 2)``. A power of ``S = sum_l w_l`` in a denominator is
``S^-n = int t^(n-1) exp(-t S) dt / (n-1)!``, under which the tokens are independent:

    E[ prod_i sum_l w_l^(k_i) f_i(g_l) / S^n ]
        = sum over which indices coincide
          L (L-1) ... (L-m+1) int t^(n-1) prod_j E[w^(k_j) f_j e^(-t w)] phi(t)^(L-m) dt / (n-1)!

with ``phi(t) = E exp(-t w)``. In ``log t`` and with ``y = t w`` every factor is bounded.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import scipy.special
from jaxtyping import Float
from numpy.lib.stride_tricks import sliding_window_view as _windows

_STEP = 0.2
_TOGETHER, _COLUMNS = 8, 24
"""Times whose averages are one product, and more where these are fewer columns."""


@dataclasses.dataclass(frozen=True)
class Transforms:
    """Averages over one token at every node of ``log t``.

    Attributes:
        score_deviation: The standard deviation ``s`` of the scores.
        log_times: The nodes ``log t``, evenly spaced.
        log_phi: ``log E exp(-y)``.
        powers: ``E[y^k (g - s)^j exp(-y)]``, of each power ``k`` by degree ``j``.
    """

    score_deviation: float
    log_times: Float[np.ndarray, "time"]
    log_phi: Float[np.ndarray, "time"]
    powers: tuple[Float[np.ndarray, "_ time"], ...]

    @classmethod
    def of(
        cls,
        score_deviation: float,
        lengths: Float[np.ndarray, "length"],
        degrees: Sequence[int],
    ) -> Transforms:
        """Chooses nodes that serve all the lengths and averages over one token at each.

        Args:
            score_deviation: The standard deviation ``s`` of the scores.
            lengths: The lengths ``L``.
            degrees: The highest degree that is needed of each power, from 0 on.
        """
        s, highest_power = score_deviation, len(degrees) - 1
        # Of the integrals beyond these ends less than 1e-15 of the smallest, 1 / L^2, is missing:
        # there either the moments or the scores needed have no more weight than that.
        log_length = float(np.log(lengths.max()))
        rarest = np.sqrt(2 * (3 * log_length + 40))
        lowest = -log_length - 16 - (highest_power - 1) * s**2 / 2
        lowest = max(lowest, s**2 / 2 - s * rarest) if rarest < highest_power * s else lowest
        others = max(float(lengths.min()) - 1, 1e-9)
        common = max(-float(scipy.special.ndtri(min(1.0, 80 / others))), -9.5)
        highest = s**2 / 2 - s * common + 5
        log_times = np.arange(lowest, highest + _STEP, _STEP)

        g, stride = _nodes(s, highest_power, rarest)
        weights = (g[1] - g[0]) * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)
        weights = weights[:, None] * (g - s)[:, None] ** np.arange(max(degrees) + 1)
        log_weights = s * g - s**2 / 2
        if stride:
            # Times and nodes lie on one lattice of log y, on which the kernels are computed once.
            size = (len(log_times) + _COLUMNS - 1) * stride + len(g)
            lattice = log_times[0] + log_weights[0] + _STEP / stride * np.arange(size)
            found = kernels(lattice, highest_power)
        else:
            found = kernels(log_times[:, None] + log_weights, highest_power)
        below_one, *powers = _weighted(
            found, weights, (degrees[0], *degrees), len(log_times), stride
        )
        phi, below_one = powers[0][0], below_one[0]
        log_phi = np.where(
            below_one < 0.5,
            np.log1p(-np.minimum(below_one, 0.5)),
            np.log(np.maximum(phi, 1e-300)),
        )
        return cls(s, log_times, log_phi, tuple(powers))

    def moment(self, power: int, degree: int = 0) -> Float[np.ndarray, "time"]:
        """``E[y^power (g - s)^degree exp(-y)]``.

        The weighted mean and variance of ``g - s`` are 0 and 1 at ``t = 0``; what is left of
        them is found by integration by parts, not as a small difference.
        """
        if power == 1 and degree == 1:
            return -self.score_deviation * self.powers[2][0]
        return self.powers[power][degree]

    def excess(self, power: int, degree: int = 0) -> Float[np.ndarray, "time"]:
        """``E[y^power (g - s)^degree ((g - s)^2 - 1) exp(-y)]``."""
        if power == 1 and degree == 0:
            return self.score_deviation**2 * (self.powers[3][0] - self.powers[2][0])
        return self.powers[power][degree + 2] - self.powers[power][degree]

    def integral(
        self,
        lengths: Float[np.ndarray, "length"],
        tokens: int,
        denominator: int,
        integrand: Float[np.ndarray, "*value time"],
    ) -> Float[np.ndarray, "*value length"]:
        """Sums products of averages over choices of different tokens, and integrates.

        Args:
            lengths: The lengths ``L``.
            tokens: Number ``m`` of different tokens in a product.
            denominator: The power ``n`` of the sum of weights in the denominator.
            integrand: Products of the averages of these tokens.
        """
        choices = np.prod([lengths - k for k in range(tokens)], axis=0)
        rest = np.exp(np.minimum((lengths - tokens)[:, None] * self.log_phi, 700.0))
        return choices * (integrand @ rest.T) * _STEP / math.factorial(denominator - 1)


def _weighted(
    values: Float[np.ndarray, "kernel ..."],
    weights: Float[np.ndarray, "node degree"],
    degrees: Sequence[int],
    times: int,
    stride: int,
) -> list[Float[np.ndarray, "_ time"]]:
    """Weighted sums over the nodes at every time, of each kernel up to its highest degree.

    Args:
        values: The kernels, on a lattice of which the nodes are a window that moves on by a stride
            from time to time, or by time and node.
        weights: Of the nodes, by degree.
        degrees: The highest degree that is needed of each kernel.
        times: Number of times.
        stride: Of the window, or zero if there is no lattice.
    """
    found = {}
    for degree in set(degrees):
        alike = [number for number, each in enumerate(degrees) if each == degree]
        used = weights[:, : degree + 1]
        sums = _over_windows(values[alike], used, stride) if stride else values[alike] @ used
        found |= zip(alike, np.swapaxes(sums[:, :times], 1, 2), strict=True)
    return [found[number] for number in range(len(degrees))]


def _over_windows(
    lattice: Float[np.ndarray, "kernel size"],
    weights: Float[np.ndarray, "node degree"],
    stride: int,
) -> Float[np.ndarray, "kernel time degree"]:
    """Weighted sums over a window of a lattice that moves on by a stride.

    Several windows that follow each other are one product with their weights side by side, so that
    a product has columns enough, and little of the lattice is copied.
    """
    nodes, degrees = weights.shape
    together = max(_TOGETHER, _COLUMNS // degrees)
    side_by_side = np.zeros((nodes + (together - 1) * stride, together, degrees))
    for number in range(together):
        side_by_side[number * stride : number * stride + nodes, number] = weights
    spans = _windows(lattice, len(side_by_side), axis=1)[:, :: together * stride]
    sums = np.ascontiguousarray(spans) @ side_by_side.reshape(len(side_by_side), -1)
    return sums.reshape(len(lattice), -1, degrees)


def _nodes(s: float, highest_power: int, rarest: float) -> tuple[Float[np.ndarray, "node"], int]:
    """Values of ``g`` to average over, and how many steps between them a step of ``log t`` is.

    The latter is zero where it is no whole number, as scores are too narrow.
    """
    spacing = min(0.45, 0.25 / max(s, 1e-9))
    stride = int(np.ceil(_STEP / (s * spacing))) if s > 0.01 else 0
    if stride:
        spacing = _STEP / (s * stride)
    last = min(highest_power * s + 10, rarest + 2 + 7 / max(s, 1e-9))
    return np.arange(-10.0, last + spacing, spacing), stride


def kernels(log_y: np.ndarray, highest_power: int) -> np.ndarray:
    """``1 - exp(-y)``, and ``y^k exp(-y)`` for ``k`` from 0."""
    found = np.empty((highest_power + 2, *np.shape(log_y)))
    y = np.exp(np.minimum(log_y, 7.0))  # exp(-exp(7)) is 0
    np.negative(y, out=found[0])
    np.exp(found[0], out=found[1])
    np.negative(np.expm1(found[0], out=found[0]), out=found[0])
    for power in range(highest_power):
        np.multiply(found[power + 1], y, out=found[power + 2])
    return found
