"""Median ratios of maps over data sets, with their intervals."""

from __future__ import annotations

import xarray as xr

from attractor.maps.bias import median_interval


def medians(ratio: xr.DataArray) -> xr.Dataset:
    """Median ratios over data sets, with intervals that hold for any distribution."""
    found = xr.apply_ufunc(
        median_interval,
        ratio.squeeze("seed", drop=True) if "seed" in ratio.dims else ratio,
        input_core_dims=[["instance"]],
        output_core_dims=[[], [], []],
        vectorize=True,
    )
    return xr.Dataset(dict(zip(("median", "low", "high"), found, strict=True)))
