"""An attribute of a NetCDF file."""

from __future__ import annotations

import io
from pathlib import Path

import h5py

from attractor.support.containers import netcdf_text

_NAME = "provenance"


def insert(file: Path, text: str) -> bytes:
    """The file with this attribute of the whole of it."""
    content = io.BytesIO(file.read_bytes())
    with h5py.File(content, "r+") as stored:
        stored.attrs[_NAME] = text
    return content.getvalue()


def read(file: Path) -> str | None:
    """The text, or None."""
    return netcdf_text(file, _NAME)
