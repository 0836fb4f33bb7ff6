"""What an audit of checkpoints found of every head."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from attractor.heads.audit.result import MOST_ROWS, print_table
from attractor.heads.captured.word import Word
from attractor.results import Plotted, Printed, load_data, save_data

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
        from attractor.heads.checkpoints.checkpoint_words import movement_sentences

        return " ".join(movement_sentences(self.data))

    def _print(self, console: Console) -> None:
        from attractor.heads.checkpoints.checkpoint_words import (
            by_direction,
            movement_sentences,
            movement_table,
            movements_of,
        )

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
