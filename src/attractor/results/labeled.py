"""Labeled arrays of results, made where somebody asks for them: xarray takes long to load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr


def labeled(
    arrays: Mapping[str, Any],
    coordinates: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Arrays with the names of their axes, as an ``xarray.Dataset`` takes them."""
    import xarray as xr

    return xr.Dataset(arrays, coordinates, attributes)
