"""Records in NetCDF files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attractor.records import load_data

if TYPE_CHECKING:
    import xarray as xr

KIND = "records of attention heads"
"""By which a file of them is known."""


def load_records(path: str | os.PathLike[str]) -> xr.Dataset:
    """Reads a file that ``HeadMonitor.save`` wrote.

    Raises:
        FileFormatError: If it is none.
    """
    return load_data(path, KIND)
