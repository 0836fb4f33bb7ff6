"""The error of the weighted variance of finite prompts of tokens on a line, of any law.

With ``xi = x - m`` about the tilted mean, ``Y = xi^2 - C`` about the tilted variance and weights
``p``, the variance of a prompt is off by ``sum p Y - (sum p xi)^2``. Its square has denominators up
to ``S^4``; see ``mellin`` for the averages over one token.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Complex, Float

from attractor.prompts.finite_length.mellin import (
    Average,
    Moments,
    Powers,
    PromptIntegral,
    generated,
    tilted_mean,
)
from attractor.prompts.measures.contract import Measure
from attractor.prompts.measures.generating import ScoreLine

_ON_CIRCLE = 16
"""Points on a circle around a place, which two derivatives are taken from."""
_RADIUS = 0.25
"""Of that circle, over the standard deviation of a token."""
_LARGEST_RADIUS = 1e40
_INSIDE = 6.0
"""Exponential moments exist so many radii around every place."""
_DEGREES = 5


def covariance_error(
    law: Measure, slope: float, lengths: Float[np.ndarray, "length"]
) -> Float[np.ndarray, "length"]:
    """``E (C_hat - C)^2`` of the variance under attention with the scores ``slope x``.

    Args:
        law: A law on the line, with exponential moments at the slope.
        slope: ``a``.
        lengths: Numbers of tokens.

    Raises:
        InvalidInputError: If the law has no formula, or rounding errors exceed 1e-6 of the result.
    """
    direction = np.array([slope])
    mean = tilted_mean(law, direction)
    line = ScoreLine(np.ones(1), np.ones((1, 1)), mean)
    at = generated(law, line, np.array([[slope + 0j]]))
    variance = float(np.real(at.square / at.value)[0, 0])
    powers = Powers.of(law, direction, mean, float(lengths.max()))
    radius = _radius(law, line, slope * powers.slopes)
    log_scale, values = _moments(law, line, slope * powers.q, radius)
    log_whole, at_whole = _moments(law, line, slope * powers.whole[:, None] + 0j, radius)
    at_whole = np.real(at_whole[..., 0])

    def average(power: int, polynomial: dict[int, float], *, vanishing: bool = False) -> Average:
        here, whole = (
            sum(factor * each[degree] for degree, factor in polynomial.items())
            for each in (values, at_whole)
        )
        moments = Moments(log_scale, np.asarray(here)[None], log_whole, np.asarray(whole)[None])
        found = powers.average(moments, power, vanishing=vanishing)
        return Average(found.values[0], found.rounding)

    constant = Moments(log_scale, values[:1], log_whole, at_whole[:1])
    over_prompts = PromptIntegral.of(powers, constant, np.maximum(lengths, 2.0))
    C = variance
    xi, Y = average(1, {1: 1.0}, vanishing=True), average(1, {2: 1.0, 0: -C}, vanishing=True)
    xi2, xi3, xi4 = (average(k, {k: 1.0}).values for k in (2, 3, 4))
    Y2, Yxi = average(2, {4: 1.0, 2: -2 * C, 0: C * C}), average(2, {3: 1.0, 1: -C}).values
    Yxi2 = average(3, {4: 1.0, 2: -C}).values
    h, k = xi.values, Y.values

    error = over_prompts(1, Y2.values) + over_prompts(2, k**2)
    error -= 2 * over_prompts(1, Yxi2, 3) + 2 * over_prompts(2, 2 * Yxi * h + k * xi2, 3)
    error -= 2 * over_prompts(3, k * h**2, 3)
    error += over_prompts(1, xi4, 4) + over_prompts(2, 4 * xi3 * h + 3 * xi2**2, 4)
    error += over_prompts(3, 6 * xi2 * h**2, 4) + over_prompts(4, h**4, 4)
    rounding = over_prompts.rounding(1, Y2.values, Y2.rounding)
    rounding += over_prompts.rounding(2, k**2, 2 * np.abs(k) * Y.rounding)
    over_prompts.check(rounding, error)
    share = np.maximum(2 - lengths, 0.0)  # of one token, whose variance is zero
    return share * C**2 + (1 - share) * error


def _radius(law: Measure, line: ScoreLine, tilts: Float[np.ndarray, "slope"]) -> float:
    """Of the circle around places of some tilts: narrow beside a token's deviation under each."""
    found = generated(law, line, tilts[:, None] + 0j)
    mean = found.vector[0] / found.value
    variance = float(np.real(found.square / found.value - mean**2).max())
    radius = _RADIUS / math.sqrt(variance) if variance > 0 else _RADIUS
    radius, ends = min(radius, _LARGEST_RADIUS), np.array([tilts.min(), tilts.max()])
    while not np.all(law.exists((ends + _INSIDE * radius * np.array([-1, 1]))[:, None])):
        radius /= 2
    return radius


def _moments(
    law: Measure, line: ScoreLine, places: Complex[np.ndarray, "slope frequency"], radius: float
) -> tuple[Float[np.ndarray, "slope"], Complex[np.ndarray, "degree slope frequency"]]:
    """``E[xi^j exp(q xi)]`` for degrees 0 to 4, over ``exp`` of a logarithm of their size.

    The last two are derivatives of the one of degree 2, as means over a circle of analytic
    functions, of tokens about their mean at the slope.
    """
    here = generated(law, line, places)
    found = np.zeros((_DEGREES, *places.shape), dtype=complex)
    found[:3] = here.value, here.vector[0], here.square
    at_slopes = generated(law, line, np.real(places)[:, :1] + 0j)
    mean = np.real(at_slopes.vector[0] / at_slopes.value)
    first, second = np.zeros((2, *places.shape), dtype=complex)
    for angle in 2 * math.pi * np.arange(_ON_CIRCLE) / _ON_CIRCLE:
        step = radius * np.exp(1j * angle)
        there = generated(law, line, places + step)
        log_scale = (there.log_scale - here.log_scale)[:, None] - step * mean
        square = there.square * np.exp(log_scale) / _ON_CIRCLE
        first += square / step
        second += 2 * square / step**2
    found[3] = first + mean * here.square
    found[4] = second + 2 * mean * first + mean**2 * here.square
    return here.log_scale, found
