"""An attribute of a NetCDF file."""

from __future__ import annotations

import io
from pathlib import Path

import h5py

_NAME = "provenance"


def write(file: Path, text: str) -> None:
    """Sets the attribute of the whole file, in memory: see ``attractor.storage.netcdf``."""
    content = io.BytesIO(file.read_bytes())
    try:
        with h5py.File(content, "r+") as stored:
            stored.attrs[_NAME] = text
    except OSError as error:
        raise ValueError(error) from None
    file.write_bytes(content.getvalue())


def read(file: Path) -> str | None:
    """The text, or None."""
    with h5py.File(file, "r") as stored:
        text = stored.attrs.get(_NAME)
    if text is not None and not isinstance(text, str):
        raise ValueError(f"its attribute {_NAME} is no text")
    return text
