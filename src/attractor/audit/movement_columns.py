"""The tables of an audit of checkpoints: each column with its heading and its meaning."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from attractor.audit.checkpoint_result import Direction, Size
from attractor.audit.columns import HEAD, LAYERS, Column, Head, Table, written

FROM = Column("from", "the earlier checkpoint", lambda one: one["checkpoint"])
NORM_RATIO = (
    "norm ratio",
    "Frobenius norm of the matrix of the head over that at the earlier checkpoint",
)
SAME_SELECTION = (
    "same selection",
    "share of queries that attend most to the same token at both",
)
MOVEMENTS = (
    FROM,
    HEAD,
    Column("size", "whether the head grew or shrank, in a word", lambda one: one["size"]),
    Column(*NORM_RATIO, lambda one: _ratio(one.get("norm_ratio"))),
    Column(
        "along itself",
        "part of the change, of its square, that is along the matrix itself",
        lambda one: _ratio(_square(one.get("radial_cosine"))),
    ),
    Column(*SAME_SELECTION, lambda one: _ratio(one.get("agreement"))),
    Column(
        "top probability",
        "largest attention on one token before and after; median over queries",
        lambda one: " to ".join(
            _ratio(one.get(f"top_probability_{when}")) for when in ("before", "after")
        ),
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
        lambda one: " / ".join(map(_ratio, (one.get("cosine") or {}).values())) or "-",
    ),
    Column(
        "of draws",
        "smallest and largest such cosine of heads turned at random",
        lambda one: _draws(one),
    ),
    Column(
        "together",
        "share of draws, the head among them, whose cosine deviates as much, for all heads and "
        "checkpoints at once",
        lambda one: _ratio(one.get("p_together")),
    ),
    Column(
        "of other heads",
        "mean cosine of the changes of the other heads of the layer with this solution",
        lambda one: _ratio(one.get("cosine_other_heads")),
    ),
)
"""The columns of every head from every checkpoint."""


def movement_table(found: list[Head], *, without: Collection[str] = ()) -> Table:
    """A row for each head from each checkpoint.

    Args:
        found: What ``movements_of`` returns.
        without: Columns to leave out.
    """
    return written(MOVEMENTS, found, without)


MOVED_LAYERS = (
    Column("from", FROM.meaning, lambda here: here[0]["checkpoint"]),
    Column("layer", LAYERS[0].meaning, LAYERS[0].cell),
    Column("grow", "heads whose norm became larger", lambda here: _of_size(here, Size.GROWS)),
    Column("shrink", "heads whose norm became smaller", lambda here: _of_size(here, Size.SHRINKS)),
    Column(*NORM_RATIO, lambda here: _median(here, "norm_ratio")),
    Column(*SAME_SELECTION, lambda here: _median(here, "agreement")),
)
"""The columns of every layer from every checkpoint; the counts of directions follow."""


def movement_layers(found: list[Head]) -> Table:
    """Medians and counts of each layer in a row.

    Args:
        found: What ``movements_of`` returns.
    """
    counts = [
        Column(
            str(word),
            word.message,
            lambda here, word=word: str(sum(direction_of(one) == word for one in here)),
        )
        for word in Direction
        if any(direction_of(one) == word for one in found)
    ]
    places = dict.fromkeys((one["checkpoint"], one["layer"]) for one in found)
    rows = [
        [one for one in found if (one["checkpoint"], one["layer"]) == place] for place in places
    ]
    return written([*MOVED_LAYERS, *counts], rows)


def direction_of(one: Head) -> str:
    """The direction of a head, without the reason why it was not asked."""
    return one["direction"].partition(":")[0]


def _of_size(here: list[Head], size: Size) -> str:
    return str(sum(one["size"].startswith(size) for one in here))


def _draws(one: Head) -> str:
    draws = one.get("cosine_null") or {}
    low, high = draws.get("smallest"), draws.get("largest")
    return "-" if low is None else f"{_ratio(low)} to {_ratio(high)}"


def _square(value: float | None) -> float | None:
    return None if value is None else value**2


def _median(found: list[Head], variable: str) -> str:
    values = [one[variable] for one in found if one.get(variable) is not None]
    return _ratio(float(np.median(values))) if values else "-"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
