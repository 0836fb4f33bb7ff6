"""An attribute of a NetCDF file."""

from __future__ import annotations

from pathlib import Path

import h5py

from attractor.containers import netcdf_text

_NAME = "provenance"


def write(file: Path, text: str) -> None:
    """Sets the attribute of the whole file."""
    with h5py.File(file, "r+") as stored:
        stored.attrs[_NAME] = text


def read(file: Path) -> str | None:
    """The text, or None."""
    return netcdf_text(file, _NAME)
