"""Where a probability passes one half along an axis, and how sharply, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attractor.support.checks import check_choice, shown
from attractor.support.errors import InvalidInputError
from attractor.support.loaded import is_of_loaded

if TYPE_CHECKING:
    import xarray as xr

_STEEPEST = 1e3
"""Steps of the axis per width beyond which a transition is a jump: no points resolve it."""
_AS_GOOD = 1e-9
"""Difference of logarithms of likelihoods that is none."""
_FARTHEST = 10.0
"""Lengths of the axis beyond its ends up to which a half-way point is looked for."""
_NAMES = ("half", "half_low", "half_high", "width", "width_low", "width_high")


def transition(
    averages: xr.Dataset, along: str, *, positions: str | None = None, scale: str = "linear"
) -> xr.Dataset:
    """Where a probability passes one half along an axis, and how wide its transition is.

    At x the probability is taken to be ``Phi(+-(x - half) / width)``, as if every data set had a
    threshold, normal with that mean and standard deviation. Both are those of largest likelihood;
    their intervals hold all values whose profile likelihood is at least ``exp(-chi^2 / 2)`` of the
    largest, with the quantile of one degree of freedom (Venzon and Moolgavkar 1988). So points at
    which all data sets agree count for what they say. Where no point lies inside the transition,
    its width is 0, with the interval that the points leave it, and half-way is the middle between
    them. Seeds of one data set count as one trial, with their mean.

    Args:
        averages: What ``average_trials`` returns of a flag.
        along: The axis.
        positions: A coordinate with the places along it, which may depend on further axes; default:
            the values of the axis.
        scale: ``"log"`` takes the logarithm of x to be what thresholds are normal in: where their
            spread is in proportion to them, or a few times smaller than they are. Widths are then
            those of the logarithm, relative ones.

    Returns:
        Over all other axes: ``half`` and ``width`` with ``_low`` and ``_high``, ends of the
        intervals at the confidence of the averages, infinite where the likelihood bounds none; and
        ``rises``, whether the probability does. All NaN, and -1, where it does not change at all.

    Raises:
        InvalidInputError: If the averages are none of a flag, or have no such axis or coordinate,
            or places along it are not finite.
    """
    import xarray as xr
    from scipy.special import chdtri

    if not is_of_loaded(averages, "xarray", "Dataset") or "mean" not in averages:
        raise InvalidInputError(
            "averages", f"it is {shown(averages)}", "Give what average_trials returns"
        )
    if averages.attrs.get("kind") != "probability":
        raise InvalidInputError(
            "averages", "they are of numbers", "Average a flag, such as feasible"
        )
    axes = [str(name) for name in averages["mean"].dims]
    check_choice("along", along, axes)
    name = positions if positions is not None else along
    places = averages[check_choice("positions", name, map(str, averages.coords))]
    if places.dtype.kind not in "iuf" or not np.isfinite(places.to_numpy()).all():
        raise InvalidInputError(
            "positions", f"{name} has no finite numbers", "Give an axis of some"
        )
    logarithmic = check_choice("scale", scale, ("linear", "log")) == "log"
    if logarithmic and places.to_numpy().min() <= 0:
        raise InvalidInputError("scale", f"{name} is not positive", "Give scale='linear'")
    others = [one for one in axes if one != along]
    mean, count, places = xr.broadcast(averages["mean"], averages["measured"], places)
    x, shares, counts = (
        one.transpose(*others, along).to_numpy().astype(float) for one in (places, mean, count)
    )
    counts = counts / averages.attrs.get("seeds", 1)
    if logarithmic:
        x = np.log(x)
    drop = float(chdtri(1, 1 - averages.attrs["confidence"])) / 2
    shape = x.shape[:-1]
    found = np.full((*shape, len(_NAMES)), np.nan)
    rises = np.full(shape, -1, np.int8)
    for at in np.ndindex(*shape):
        known = counts[at] > 0
        points = _Points.sorted(x[at][known], shares[at][known], counts[at][known])
        if points is not None:
            found[at] = _fit(points, drop)
            rises[at] = points.sign > 0
    if logarithmic:
        found[..., :3] = np.exp(found[..., :3])
    return xr.Dataset(
        {key: (others, found[..., place]) for place, key in enumerate(_NAMES)}
        | {"rises": (others, rises)},
        coords={key: averages[key].values for key in others},
        attrs={**averages.attrs, "along": name, "scale": scale, "interval": "profile likelihood"},
    )


class _Points(NamedTuple):
    """Shares of successes at places, in units in which these lie from 0 to 1.

    Attributes:
        x: The places.
        successes: Trials that succeeded there.
        failures: Trials that did not.
        sign: 1 where the probability rises, -1 where it falls.
        first: The first place.
        length: From the first to the last.
        step: The least step between places.
    """

    x: np.ndarray
    successes: np.ndarray
    failures: np.ndarray
    sign: int
    first: float
    length: float
    step: float

    @classmethod
    def sorted(cls, x: np.ndarray, shares: np.ndarray, counts: np.ndarray) -> _Points | None:
        """None where shares do not change along them."""
        places = np.unique(x)
        if len(places) < 2:
            return None
        moved = counts @ ((x - np.average(x, weights=counts)) * shares)
        if abs(moved) <= 1e-12 * counts.sum() * np.ptp(x):
            return None
        first, length = places[0], places[-1] - places[0]
        successes = shares * counts
        return cls(
            (x - first) / length,
            successes,
            counts - successes,
            1 if moved > 0 else -1,
            first,
            length,
            float(np.diff(places).min() / length),
        )

    def lack(self, half: float, slope: float) -> float:
        """Minus the logarithm of the likelihood; convex in ``slope`` and in ``slope * half``."""
        from scipy.special import log_ndtr

        z = self.sign * slope * (self.x - half)
        return -float(self.successes @ log_ndtr(z) + self.failures @ log_ndtr(-z))


def _fit(points: _Points, drop: float) -> list[float]:
    """Half-way point and width, each followed by its interval."""
    steepest = _STEEPEST / points.step
    slopes = (math.log(1 / (4 * _FARTHEST)), math.log(steepest))
    halves = (-_FARTHEST, 1 + _FARTHEST)

    def at_half(half: float) -> tuple[float, float]:
        return _least(lambda log: points.lack(half, math.exp(log)), slopes)

    def at_slope(log: float) -> tuple[float, float]:
        return _least(lambda half: points.lack(half, math.exp(log)), halves)

    log_slope, best = _least(lambda log: at_slope(log)[1], slopes)
    half = at_slope(log_slope)[0]
    jump_at = _middle(points)
    lack = points.lack(jump_at, steepest)
    jump = lack <= best + _AS_GOOD
    if jump:
        half, log_slope, best = jump_at, slopes[1], min(lack, best)
    low, high = (_end(lambda value: at_half(value)[1] - best - drop, half, end) for end in halves)
    flat_end, steep_end = (
        _end(lambda value: at_slope(value)[1] - best - drop, log_slope, end) for end in slopes
    )
    scaled = [points.first + points.length * value for value in (half, low, high)]
    widths = [
        0.0 if jump else points.length / math.exp(log_slope),
        points.length * math.exp(-steep_end) if math.isfinite(steep_end) else 0.0,
        points.length * math.exp(-flat_end),
    ]
    return [*scaled, *widths]


def _middle(points: _Points) -> float:
    """Where a jump is most likely: the middle between the places that it parts."""
    places = np.unique(points.x)
    lacks = []
    candidates = np.unique([*places, *(places[1:] + places[:-1]) / 2])
    steepest = _STEEPEST / points.step
    lacks = [points.lack(half, steepest) for half in candidates]
    return float(candidates[np.argmin(lacks)])


def _least(function: Callable[[float], float], ends: tuple[float, float]) -> tuple[float, float]:
    """Where a function with one valley is least, and how little it is there."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(function, bounds=ends, method="bounded", options={"xatol": 1e-7})
    return float(found.x), float(found.fun)


def _end(function: Callable[[float], float], inside: float, end: float) -> float:
    """Where a function passes zero between a place inside and an end; infinite if nowhere."""
    if function(end) <= 0:
        return math.copysign(math.inf, end - inside)
    outside = end
    while abs(outside - inside) > 1e-7 * max(1.0, abs(inside)):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if function(middle) <= 0 else (inside, middle)
    return inside
