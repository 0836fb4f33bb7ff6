"""Batches: choosing among them, and linear systems of which a singular one fails no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

_Kind = TypeVar("_Kind", bound="Batch")


class Batch:
    """A dataclass whose arrays share their leading axis, of instances or of constraints."""

    def choose(self: _Kind, index: Any) -> _Kind:
        """Indexes the leading axis of every array, parts that are batches included."""

        def chosen(part: Any) -> Any:
            if isinstance(part, np.ndarray):
                return part[index]
            return part.choose(index) if hasattr(part, "choose") else part

        parts = {field.name: chosen(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return replace(self, **parts)  # type: ignore[type-var]


def inverses(matrices: Float[np.ndarray, "k m m"]) -> Float[np.ndarray, "k m m"]:
    """Inverses; NaN where a matrix is singular."""
    return _apart(np.linalg.inv, matrices)


def solutions(
    matrices: Float[np.ndarray, "k m m"], right: Float[np.ndarray, "k m"]
) -> Float[np.ndarray, "k m"]:
    """Solutions of square systems; NaN where a matrix is singular."""
    return _apart(np.linalg.solve, matrices, right[..., None])[..., 0]


def _apart(compute: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """Computes on a batch, or where that fails on its halves."""
    try:
        return compute(*arrays)
    except np.linalg.LinAlgError:
        if len(arrays[0]) == 1:
            return np.full(arrays[-1].shape, np.nan)
    half = len(arrays[0]) // 2
    parts = [[a[:half] for a in arrays], [a[half:] for a in arrays]]
    return np.concatenate([_apart(compute, *part) for part in parts])
