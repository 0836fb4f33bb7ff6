"""Expected squared errors of a head on finite prompts whose tokens have any law, exactly.

For a query ``z`` the weights of the tokens depend on their scores ``a^T x`` alone, ``a = U z``.
With ``S`` the sum of the weights ``w = exp(a^T x)`` and ``S^-2 = int t exp(-t S) dt`` tokens are
independent under the integral, so that with ``xi = x - m`` about the tilted mean and
``phi(t) = E exp(-t w)``

    E || sum p V xi ||^2 = L int t E[w^2 ||V xi||^2 e^(-t w)] phi^(L-1) dt
                         + L (L-1) int t || E[w V xi e^(-t w)] ||^2 phi^(L-2) dt.

The averages over one token come from the law's moment generating function; see ``mellin``.

On a line, with ``Y = xi^2 - C`` about the tilted variance and weights ``p``, the variance of a
prompt is off by ``sum p Y - (sum p xi)^2``. Its square has denominators up to ``S^4``; see
``mellin`` for the averages over one token.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Complex, Float

from attractor.prompts.finite_length.functions import check_queries
from attractor.prompts.finite_length.mellin import (
    Average,
    Moments,
    Powers,
    PromptIntegral,
    generated,
    tilted_mean,
)
from attractor.prompts.head import AttentionHead
from attractor.prompts.measures.arithmetic import ScoreLine
from attractor.prompts.measures.contract import Measure
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64

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


class MeasureError(NamedTuple):
    """Expected squared differences between a prompt of ``L`` tokens and the infinite prompt.

    Attributes:
        output: ``E || V (m_hat - m_a) ||^2``.
        value_gradient: ``E || J_V - J_V,infinite ||_F^2`` of the derivative of the output in ``V``.
        score_gradient: ``E || J_U - J_U,infinite ||_F^2`` of that in ``U``, for tokens on a line;
            NaN for tokens of more dimensions.
        sum_of_squared_weights: ``E sum_l p_l^2``, one over the effective number of tokens.
    """

    output: Float[np.ndarray, "*shape"]
    value_gradient: Float[np.ndarray, "*shape"]
    score_gradient: Float[np.ndarray, "*shape"]
    sum_of_squared_weights: Float[np.ndarray, "*shape"]


def measure_error(
    measure: Measure,
    head: AttentionHead,
    query: Float[ArrayLike, "*batch e"],
    length: ArrayLike,
) -> MeasureError:
    """Computes the errors of a head on finite prompts of independent tokens of any law, exactly.

    It takes some tens of milliseconds a query, whatever the number of lengths; for an empirical
    law of 10,000 tokens, or where exponential moments end and prompts have 1e12 tokens, about half
    a second. Exact form, for any law, of what the concentration bounds of *Softmax as Linear
    Attention in the Large-Prompt Regime* (arXiv 2512.11784) are about.

    Args:
        measure: The law of the tokens: any of ``attractor.prompts``, however composed.
        head: The head.
        query: Queries ``z``, ``(*batch, e)``.
        length: Numbers of tokens ``L >= 1``; broadcasts against the batch of queries. Between whole
            numbers the result interpolates.

    Returns:
        The errors, of the shape to which the batch of queries and ``length`` broadcast, to a
        relative error below 1e-9 for scores of standard deviation up to 12. The score gradient of
        tokens with few values falls like ``exp(-4 s)`` where scores are ``+-s``: there it is known
        to 1e-6 only. Exponential moments of the law may end anywhere beyond ``U z``.

    Raises:
        InvalidInputError: If shapes do not fit, an entry is not finite, a length is below 1,
            attention over infinitely many tokens does not exist for a query, the law has no formula
            for its moment generating function, or scores spread so widely that rounding errors
            exceed 1e-6 of the result.

    Examples:
        >>> from attractor.prompts import AttentionHead, Rademacher, measure_error
        >>> signs = measure_error(Rademacher(1), AttentionHead([[1]], [[1]]), [2.0], [10, 1000])
        >>> signs.output.round(6)
        array([5.239e-03, 5.000e-06])
    """
    U, values, z, lengths = _checked(measure, head, query, length)
    identity = np.eye(len(U))

    def of(
        direction: Float[np.ndarray, "d"], lengths: Float[np.ndarray, "length"]
    ) -> Float[np.ndarray, "4 length"]:
        mean = tilted_mean(measure, direction)
        powers = Powers.of(measure, direction, mean, float(lengths.max()))
        (output, weights), (whole, _) = (
            _along(measure, ScoreLine(direction, projection, mean), powers, lengths)
            for projection in (values, identity)
        )
        on_line = np.full(len(lengths), np.nan)
        if len(direction) == 1:
            on_line = covariance_error(measure, float(direction[0]), lengths)
        return np.stack([output, len(values) * whole, (values**2).sum() * on_line, weights])

    output, value_gradient, score_gradient, weights = _for_each_query(z @ U.T, lengths, 4, of)
    return MeasureError(output, value_gradient, (z**2).sum(-1) * score_gradient, weights)


def measure_output_error(
    measure: Measure,
    head: AttentionHead,
    query: Float[ArrayLike, "*batch e"],
    length: ArrayLike,
) -> Float[np.ndarray, "..."]:
    """Returns the expected squared error of the output alone, at less than half the cost.

    Arguments and errors are those of ``measure_error``.
    """
    U, values, z, lengths = _checked(measure, head, query, length)

    def of(
        direction: Float[np.ndarray, "d"], lengths: Float[np.ndarray, "length"]
    ) -> Float[np.ndarray, "1 length"]:
        mean = tilted_mean(measure, direction)
        powers = Powers.of(measure, direction, mean, float(lengths.max()))
        return _along(measure, ScoreLine(direction, values, mean), powers, lengths)[0][None]

    (output,) = _for_each_query(z @ U.T, lengths, 1, of)
    return output


def _along(
    measure: Measure, line: ScoreLine, powers: Powers, lengths: Float[np.ndarray, "length"]
) -> tuple[Float[np.ndarray, "length"], Float[np.ndarray, "length"]]:
    """``E || P (m_hat - m) ||^2`` and ``E sum_l p_l^2``."""
    there, at_whole = (generated(measure, line, q) for q in (powers.q, powers.whole[:, None] + 0j))

    center = np.linalg.norm(line.projection @ line.center)  # a rounding error of f is one of this

    def moments(name: str, around: np.ndarray | float = 0.0) -> Moments:
        here, whole = (
            getattr(one, name).reshape(-1, *one.value.shape) for one in (there, at_whole)
        )
        return Moments(there.log_scale, here, at_whole.log_scale, whole[..., 0].real, around)

    # Between one token and two the averages are those of no prompt: they are interpolated.
    over_prompts = PromptIntegral.of(powers, moments("value"), np.maximum(lengths, 2.0))
    vector = powers.average(moments("vector", center * np.abs(there.value)), 1, vanishing=True)
    off_center = center * np.linalg.norm(there.vector, axis=0)
    square = powers.average(moments("square", off_center), 2)
    squared = (vector.values**2).sum(0)
    error = over_prompts(1, square.values[0]) + over_prompts(2, squared)
    rounding = over_prompts.rounding(1, square.values[0], square.rounding)
    rounding += over_prompts.rounding(2, squared, 2 * np.sqrt(squared) * vector.rounding)
    over_prompts.check(rounding, error)
    once = powers.average(moments("value"), 2)
    weights = over_prompts(1, once.values[0])
    over_prompts.check(over_prompts.rounding(1, once.values[0], once.rounding), weights)
    alone = float(at_whole.square[0, 0].real * np.exp(at_whole.log_scale[0]))
    share = np.maximum(2 - lengths, 0.0)
    return share * alone + (1 - share) * error, share + (1 - share) * weights


def _for_each_query(
    directions: Float[np.ndarray, "*batch d"],
    lengths: Float[np.ndarray, "..."],
    count: int,
    compute: Callable[[np.ndarray, np.ndarray], Float[np.ndarray, "value length"]],
) -> Float[np.ndarray, "value ..."]:
    """Computes some values for every pair, with one call for all lengths of a direction."""
    shape = np.broadcast_shapes(directions.shape[:-1], lengths.shape)
    flat = np.broadcast_to(directions, (*shape, directions.shape[-1])).reshape(
        -1, directions.shape[-1]
    )
    different, group = np.unique(flat, axis=0, return_inverse=True)
    wanted = np.broadcast_to(lengths, shape).ravel()
    found = np.empty((count, len(wanted)))
    for place, direction in enumerate(different):
        members = np.flatnonzero(group.ravel() == place)
        own, where = np.unique(wanted[members], return_inverse=True)
        found[:, members] = compute(direction, own)[:, where]
    return found.reshape(count, *shape)


def _checked(
    measure: Measure, head: AttentionHead, query: Float[ArrayLike, "*batch e"], length: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Score matrix, value matrix, queries and lengths, checked as ``measure_error`` says."""
    check_kinds(measure=(measure, Measure), head=(head, AttentionHead))
    U, V = (
        as_float64("head", one, largest=LARGEST) for one in (head.score_matrix, head.value_matrix)
    )
    if measure.dimension != len(U):
        raise InvalidInputError(
            "head",
            f"its score matrix is for tokens with {len(U)} entries",
            f"Give one with {measure.dimension} rows, the dimension of the measure",
        )
    z, lengths = check_queries(query, U.shape[1], length)
    measure.admissible(z @ U.T)
    return U, V, z, lengths
