"""What an audit of checkpoints found of every head: arrays, objects, sentences and a table."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from attractor.heads.audit.columns import HEAD, Column, Head, Table, counted, percent, written
from attractor.heads.audit.result import MOST_ROWS, column, nested, print_table
from attractor.heads.captured.captured import Word
from attractor.results import Plotted, Printed, finite_or_none, load_data, save_data

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console


KIND = "audit of checkpoints"
"""The kind of a file of one."""

VARIABLES = {
    "norm_ratio": "Frobenius norm of the last matrix over that of the checkpoint's",
    "radial_cosine": "cosine of the change with the checkpoint's matrix; its square is the share",
    "agreement": "share of queries that attend most to the same token at both",
    "top_probability_before": "largest attention on one token at the checkpoint; median",
    "top_probability_after": "the same at the last one",
    "direction": "where the tangential change goes, seen from the margin solution, in words",
    "queries": "queries whose selections the margin problem keeps",
    "rows": "its constraints: tokens that are not selected",
    "gap": "relative duality gap of the margin solution of the last one's selections",
    "gap_null": "the largest of the draws",
    "cosine": "cosine of the tangential change with that of the solution that it can go along",
    "cosine_null": "cosine of every draw: both turned alike, with selections of its own",
    "p_together": "share of draws, the head among them, with a cosine as far from the mean of all, "
    "the largest of all heads and checkpoints in each: family-wise",
}
"""What is known of heads, and what each means; some is not known of every head."""


class Direction(Word):
    """Where the rest of the change goes, seen from the margin solution of what the head selects."""

    TOWARD = (
        "toward",
        "turned toward the margin solution of what it selects now, beyond all draws for all heads "
        "together",
    )
    AWAY = "away", "turned away from that solution, beyond all draws for all heads together"
    ELSEWHERE = "elsewhere", "turned in a way not told apart from heads turned at random"
    OPEN = "certificate open", "a margin problem was not solved to its tolerance"
    NOT_ASKED = "not asked", "no matrix, no turn, or nothing to choose among: the reason follows"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CheckpointAudit(Plotted, Printed):
    """Which way every head moves, from each checkpoint to the last.

    Attributes:
        data: The variables of ``VARIABLES`` over ``checkpoint``, ``layer`` and ``head``; cosines
            and gaps of margin solutions also over ``norm``, those of the null over ``draw``. Its
            attributes are the settings: ``last`` names the last checkpoint, ``alpha``, ``draws``,
            ``seed``.
    """

    _plots = "attractor.heads.plots"

    data: xr.Dataset

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a NetCDF file.

        Raises:
            InvalidInputError: If the path cannot be written.
        """
        save_data(self.data, path, KIND)

    def to_xarray(self) -> xr.Dataset:
        """The labeled arrays."""
        return self.data

    def _picture(self) -> tuple[str, xr.Dataset]:
        return "checkpoint_figure", self.data

    def _seen(self) -> str:

        return " ".join(movement_sentences(self.data))

    def _print(self, console: Console) -> None:

        for line in movement_sentences(self.data):
            console.print(line, highlight=False, markup=False)
        names, rows = movement_table(by_direction(movements_of(self.data)))
        print_table(console, names, rows[:MOST_ROWS], wrapped=("direction",))
        if len(rows) > MOST_ROWS:
            console.print(f"{len(rows) - MOST_ROWS:,} more are in its data.", highlight=False)


def load_checkpoint_audit(path: str | os.PathLike[str]) -> CheckpointAudit:
    """Reads what ``CheckpointAudit.save`` wrote.

    Raises:
        FileFormatError: If the file is no audit of checkpoints.
    """
    return CheckpointAudit(load_data(path, KIND))


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
