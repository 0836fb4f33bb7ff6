"""Steepest descent in any geometry as a PyTorch optimizer to drop in."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attractor.geometry import Geometry, get_geometry
from attractor.support.errors import InvalidInputError
from attractor.torch.wide_state import WideStateOptimizer, plain_step, wide_type

MASTER = "master"


class SteepestDescent(WideStateOptimizer):
    """Steepest descent in the norm of any geometry, tensor by tensor.

    With the gradient ``G`` of a tensor of weights ``W``, a step is::

        M <- momentum M + G + weight_decay W
        W <- W - lr argmax {<M, D> : ||D|| <= 1}

    Sign descent is that of "l_inf", spectral descent, which is Muon with exact singular vectors,
    that of "spectral", normalized gradient descent that of "frobenius". A vector counts as a
    matrix of one column, and axes beyond the second as columns. Every tensor takes a step of the
    same length in the norm, and none where ``M`` is exactly zero. Half-precision weights have a
    copy in single precision that takes the steps; they are rounded from it, and it is updated from
    those that other code has changed.

    Every setting is read at every step, and parameter groups may have their own.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor,
        norm: str | Geometry,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> None:
        """Takes parameters, or groups of them with settings of their own.

        Args:
            params: Tensors, pairs of names and tensors, or dictionaries, as for any optimizer of
                PyTorch.
            lr: The length of a step in the norm, zero or more; may be a tensor.
            norm: The geometry, or its name, such as "l_inf", "l_1.5", "spectral" or "nuclear".
            momentum: What remains of the momentum after a step, in [0, 1).
            weight_decay: Multiple of the weights to add to the gradient.

        Raises:
            InvalidInputError: If a setting is out of its range, or a parameter is complex or
                sparse.
        """
        defaults = {
            "lr": lr,
            "norm": _named(norm),
            "momentum": momentum,
            "weight_decay": weight_decay,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, with settings of its own where it has any.

        Raises:
            InvalidInputError: If a setting is out of its range, or a parameter is complex or
                sparse.
        """
        if "norm" in param_group:
            param_group = {**param_group, "norm": _named(param_group["norm"])}
        super().add_param_group(param_group)

    def _step(self, group: dict[str, Any], weights: list[Tensor], gradients: list[Tensor]) -> None:
        geometry = get_geometry(group["norm"])
        decay = group["weight_decay"]
        for weight, slope in zip(weights, gradients, strict=True):
            master = weight if weight.dtype == slope.dtype else self._master(weight)
            if decay != 0:
                slope = slope.add(master, alpha=decay)
            (slope,) = self._with_momentum([weight], [slope], group["momentum"])
            direction = steepest_direction(geometry, slope)
            plain_step([master], [direction], rate=group["lr"], shrinkage=0.0)
            if master is not weight:
                weight.copy_(master)

    def _master(self, weight: Tensor) -> Tensor:
        """The copy of a weight in single precision, up to date."""
        state = self.state[weight]
        if MASTER not in state:
            state[MASTER] = weight.detach().to(wide_type(weight.dtype))
        master = state[MASTER]
        master.copy_(
            torch.where(master.to(weight.dtype) == weight, master, weight.to(master.dtype))
        )
        return master


def steepest_direction(geometry: Geometry, slope: Tensor) -> Tensor:
    """The steepest direction of a tensor of any shape, as of a matrix."""
    matrix = slope.reshape(slope.shape[0] if slope.ndim else 1, -1).as_subclass(ArrayTensor)
    direction = geometry.steepest_descent_direction(matrix)
    return direction.as_subclass(torch.Tensor).reshape(slope.shape)


def _named(norm: str | Geometry) -> str | Geometry:
    """The name of a geometry, for files of states; itself where no name restores it."""
    try:
        geometry = get_geometry(norm)
    except InvalidInputError as error:
        raise InvalidInputError("norm", error.problem, error.remedy) from None
    try:
        return geometry.name if get_geometry(geometry.name) == geometry else geometry
    except InvalidInputError:
        return geometry


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
