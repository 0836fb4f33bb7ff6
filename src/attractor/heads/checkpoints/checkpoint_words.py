"""An audit of checkpoints as an object for each head, as sentences and as one table."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attractor.heads.audit.columns import HEAD, Column, Head, Table, counted, percent, written
from attractor.heads.audit.heads import column, nested
from attractor.heads.checkpoints.checkpoint_result import Direction
from attractor.results import finite_or_none

if TYPE_CHECKING:
    import xarray as xr

PLACE = ("checkpoint", "layer", "head")
"""The axes that say which head it is, and from which checkpoint."""
TOLD = (Direction.TOWARD, Direction.AWAY)
"""Directions that are told apart from those of turned heads."""
_OF_DRAWS = ("mean", "deviation", "smallest", "largest")


def deviations_from_draws(data: xr.Dataset) -> Float[np.ndarray, "checkpoint layer head"]:
    """Cosines of heads, in standard deviations of their draws from the mean of these.

    Args:
        data: The arrays of an audit of checkpoints.
    """
    if "cosine_null" not in data:
        return np.full([data.sizes[axis] for axis in PLACE], np.nan)
    cosine, _ = column(data, "cosine", PLACE)
    draws, _ = column(data, "cosine_null", PLACE)
    mean, deviation = draws[..., 0], draws[..., 1]
    return (cosine[..., 0] - mean) / np.where(deviation > 0, deviation, np.nan)


def movements_of(data: xr.Dataset) -> list[Head]:
    """What is known of every head from every checkpoint, in the order of checkpoints and layers.

    What is known in several norms is an object by their names; of draws their mean, standard
    deviation, smallest and largest remain. NaN and infinity are None.

    Args:
        data: The arrays of an audit of checkpoints.
    """
    names = [str(name) for name in data.data_vars]
    columns = {name: column(data, name, PLACE, _OF_DRAWS) for name in names}
    above, found = deviations_from_draws(data), []
    for place in np.ndindex(above.shape):
        if not columns["direction"][0][place]:
            continue  # a hole in the table of layers and heads: not asked about
        entry: dict[str, Any] = {
            axis: data[axis].to_numpy()[at].item() for axis, at in zip(PLACE, place, strict=True)
        }
        entry |= {name: nested(array[place], axes) for name, (array, axes) in columns.items()}
        found.append(entry | {"deviations_from_draws": finite_or_none(above[place])})
    return found


def by_direction(found: list[Head]) -> list[Head]:
    """Heads with a direction first.

    Args:
        found: What ``movements_of`` returns.
    """
    return sorted(found, key=lambda one: one["direction"] not in TOLD)


def movement_sentences(data: xr.Dataset) -> list[str]:
    """The findings, a sentence for each checkpoint: directions.

    Args:
        data: The arrays of an audit of checkpoints.
    """
    lines, found = [], movements_of(data)
    for checkpoint in data["checkpoint"].to_numpy().tolist():
        here = [one["direction"] for one in found if one["checkpoint"] == checkpoint]
        directions = counted(Counter(word.partition(":")[0] for word in here))
        lines.append(
            f"From {checkpoint} to {data.attrs['last']}, directions of {len(here):,} heads, seen "
            "from the margin solutions of what they select, beside "
            f"{data.attrs['draws']:,} draws of turned heads ({percent(data.attrs['alpha'])} for "
            f"all together): {directions}."
        )
    return lines


MOVEMENTS = (
    Column("from", "the earlier checkpoint", lambda one: one["checkpoint"]),
    HEAD,
    Column(
        "norm ratio",
        "Frobenius norm of the matrix of the head over that at the earlier checkpoint",
        lambda one: _two(one.get("norm_ratio")),
    ),
    Column(
        "in place",
        "cosine of the change with the earlier matrix; beyond .71 most of the change is along it",
        lambda one: _two(one.get("radial_cosine")),
    ),
    Column(
        "agreement",
        "share of queries that attend most to the same token at both",
        lambda one: _two(one.get("agreement")),
    ),
    Column(
        "direction",
        "where the rest of the change goes, seen from the margin solution of what the head selects "
        "now, in a word",
        lambda one: one["direction"],
    ),
    Column(
        "cosine",
        "cosine of that rest with what it can go along of that solution: 1 for a straight turn",
        lambda one: " / ".join(map(_two, (one.get("cosine") or {}).values())) or "-",
    ),
    Column(
        "from draws",
        "how far that cosine is from the mean of heads turned at random, in their standard "
        "deviations",
        lambda one: _two(one["deviations_from_draws"]),
    ),
    Column(
        "together",
        "share of draws, the head among them, whose cosine deviates as much, for all heads and "
        "checkpoints at once",
        lambda one: _two(one.get("p_together")),
    ),
)
"""The columns of every head from every checkpoint."""


def movement_table(found: list[Head]) -> Table:
    """A row for each head from each checkpoint.

    Args:
        found: What ``movements_of`` returns.
    """
    return written(MOVEMENTS, found)


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
