"""Averages over one token under ``exp(-t w)``, for any law, from its moment generating function.

A token has the weight ``w = exp(u)`` in attention, ``u`` its score less the logarithm of the mean
of ``exp`` of it. With ``y = t w`` and the Mellin transform of the exponential function,

    E[f y^k e^(-y)] = int Gamma(k - q) t^q E[f w^q] dq / (2 pi i)    along Re q = slope < k,

so that moments at complex powers of ``w`` are all it takes. Right of poles of ``Gamma`` the
integral is what is left of the series of ``e^(-y)`` after its first terms, which are moments at
whole powers: nothing small is a difference of large numbers. Each average is taken along the slope
at which the integrand is smallest, of slopes that keep away from poles and from where moments end.
Where one slope takes over from another both are computed, and errors are no less than they differ.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.special
from jaxtyping import Complex, Float

from attractor.prompts.measures.arithmetic import Generated, ScoreLine
from attractor.prompts.measures.contract import Measure
from attractor.support.errors import InvalidInputError

_STEP = 0.2
SLOPES = np.array([whole + part for whole in range(-4, 3) for part in (0.35, 0.5, 0.65)])
"""Real parts of powers of weights: away from poles, and near any slope that is best."""
_WHOLE = np.array([0.0, 1.0, 2.0])
_GAP, _NARROW = 0.35, 0.1
"""Least distance of slopes from poles, and from where moments end; and for very long prompts."""
_LOSS = 3.0
"""Logarithm of what rounding errors grow by where moments end: a gap times that of the length."""
_TRIED = np.arange(-400, 301) / 100
"""Powers whose moments are asked for: up to a gap beyond the slopes."""
_BESIDE = 0.02
"""Slopes beside the ends of moments are moved so far from whole numbers."""
_HIGHEST_FREQUENCY = 42.0
"""Beyond it Gamma is below rounding."""
_DECAY, _DEVIATIONS = 35.0, 9.0
"""Steps of frequencies make functions of ``log t`` periodic: their images are below rounding.

Beside a singularity at a gap they decay as ``exp(-gap |log t|)``.
"""
_ROUNDING = float(np.finfo(np.float64).eps)
_NEGLIGIBLE = 38.0
"""Minus the logarithm of what is left out."""


_LARGEST_ROUNDING = 1e-6
_MOST_NODES, _MOST_WAVES = 6000, 20_000_000


class Average(NamedTuple):
    """An average over one token at every node of ``log t``.

    Attributes:
        values: The average, of a number or of a vector.
        rounding: A bound on its rounding error, in norm, and on what contours differ by.
    """

    values: Float[np.ndarray, "*p time"]
    rounding: Float[np.ndarray, "time"]


@dataclasses.dataclass(frozen=True)
class Powers:
    """Places ``q``, powers of the weight of a token, and the time nodes that averages need.

    Attributes:
        slopes: Real parts of ``q``.
        frequencies: Imaginary parts.
        whole: Whole powers, whose moments are leading terms of averages.
        log_mean: The logarithm of the mean of ``exp`` of the score, which the weights are over.
        log_times: The nodes ``log t``, evenly spaced.
        gap: How far slopes keep from poles, and from where moments end.
    """

    slopes: Float[np.ndarray, "slope"]
    frequencies: Float[np.ndarray, "frequency"]
    whole: Float[np.ndarray, "whole"]
    log_mean: float
    log_times: Float[np.ndarray, "time"]
    gap: float

    @classmethod
    def of(
        cls,
        law: Measure,
        direction: Float[np.ndarray, "d"],
        center: Float[np.ndarray, "d"],
        longest: float,
    ) -> Powers:
        """Chooses them for the scores ``a^T (x - c)`` of a law and prompts up to a length.

        Args:
            law: The law, whose ``_generated`` has a formula.
            direction: ``a``.
            center: ``c``.
            longest: The largest number of tokens.

        Raises:
            InvalidInputError: If the law has no formula, or one with moments that are not positive,
                or scores spread too widely.
        """
        slopes, gap = _slopes(*_ends(law, direction), longest)
        whole = _WHOLE[_WHOLE < slopes.max()]
        line = ScoreLine(direction, direction[None], center)
        found, at_one = (generated(law, line, q + 0j) for q in (slopes[:, None], np.ones((1, 1))))
        if not (np.real(found.value) > 0).all():
            raise InvalidInputError(
                "measure",
                "its exponential moments are not positive where it says that they exist",
                "Correct its _exists, or its _generated",
            )
        log_mean = float(at_one.log_scale[0] + np.log(at_one.value[0, 0].real))
        tilted = found.vector[0] / found.value
        variance = np.real(found.square / found.value - tilted**2).max()
        period = _DECAY / gap + _DEVIATIONS * math.sqrt(max(float(variance), 0.0))
        step = 2 * math.pi / period
        frequencies = step * np.arange(math.ceil(_HIGHEST_FREQUENCY / step) + 1)
        log_sizes = found.log_scale - slopes * log_mean + np.log(np.real(found.value[:, 0]))
        log_times = _times(slopes, log_sizes, longest)
        if len(frequencies) * len(log_times) > _MOST_WAVES:
            raise _too_wide("contours beside the end of moments are too fine for such lengths")
        return cls(slopes, frequencies, whole, log_mean, log_times, gap)

    @cached_property
    def q(self) -> Complex[np.ndarray, "slope frequency"]:
        """The places."""
        return self.slopes[:, None] + 1j * self.frequencies

    @cached_property
    def _gamma(self) -> Complex[np.ndarray, "slope frequency"]:
        return scipy.special.gamma(-self.q)

    @cached_property
    def _waves(self) -> Complex[np.ndarray, "frequency time"]:
        return np.exp(1j * np.multiply.outer(self.frequencies, self.log_times - self.log_mean))

    def average(
        self,
        moments: Moments,
        power: int,
        *,
        vanishing: bool = False,
    ) -> Average:
        """``E[f y^power e^(-y)]``, and at power 0 that of ``f (1 - e^(-y))``.

        Args:
            moments: Those of ``f`` at the places.
            power: The power ``k``.
            vanishing: Whether ``E[f w]`` is zero.
        """
        step, log_times = self.frequencies[1], self.log_times - self.log_mean
        rising = np.prod([further - self.q for further in range(power)], axis=0)
        kernel = self._gamma * rising * (step / math.pi)  # Gamma(power - q)
        terms = moments.values * kernel
        terms[..., 0] /= 2
        poles = np.array([k for k in _WHOLE if k >= power and not (vanishing and k == 1)])
        beside = np.abs(self.slopes[:, None] - poles).min(-1, initial=np.inf) < self.gap - 1e-9
        # Rounding errors are those of what a moment is a difference of.
        lost = moments.around * np.abs(kernel)
        with np.errstate(divide="ignore"):
            sizes = np.log(np.sqrt((np.abs(terms) ** 2).sum(0) + lost**2).sum(-1))
        exponents = moments.log_scale[:, None] + np.multiply.outer(self.slopes, log_times)
        within = np.where(beside[:, None], np.inf, sizes[:, None] + exponents)
        chosen = within.argmin(0)

        def along(place: int, here: np.ndarray) -> Float[np.ndarray, "*p time"]:
            waves, own = self._waves[:, here], terms[:, place]
            found = np.real(own) @ np.real(waves) - np.imag(own) @ np.imag(waves)
            found *= _exp(exponents[place, here])
            slope = self.slopes[place]
            for number, order in enumerate(self.whole):
                further = round(order) - power
                crossed = 0 < order < slope and not (vanishing and order == 1)
                if not crossed or further < 0:
                    continue
                sign = (-1.0) ** further / math.factorial(further)
                growth = _exp(order * log_times[here] + moments.log_scale_at_whole[number])
                found += sign * growth * moments.at_whole[:, number, None]
            if power == 0:
                plain = moments.at_whole[:, :1] * np.exp(moments.log_scale_at_whole[0])
                found = (plain if slope < 0 else 0.0) - found
            return found

        values = np.empty((len(terms), len(log_times)))
        for place in np.unique(chosen):
            here = np.flatnonzero(chosen == place)
            values[:, here] = along(place, here)
        differ = np.full(len(sizes), _ROUNDING)  # of contours where they meet, beside their sizes
        for last in np.flatnonzero(np.diff(chosen)):
            both = chosen[last : last + 2]
            off = np.linalg.norm(along(both[1], np.array([last]))[:, 0] - values[:, last])
            differ[both] = np.maximum(differ[both], off / _exp(within[both, last]))
        return Average(values, differ[chosen] * _exp(within.min(0)))


class Moments(NamedTuple):
    """Moments ``E[f exp(q u)]`` of some functions of a token, each over ``exp(log_scale)``.

    Attributes:
        log_scale: By slope.
        values: At all places.
        log_scale_at_whole: By whole power.
        at_whole: At whole powers.
        around: Sizes of the two numbers that the values are differences of, where they are.
    """

    log_scale: Float[np.ndarray, "slope"]
    values: Complex[np.ndarray, "p slope frequency"]
    log_scale_at_whole: Float[np.ndarray, "whole"]
    at_whole: Float[np.ndarray, "p whole"]
    around: Float[np.ndarray, "slope frequency"] | float = 0.0


@dataclasses.dataclass(frozen=True)
class PromptIntegral:
    """Averages over prompts as integrals over ``log t`` of products of averages over tokens.

    Attributes:
        log_phi: ``log E exp(-y)`` at every node.
        off: A bound on the error of that.
        lengths: Numbers of tokens.
    """

    log_phi: Float[np.ndarray, "time"]
    off: Float[np.ndarray, "time"]
    lengths: Float[np.ndarray, "length"]

    @classmethod
    def of(
        cls, powers: Powers, one: Moments, lengths: Float[np.ndarray, "length"]
    ) -> PromptIntegral:
        """The integral, from the moments of the constant function 1."""
        found = powers.average(one, 0)
        missing = found.values[0]
        log_phi = np.where(
            missing < 0.5,
            np.log1p(-np.minimum(missing, 0.5)),
            np.log(np.maximum(1 - missing, 1e-300)),
        )
        return cls(log_phi, found.rounding / np.exp(log_phi), lengths)

    def __call__(
        self, tokens: int, integrand: Float[np.ndarray, "time"], denominator: int = 2
    ) -> Float[np.ndarray, "length"]:
        """The average of a sum over choices of different tokens, over a power of ``S``.

        Args:
            tokens: Number of different tokens in a summand.
            integrand: The product of the averages over these.
            denominator: The power of the sum of weights.
        """
        choices = np.prod([self.lengths - k for k in range(tokens)], axis=0)
        rest = np.exp(np.minimum((self.lengths - tokens)[:, None] * self.log_phi, 700.0))
        return choices * (rest @ integrand) * _STEP / math.factorial(denominator - 1)

    def rounding(
        self,
        tokens: int,
        integrand: Float[np.ndarray, "time"],
        rounding: Float[np.ndarray, "time"],
    ) -> Float[np.ndarray, "length"]:
        """A bound on the error of such an average, from that of the integrand, over ``S^2``."""
        rest = np.maximum(self.lengths - tokens, 0.0)
        return self(tokens, rounding) + rest * self(tokens, np.abs(integrand) * self.off)

    def check(
        self, rounding: Float[np.ndarray, "length"], error: Float[np.ndarray, "length"]
    ) -> None:
        """Refuses results whose rounding errors are too large.

        Raises:
            InvalidInputError: If one is beyond 1e-6 of its result.
        """
        share = rounding / np.maximum(error, 1e-300)
        if not (share <= _LARGEST_ROUNDING).all():
            raise _too_wide(f"rounding errors reach {share.max():.2g} of the result")


def generated(
    law: Measure, line: ScoreLine, q: Complex[np.ndarray, "slope frequency"]
) -> Generated:
    """Moments of a law at complex tilts.

    Raises:
        InvalidInputError: If the law has no formula for them.
    """
    found = law._generated(line, q)
    if found is None:
        raise InvalidInputError(
            "measure",
            f"the moment generating function of {type(law).__name__} is not known at complex tilts",
            "Give a law of attractor.prompts, or sample prompts: monte_carlo_error(measure, ...)",
        )
    return found


def tilted_mean(law: Measure, direction: Float[np.ndarray, "d"]) -> Float[np.ndarray, "d"]:
    """The mean of a law tilted by ``exp(a^T x)``."""
    origin = ScoreLine(direction, np.eye(len(direction)), np.zeros(len(direction)))
    at_one = generated(law, origin, np.ones((1, 1)) + 0j)
    return (at_one.vector[:, 0, 0] / at_one.value[0, 0]).real


def _ends(law: Measure, direction: Float[np.ndarray, "d"]) -> tuple[float, float]:
    """Powers of the weight between which moments exist, to a hundredth; infinite beyond all."""
    missing = _TRIED[~np.asarray(law.exists(_TRIED[:, None] * direction))]
    step = _TRIED[1] - _TRIED[0]
    low, high = missing[missing < 0], missing[missing > 0]
    return low.max(initial=-np.inf) + step, high.min(initial=np.inf) - step


def _slopes(low: float, high: float, longest: float) -> tuple[Float[np.ndarray, "slope"], float]:
    """Slopes between the powers where moments end, and how far they keep from these and poles.

    Without an end every pole has a slope to both sides. Beside an end there may be no room, and
    an average is larger there by as much as its integrand falls over the gap: for the longest
    prompts the gap is smaller.
    """
    if math.isinf(low) and math.isinf(high):
        return SLOPES, _GAP
    if low > -1e-9:
        raise _too_wide("no negative power of their exponentials has a mean")
    wanted = max(_LOSS / math.log(max(longest, 2.0)), _NARROW)
    gap = min(_GAP, wanted, -low / 2)
    beside = np.array([end for end in (low + gap, high - gap) if math.isfinite(end)])
    whole = np.round(beside)
    near = (np.abs(beside - whole) < _BESIDE) & (whole != 0)
    beside = np.where(near, whole - np.sign(whole) * _BESIDE, beside)
    every = np.concatenate([SLOPES, _WHOLE - gap, _WHOLE + gap, beside])
    every = np.unique(every.round(9))
    return every[(every >= low + gap - 1e-9) & (every <= high - gap + 1e-9)], gap


def _exp(exponent: np.ndarray) -> np.ndarray:
    """``exp``, with no overflow."""
    return np.exp(np.minimum(exponent, 700.0))


def _times(
    slopes: Float[np.ndarray, "slope"], log_sizes: Float[np.ndarray, "slope"], longest: float
) -> Float[np.ndarray, "time"]:
    """Nodes of ``log t`` beyond which next to nothing is left, beside ``1 / L``.

    By ``E[y^2 e^(-y)] <= Gamma(2 - slope) t^slope E w^slope``.
    """
    high = slopes < 0
    highest = ((_NEGLIGIBLE + log_sizes[high]) / -slopes[high]).min() + 2
    low = (slopes > 0) & (slopes < 2)
    beside = _NEGLIGIBLE + 2 * math.log(longest)
    lowest = (-(beside + np.maximum(log_sizes[low], 0.0)) / slopes[low]).max()
    if highest - lowest > _MOST_NODES * _STEP:
        raise _too_wide("they differ by hundreds")
    return np.arange(lowest, highest + _STEP, _STEP)


def _too_wide(why: str) -> InvalidInputError:
    return InvalidInputError(
        "query",
        f"its scores spread so widely that {why}",
        "Give shorter queries, or a smaller score_matrix; for Gaussian tokens finite_length_error "
        "goes further",
    )
