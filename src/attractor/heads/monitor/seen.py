"""What is seen in the picture of a ``HeadMonitor``, in words and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor.results.seen import course, listed, many

if TYPE_CHECKING:
    import xarray as xr

_MOST = 12
"""Heads that are named."""


def records_seen(data: xr.Dataset) -> str:
    """How the highest weights and the margin ratio of every head go over its records.

    Args:
        data: What ``HeadMonitor.to_xarray`` returns.
    """
    steps, heads = data["step"].to_numpy(), data["head"].to_numpy().tolist()
    if not len(steps):
        return "No records yet."
    weight = data["selected_probability"].mean(("sequence", "query"))
    courses = {
        name: f"highest weight {course(weight.sel(head=name).to_numpy())}, margin ratio "
        f"{course(data['margin_ratio'].sel(head=name).to_numpy())}"
        for name in heads[:_MOST]
    }
    rest = f" And {many(len(heads) - _MOST, 'more head')}." if len(heads) > _MOST else ""
    return f"Steps {steps[0]:,} to {steps[-1]:,}. {listed(courses)}{rest}"
