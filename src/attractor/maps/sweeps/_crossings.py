"""Where along an axis of a sweep an average passes a level for good, with what is out of reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attractor.maps.sweeps.averages import TRIALS, average_trials, trial_values
from attractor.maps.sweeps.grid import is_more_even
from attractor.support.checks import (
    check_choice,
    check_count,
    check_items,
    check_number,
    check_share,
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
    import xarray as xr

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
