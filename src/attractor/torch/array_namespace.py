"""PyTorch tensors as arrays of the array-API standard, which geometries are written against."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class ArrayTensor(torch.Tensor):
    """A tensor that answers ``__array_namespace__``, and whose results are such tensors again.

    ``tensor.as_subclass(ArrayTensor)`` shares its memory. PyTorch has no such method of its own,
    and giving one to every tensor would change how other libraries treat them.
    """

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the standard, on tensors."""
        return _NAMESPACE


class _Namespace:
    """PyTorch, but for the functions that the standard spells differently."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def max(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The largest entries along some axes, or of all."""
        return torch.amax(x, _axes(x, axis), keepdims)

    @staticmethod
    def sum(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Sums along some axes, or of all entries."""
        return torch.sum(x, _axes(x, axis), keepdims)

    @staticmethod
    def all(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Whether all entries along some axes hold."""
        return torch.all(x, _axes(x, axis), keepdims)

    @staticmethod
    def sign(x: Tensor, /) -> Tensor:
        """Signs, NaN of NaN, where PyTorch has zero."""
        return torch.where(x.isnan(), x, torch.sign(x))

    @staticmethod
    def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The place of the first of the largest entries, as the standard has it."""
        largest = _Namespace.max(x, axis=axis, keepdims=True)
        return torch.argmax(((x == largest) | x.isnan()).to(torch.int8), axis, keepdims)


def _axes(x: Tensor, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    return axis if isinstance(axis, tuple) else (axis,)


_NAMESPACE = _Namespace()
