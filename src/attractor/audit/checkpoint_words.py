"""An audit of checkpoints in words: its sentences, its tables, and an object for each head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.audit.heads import name
from attractor.audit.movement import Direction, Size
from attractor.audit.words import Rows, counted, percent
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
        words = Counter(_word(one) for one in here)
        lines.append(
            "Seen from the margin solutions of what they select, beside "
            f"{data.attrs['draws']:,} draws of turned heads ({percent(data.attrs['alpha'])} for "
            f"all together): {counted(words)}."
        )
    return lines


def movement_table(
    found: list[dict[str, Any]], *, without: Collection[str] = ()
) -> tuple[tuple[str, ...], Rows]:
    """Names of columns, and a row for each head from each checkpoint.

    Args:
        found: What ``movements_of`` returns.
        without: Columns to leave out.
    """
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "from": lambda one: one["checkpoint"],
        "head": name,
        "size": lambda one: one["size"],
        "norm ratio": lambda one: _number(one.get("norm_ratio")),
        "along itself": lambda one: _number(_square(one.get("radial_cosine"))),
        "same selection": lambda one: _number(one.get("agreement")),
        "top probability": _tops,
        "direction": lambda one: one["direction"],
        "cosine": lambda one: " / ".join(map(_number, (one.get("cosine") or {}).values())) or "-",
        "of draws": _draws,
        "together": lambda one: _number(one.get("p_together")),
        "of other heads": lambda one: _number(one.get("cosine_other_heads")),
    }
    for column in without:
        columns.pop(column)
    rows = [tuple(cell(one) for cell in columns.values()) for one in found]
    return tuple(columns), rows


def movement_layers(found: list[dict[str, Any]]) -> tuple[tuple[str, ...], Rows]:
    """Names of columns, and medians and counts of each layer in a row.

    Args:
        found: What ``movements_of`` returns.
    """
    directions = [word for word in Direction if any(_word(one) == word for one in found)]
    rows: Rows = []
    for checkpoint, layer in dict.fromkeys((one["checkpoint"], one["layer"]) for one in found):
        here = [one for one in found if (one["checkpoint"], one["layer"]) == (checkpoint, layer)]
        counts = Counter(_word(one) for one in here)
        rows.append(
            (
                checkpoint,
                str(layer),
                str(sum(one["size"].startswith(Size.GROWS) for one in here)),
                str(sum(one["size"].startswith(Size.SHRINKS) for one in here)),
                _median(here, "norm_ratio"),
                _median(here, "agreement"),
                *(str(counts[word]) for word in directions),
            )
        )
    header = ("from", "layer", "grow", "shrink", "norm ratio", "same selection", *directions)
    return tuple(map(str, header)), rows


def _tops(one: dict[str, Any]) -> str:
    before, after = (one.get(f"top_probability_{when}") for when in ("before", "after"))
    return f"{_number(before)} to {_number(after)}"


def _draws(one: dict[str, Any]) -> str:
    draws = one.get("cosine_null") or {}
    low, high = draws.get("smallest"), draws.get("largest")
    return "-" if low is None else f"{_number(low)} to {_number(high)}"


def _word(one: dict[str, Any]) -> str:
    """The direction of a head, without the reason why it was not asked."""
    return one["direction"].partition(":")[0]


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


def _square(value: float | None) -> float | None:
    return None if value is None else value**2


def _median(found: list[dict[str, Any]], variable: str) -> str:
    values = [one[variable] for one in found if one.get(variable) is not None]
    return _number(float(np.median(values))) if values else "-"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
