"""An audit of checkpoints in sentences, and an object for each head."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.audit.columns import counted, percent
from attractor.audit.movement_columns import direction_of
from attractor.records import finite_or_none

if TYPE_CHECKING:
    import xarray as xr

_PLACE = ("checkpoint", "layer", "head")


def movements_of(data: xr.Dataset) -> list[dict[str, Any]]:
    """What is known of every head from every checkpoint, in the order of checkpoints and layers.

    What is known in several norms is an object by their names; of draws their mean, standard
    deviation, smallest and largest remain. NaN and infinity are None.

    Args:
        data: The arrays of an audit of checkpoints.
    """
    found = []
    for place in np.ndindex(data["direction"].shape):
        if not data["direction"].to_numpy()[place]:
            continue  # a hole in the table of layers and heads: not asked about
        entry: dict[str, Any] = {
            axis: data[axis].to_numpy()[at].item() for axis, at in zip(_PLACE, place, strict=True)
        }
        for variable, array in data.data_vars.items():
            value = array.transpose(*_PLACE, ...).to_numpy()[place]
            entry[str(variable)] = _plain(value, array.dims[3:], data)
        draws = entry.get("cosine_null")
        if draws and draws["deviation"]:
            own = next(iter(entry["cosine"].values()))
            entry["deviations_from_draws"] = (own - draws["mean"]) / draws["deviation"]
        found.append(entry)
    return found


def movement_summary(data: xr.Dataset) -> dict[str, Any]:
    """The findings as JSON takes them: settings, and an object a head.

    Args:
        data: The arrays of an audit of checkpoints.
    """
    settings = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in data.attrs.items()
    }
    return {"settings": settings, "heads": movements_of(data)}


def movement_sentences(data: xr.Dataset) -> list[str]:
    """The findings, two sentences for each checkpoint: sizes and selections, and directions.

    Args:
        data: The arrays of an audit of checkpoints.
    """
    lines = []
    for checkpoint in data["checkpoint"].to_numpy().tolist():
        here = [one for one in movements_of(data) if one["checkpoint"] == checkpoint]
        sizes = Counter(one["size"] for one in here)
        several = Counter({_plural(word) if n > 1 else word: n for word, n in sizes.items()})
        line = (
            f"From {checkpoint} to {data.attrs['last']}, of {len(here):,} heads {counted(several)}"
        )
        ratios = [one["norm_ratio"] for one in here if one.get("norm_ratio") is not None]
        if ratios:
            line += f" (median norm ratio {np.median(ratios):.2f})"
        same = [one["agreement"] for one in here if one.get("agreement") is not None]
        if same:
            line += (
                f"; in the median head {percent(float(np.median(same)))} of queries select the same"
            )
        lines.append(f"{line}.")
        words = Counter(direction_of(one) for one in here)
        lines.append(
            "Seen from the margin solutions of what they select, beside "
            f"{data.attrs['draws']:,} draws of turned heads ({percent(data.attrs['alpha'])} for "
            f"all together): {counted(words)}."
        )
    return lines


def _plain(value: Any, axes: tuple[Any, ...], data: xr.Dataset) -> Any:
    if not axes:
        return str(value) if isinstance(value, str) else finite_or_none(value)
    if axes == ("draw",):
        names = ("mean", "deviation", "smallest", "largest")
        found = (value.mean(), value.std(ddof=min(1, len(value) - 1)), value.min(), value.max())
        return dict(zip(names, map(finite_or_none, found), strict=True))
    labels = data[axes[0]].to_numpy().tolist()
    return dict(zip(labels, map(finite_or_none, value), strict=True))


def _plural(size: str) -> str:
    """A word for the sizes of several heads."""
    return size.replace("grows", "grow").replace("shrinks", "shrink")
