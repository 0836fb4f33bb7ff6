"""NetCDF files that hold something else than a command reads: what it is, and what takes it."""

from __future__ import annotations

from pathlib import Path

from attractor.support.containers import netcdf_text
from attractor.support.errors import FileFormatError, InvalidInputError

RUN, CAPTURED = "attractor trajectory", "attractor captured heads"
"""What files of runs and of captured heads say that they are."""
_OTHERS = {
    RUN: ("a run", "Give it to `attractor verify`"),
    CAPTURED: ("captured heads", "Give it to `attractor audit`"),
    "audit of attention heads": (
        "what an audit found",
        "Give the folder it lies in to `attractor compare`, or read it by "
        "attractor.heads.load_audit",
    ),
    "records of attention heads": (
        "the records of a HeadMonitor",
        "Read it by attractor.heads.load_records, and draw it by "
        "attractor.heads.plots.heads_figure; `attractor audit` takes the heads themselves, which "
        "attractor.heads.capture.capture_heads saves",
    ),
}
"""What such files say that they are, what that is in words, and what takes it."""


def refuse_other_kinds(argument: str, file: Path, wanted: str) -> None:
    """Refuses a file that says it is of a kind that another command or function reads.

    Args:
        argument: The name to use in the error.
        file: A NetCDF file; one that is none is for its reader to refuse.
        wanted: What it is to be.

    Raises:
        InvalidInputError: If it is of another kind.
    """
    for attribute in ("format", "kind"):
        try:
            said = netcdf_text(file, attribute)
        except FileFormatError:
            return
        if said in _OTHERS and said != wanted:
            what, remedy = _OTHERS[said]
            raise InvalidInputError(argument, f"{file.name} holds {what}", remedy)
