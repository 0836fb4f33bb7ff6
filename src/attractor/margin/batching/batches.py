"""Batches: choosing among them, and arithmetic that gives an instance the same bits in any of them.

Products of stacked matrices, LAPACK and sums along the last axes work on one instance at a time.
What NumPy does in other ways where there are more instances is done here instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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

        names = type(self).__dataclass_fields__  # type: ignore[attr-defined]
        return type(self)(**{name: chosen(getattr(self, name)) for name in names})


def inner_products(
    first: Float[np.ndarray, "k *shape"], second: Float[np.ndarray, "k *shape"]
) -> Float[np.ndarray, "k"]:
    """Sums of the products of all entries of each instance.

    NumPy adds up each along its own axis. ``einsum`` adds up long ones in portions that begin where
    the batch does, and BLAS has code for old processors whose sums depend on where in memory an
    instance begins.
    """
    shape = len(first), math.prod(first.shape[1:])
    return np.multiply(first.reshape(shape), second.reshape(shape)).sum(-1)


def powers(
    sizes: Float[np.ndarray, "k *shape"], exponent: Float[np.ndarray, "k *ones"]
) -> Float[np.ndarray, "k *shape"]:
    """Numbers to a power, one exponent an instance; small whole ones are products.

    NumPy squares where an exponent is two, and has other such shortcuts, which round differently,
    where one exponent serves a whole loop; so each number is given its own.
    """
    exponents = exponent.ravel()
    distinct = set(exponents.tolist())
    if len(distinct) == 1 and distinct <= _PRODUCTS.keys():
        return _PRODUCTS[distinct.pop()](sizes)
    own = np.empty(sizes.shape)
    own[:] = exponent
    if sizes.size == 1:  # a loop of a single number has one exponent, too
        found = np.power(np.repeat(sizes, 2), np.repeat(own, 2))[:1].reshape(sizes.shape)
    else:
        found = np.power(sizes, own)
    for whole in distinct & _PRODUCTS.keys():
        places = exponents == whole
        found[places] = _PRODUCTS[whole](sizes[places])
    return found


_PRODUCTS: dict[float, Callable[[np.ndarray], np.ndarray]] = {
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
}


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
