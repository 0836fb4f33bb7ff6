"""Checks that the records in a file have the expected axes and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from attractor.support.errors import TrialStatus

if TYPE_CHECKING:
    import xarray as xr

Axes = tuple[str, ...]


def check_records(
    data: xr.Dataset,
    *,
    numbered: Iterable[str],
    arrays: Mapping[str, Axes | list[Axes]],
    sizes: Mapping[str, int],
) -> None:
    """Checks labeled arrays of a file.

    Args:
        data: The arrays; ``status``, where it is among them, holds values of ``TrialStatus``.
        numbered: Axes whose labels are numbers that differ.
        arrays: The axes of each array, or those it may have; it holds numbers.
        sizes: How long axes are.

    Raises:
        ValueError: If anything is otherwise.
    """
    for name, allowed in arrays.items():
        if name not in data:
            raise ValueError(f"{name} is missing")
        if data[name].dims not in (allowed if isinstance(allowed, list) else [allowed]):
            raise ValueError(f"{name} has the axes {data[name].dims}")
        if data[name].dtype.kind not in "iuf":
            raise ValueError(f"{name} is of {data[name].dtype}")
    for name, size in sizes.items():
        if data.sizes[name] != size:
            raise ValueError(f"the records and what they are of disagree on {name}")
    for name in numbered:
        labels = data.indexes[name] if name in data.indexes else None
        if not data.sizes[name] or labels is None or labels.dtype.kind not in "iuf":
            raise ValueError(f"{name} is not numbered")
        if not labels.is_unique or labels.hasnans:
            raise ValueError(f"the numbers of {name} are not different")
    if not np.isin(data["status"], [int(status) for status in TrialStatus]).all():
        raise ValueError("status has a number that means nothing")
