"""Averages over the trials of every point of a sweep, with intervals and with what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.special import stdtrit

from attractor.analysis.wilson import wilson_interval
from attractor.support.checks import (
    check_choice,
    check_items,
    check_kinds,
    check_share,
    shown,
    suggest,
)
from attractor.support.errors import InvalidInputError
from attractor.support.loaded import is_of_loaded

if TYPE_CHECKING:
    import xarray as xr

TRIALS = ("instance", "seed")
"""The axes that are averaged over."""
MEASURE = "measure"
"""The axis of several measures."""


def average_trials(
    data: xr.Dataset,
    of: str | Sequence[str],
    axes: Sequence[str] = (),
    *,
    at: Mapping[str, float | str] | None = None,
    confidence: float = 0.95,
) -> xr.Dataset:
    """The mean of a measure at every point, with an interval, and the number of trials behind it.

    The mean is one over data sets, each of its mean over seeds: seeds of one data set are no
    independent trials. Of numbers the interval is Student's, ``mean +- t s / sqrt(m)`` over m data
    sets. Of flags it is Wilson's, ``analysis.wilson``, of as many trials as would have the variance
    found between data sets (Korn and Graubard 1998; Franco, Little, Louis and Slud 2019), at least
    as many as there are data sets and at most as many as there are trials; with one seed that is
    Wilson's own. What is missing is left out and counted.

    Args:
        data: What ``open_sweep`` returns.
        of: The measure: a number, or a flag with values 0 and 1. Several of one kind become an
            axis, ``measure``, before the others.
        axes: The axes to keep.
        at: The value of every other axis that has several.
        confidence: Of the intervals.

    Returns:
        Over ``axes``: ``mean``, ``low`` and ``high``, ends of the interval, NaN where nothing was
        measured, ``low`` and ``high`` also of numbers from one data set; ``measured`` and
        ``trials``, how many of how many.

    Raises:
        InvalidInputError: If there is no such measure or axis, no such value on one, an axis
            that has several is neither kept nor given a value, or of several measures some are
            flags and some are numbers.
    """
    if not isinstance(of, str):
        return _of_several(data, check_items("of", of, str, 1), axes, at=at, confidence=confidence)
    share = check_share("confidence", confidence, 0.95)
    values, known, flags = trial_values(data, of, axes, at)
    numbers = values.to_numpy()
    kept = [str(name) for name in values.dims[:-2]]
    mean, low, high = _interval(np.where(known, numbers, 0.0), known, share, flags=flags)
    counts = {
        "measured": known.sum((-1, -2)),
        "trials": np.full(known.shape[:-2], known.shape[-1] * known.shape[-2]),
    }
    found = {"mean": mean, "low": low, "high": high} | counts
    described = str(data[of].attrs.get("long_name", of))
    return xr.Dataset(
        {name: (kept, array) for name, array in found.items()},
        coords={name: data[name].values for name in kept},
        attrs={
            "of": of,
            "description": described,
            "kind": "probability" if flags else "number",
            "confidence": share,
            "interval": "Wilson" if flags else "Student",
            "instances": values.sizes["instance"],
            "seeds": values.sizes["seed"],
            "at": "; ".join(f"{name} = {_text(value)}" for name, value in (at or {}).items()),
        },
    )


def trial_values(
    data: Any, of: str, axes: Sequence[str], at: Mapping[str, float | str] | None
) -> tuple[xr.DataArray, Bool[np.ndarray, "*points instance seed"], bool]:
    """The values of a measure over ``axes``, instances and seeds, which are known, and if flags.

    Args:
        data: What ``open_sweep`` returns.
        of: The measure.
        axes: The axes to keep.
        at: The value of every other axis that has several.

    Raises:
        InvalidInputError: As ``average_trials``.
    """
    if not is_of_loaded(data, "xarray", "Dataset") or set(TRIALS) - set(data.dims):
        raise InvalidInputError(
            "data", f"{shown(data)} is no result of a sweep", "Give what open_sweep returns"
        )
    check_kinds(at=(at, Mapping | None))
    values = data[check_choice("of", of, map(str, data.data_vars))]
    kept = [str(name) for name in check_items("axes", axes, str)]
    values = _chosen(values, kept, dict(at or {})).transpose(*kept, *TRIALS)
    numbers = values.to_numpy()
    flags = numbers.dtype.kind in "iu"
    if flags and numbers.max(initial=0) > 1:
        flag_names = [str(name) for name in data.data_vars if data[name].dtype.kind == "f"]
        raise InvalidInputError(
            "of",
            f"{of} holds codes, of which there is no mean",
            f"Give a measure such as {', '.join(flag_names[:3])}",
        )
    return values, np.isfinite(numbers) if not flags else numbers >= 0, flags


def _of_several(data: xr.Dataset, names: list[str], axes: Sequence[str], **how: Any) -> xr.Dataset:
    """The averages of several measures, along an axis of their names."""
    found = [average_trials(data, name, axes, **how) for name in names]
    kinds = [one.attrs["kind"] for one in found]
    for argument, wrong, problem in (
        ("of", len(set(names)) < len(names), "it names a measure twice"),
        ("of", len(set(kinds)) > 1, f"of {', '.join(names)} some are flags, some numbers"),
        ("data", MEASURE in data.dims, f"it has an axis {MEASURE} of its own"),
    ):
        if wrong:
            raise InvalidInputError(argument, problem, "Give one measure, or several of one kind")
    attrs = found[0].attrs | {"of": ", ".join(names), "description": ", ".join(names)}
    together = xr.concat([one.drop_attrs() for one in found], MEASURE)
    return together.assign_coords({MEASURE: names}).assign_attrs(attrs)


def _chosen(values: xr.DataArray, kept: list[str], at: dict[str, Any]) -> xr.DataArray:
    """Values at the points asked for, with the axes kept and those of trials."""
    own = [str(name) for name in values.dims if name not in TRIALS]
    for argument, names in (("axes", kept), ("at", at)):
        for name in names:
            if name not in own:
                known = f"{suggest(name, own)}There are: {', '.join(own) or 'none'}"
                raise InvalidInputError(argument, f"there is no axis {shown(name)}", known)
    if len(set(kept)) < len(kept) or set(kept) & set(at):
        raise InvalidInputError(
            "axes", f"{', '.join([*kept, *at])} names one twice", "Name each once"
        )
    for name in own:
        if name in kept:
            continue
        labels = values[name].values.tolist()
        if name in at:
            values = values.isel({name: _place(name, at[name], labels)})
        elif len(labels) == 1:
            values = values.isel({name: 0})
        else:
            listed = ", ".join(map(_text, labels[:8])) + (", ..." if len(labels) > 8 else "")
            raise InvalidInputError(
                "at",
                f"{name} has {len(labels)} values: {listed}",
                f"Give one, or draw along {name}",
            )
    return values


def _place(name: str, value: Any, labels: list[Any]) -> int:
    for place, label in enumerate(labels):
        same = label == value if isinstance(label, str) else _equal(label, value)
        if same:
            return place
    texts = [_text(label) for label in labels]
    known = f"{suggest(value, texts)}It has: {', '.join(texts[:12])}"
    raise InvalidInputError("at", f"{name} is nowhere {shown(value)}", known)


def _equal(label: float, value: Any) -> bool:
    try:
        return bool(np.isclose(float(value), label, rtol=1e-9, atol=0))
    except (TypeError, ValueError):
        return False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _interval(
    numbers: Float[np.ndarray, "*points instance seed"],
    known: Float[np.ndarray, "*points instance seed"],
    confidence: float,
    *,
    flags: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means over data sets, and both ends of their intervals."""
    seeds = known.sum(-1)
    of_each = numbers.sum(-1) / np.maximum(seeds, 1)  # zero where a data set has none
    count = (seeds > 0).sum(-1)
    some = np.maximum(count, 1)
    mean = np.where(count > 0, of_each.sum(-1) / some, np.nan)
    deviations = np.where(seeds > 0, of_each - mean[..., None], 0.0)
    variance = (deviations**2).sum(-1) / np.maximum(count - 1, 1) / some
    if flags:
        worth = np.full(mean.shape, np.inf)
        np.divide(mean * (1 - mean), variance, out=worth, where=variance > 0)
        worth = np.where(variance > 0, worth, count)
        worth = np.clip(worth, count, seeds.sum(-1))
        low, high = np.moveaxis(
            wilson_interval(np.nan_to_num(mean) * worth, worth, confidence), -1, 0
        )
        return mean, low, high
    half = stdtrit(np.maximum(count - 1, 1), 0.5 + 0.5 * confidence) * np.sqrt(variance)
    half = np.where(count > 1, half, np.nan)
    return mean, mean - half, mean + half
