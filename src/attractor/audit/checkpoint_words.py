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
    places = {axis: data[axis].to_numpy() for axis in _PLACE}
    columns = {}
    for variable, array in data.data_vars.items():
        ordered = array.transpose(*_PLACE, ...)
        axes = ordered.dims[3:]
        labels = data[axes[0]].to_numpy().tolist() if axes else []
        columns[str(variable)] = ordered.to_numpy(), axes, labels
    found = []
    for place in np.ndindex(columns["direction"][0].shape):
        if not columns["direction"][0][place]:
            continue  # a hole in the table of layers and heads: not asked about
        entry: dict[str, Any] = {
            axis: where[at].item() for (axis, where), at in zip(places.items(), place, strict=True)
        }
        for name, (values, axes, labels) in columns.items():
            entry[name] = _plain(values[place], axes, labels)
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
    lines, found = [], movements_of(data)
    for checkpoint in data["checkpoint"].to_numpy().tolist():
        here = [one for one in found if one["checkpoint"] == checkpoint]
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


def _plain(value: Any, axes: tuple[Any, ...], labels: list[Any]) -> Any:
    if not axes:
        return str(value) if isinstance(value, str) else finite_or_none(value)
    if axes == ("draw",):
        names = ("mean", "deviation", "smallest", "largest")
        found = (value.mean(), value.std(ddof=min(1, len(value) - 1)), value.min(), value.max())
        return dict(zip(names, map(finite_or_none, found), strict=True))
    return dict(zip(labels, map(finite_or_none, value), strict=True))


def _plural(size: str) -> str:
    """A word for the sizes of several heads."""
    return size.replace("grows", "grow").replace("shrinks", "shrink")
