"""Where along an axis of a sweep an average passes a level, and how sharply a probability does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from scipy.special import chdtri, log_ndtr

from attractor.maps.sweeps.averages import TRIALS, average_trials, trial_values
from attractor.maps.sweeps.grid import is_more_even
from attractor.support.checks import (
    check_choice,
    check_count,
    check_items,
    check_number,
    check_share,
    shown,
)
from attractor.support.errors import InvalidInputError
from attractor.support.loaded import is_of_loaded
from attractor.support.randomness import generator

if TYPE_CHECKING:
    import xarray as xr


def crossings(
    data: xr.Dataset,
    of: str,
    along: str,
    axes: Sequence[str] = (),
    *,
    level: float = 0.5,
    side: str | None = None,
    at: Mapping[str, float | str] | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> xr.Dataset:
    """Where along an axis the mean of a measure passes a level for good.

    The mean is that of ``average_trials``. It is to end below the level, or above it: the side to
    which it moves from the first value of the axis to the last, in the sum over all points, unless
    you name the side. It passes the level between the last value at which it is not beyond it and
    the next, by interpolation: on the logarithm where values lie more evenly there. A mean that is
    beyond the level at every value passed it before the first: minus infinity. One that is not
    beyond it at the last has not passed it: infinity.

    Intervals are percentiles over data sets drawn with replacement; their ends may be infinite too.

    Args:
        data: What ``open_sweep`` returns.
        of: The measure, as in ``average_trials``.
        along: The axis, of at least two numbers.
        axes: The axes to keep.
        level: The level.
        side: ``"below"`` or ``"above"``, for means that rise and fall along the axis.
        at: The value of every other axis that has several.
        confidence: Of the intervals.
        resamples: How often data sets are drawn.

    Returns:
        Over ``axes``: ``mean``, where the mean passes the level, ``low`` and ``high``, the ends of
        its interval, NaN where the mean is missing at some value; ``measured`` and ``trials`` as in
        ``average_trials``, added up along the axis.

    Raises:
        InvalidInputError: If ``average_trials`` refuses it, the axis has names or a single value,
            or the mean neither falls nor rises and no side is given.
    """
    if side is not None:
        check_choice("side", side, ["below", "above"])
    level, share = check_number("level", level), check_share("confidence", confidence, 0.95)
    count = check_count("resamples", resamples)
    kept = [str(name) for name in check_items("axes", axes, str)]
    if is_of_loaded(data, "xarray", "Dataset"):  # another is refused with the averages
        check_choice("along", along, [str(name) for name in data.dims if name not in TRIALS])
    averages = average_trials(data, of, [*kept, along], at=at).sortby(along)
    if averages[along].dtype.kind not in "iuf" or averages.sizes[along] < 2:
        raise InvalidInputError(
            "along", f"{along} has no two numbers", "Name an axis of numbers, such as step"
        )
    places, curves = averages[along].to_numpy().astype(float), averages["mean"].to_numpy()
    if side is None:
        change = float(np.nansum(curves[..., -1] - curves[..., 0]))
        if not change:
            raise InvalidInputError(
                "along",
                f"{of} neither falls nor rises along {along}",
                "Name another axis or measure",
            )
        side = "below" if change < 0 else "above"
    sign = -1 if side == "below" else 1
    found = np.full((3, *curves.shape[:-1]), np.nan)
    of_each = _of_each(data, of, [*kept, along], at)
    random = generator(0, purpose="data sets drawn anew")
    sets = of_each.shape[-1]
    drawn = random.multinomial(sets, np.full(sets, 1 / sets), count).astype(float)
    for point in np.ndindex(curves.shape[:-1]):
        if not np.isfinite(curves[point]).all():
            continue
        known = np.isfinite(of_each[point]).T
        with np.errstate(invalid="ignore"):  # of no data set with a value there is no mean
            again = drawn @ np.where(known, of_each[point].T, 0.0) / (drawn @ known)
        passed = _passed(places, sign * (np.vstack([curves[point], again]) - level))
        ends = np.quantile(
            passed[1:], [(1 - share) / 2, (1 + share) / 2], method="closest_observation"
        )
        found[(slice(None), *point)] = passed[0], *ends
    described = f"{along} from which on the mean {of} is {side} {level:g}"
    counts = averages[["measured", "trials"]].sum(along)
    return xr.Dataset(
        {name: (kept, array) for name, array in zip(("mean", "low", "high"), found, strict=True)}
        | {name: (kept, counts[name].to_numpy()) for name in ("measured", "trials")},
        coords={name: averages[name].to_numpy() for name in kept},
        attrs={
            **averages.attrs,
            "description": described,
            "kind": "place",
            "confidence": share,
            "interval": "bootstrap",
            "along": along,
            "places": places,
        },
    )


def _of_each(
    data: xr.Dataset,
    of: str,
    axes: list[str],
    at: Mapping[str, float | str] | None,
) -> Float[np.ndarray, "*points place instance"]:
    """The mean over seeds of every data set, NaN where there is none, in rising order."""
    values, known, _ = trial_values(data, of, axes, at)
    seeds = known.sum(-1)
    totals = np.where(known, values.to_numpy(), 0.0).sum(-1)
    means = np.divide(totals, seeds, out=np.full(totals.shape, np.nan), where=seeds > 0)
    return means[..., np.argsort(data[axes[-1]].to_numpy()), :]


def _passed(
    places: Float[np.ndarray, "place"], beyond: Float[np.ndarray, "curve place"]
) -> Float[np.ndarray, "curve"]:
    """Where each curve turns positive for good, by interpolation; infinite where it does not."""
    logarithmic = places[0] > 0 and is_more_even(np.log(places), places)
    x = np.log(places) if logarithmic else places
    behind = ~(beyond > 0)
    last = np.where(behind.any(1), len(x) - 1 - behind[:, ::-1].argmax(1), -1)
    left = np.clip(last, 0, len(x) - 2)
    rows = np.arange(len(beyond))
    before, after = beyond[rows, left], beyond[rows, left + 1]
    inside = (last >= 0) & (last < len(x) - 1)
    share = np.divide(before, before - after, out=np.zeros(len(beyond)), where=inside)
    between = x[left] + (x[left + 1] - x[left]) * share
    found = np.exp(between) if logarithmic else between
    return np.select([last < 0, last == len(x) - 1], [-np.inf, np.inf], found)


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
