"""Heads: the fixed function that turns what attention returns into a prediction."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from attractor.errors import InvalidInputError
from attractor.precision import as_float64


class Head(eqx.Module):
    """Maps attention outputs to predictions, ``h: R^v -> R``.

    Its arrays may all carry one leading axis of instances: each data set has a head of its own.
    A new head is one small class and one line in ``_HEADS``.
    """

    name: ClassVar[str]

    @abc.abstractmethod
    def __call__(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """Predictions for outputs; with an axis of instances, that axis leads the batch."""

    @property
    @abc.abstractmethod
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the head."""

    @property
    @abc.abstractmethod
    def input_dimension(self) -> int:
        """Dimension v of the outputs it reads."""

    def for_instances(self, positions: Any) -> Head:
        """The heads of the instances at some positions, along a leading axis."""
        if self.instances is None:
            shape = np.shape(positions)
            return jax.tree.map(lambda leaf: np.broadcast_to(leaf, shape + np.shape(leaf)), self)
        return jax.tree.map(lambda leaf: leaf[positions], self)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that define the head, for saving."""
        return {name: np.asarray(leaf) for name, leaf in vars(self).items()}


class LinearHead(Head):
    """The linear head ``h(x) = v^T x``.

    Attributes:
        weight: The vector ``v``, ``(v,)`` or ``(instances, v)``.
    """

    name: ClassVar[str] = "linear"
    weight: Float[Any, "*instances v"]

    def __init__(self, weight: Any) -> None:
        """Checks and stores the vector.

        Args:
            weight: ``(v,)``, or ``(instances, v)`` for a vector per data set.

        Raises:
            InvalidInputError: If the shape is different, or an entry is not a finite number.
        """
        weight = as_float64("head", weight)
        if weight.ndim not in (1, 2) or 0 in weight.shape:
            raise InvalidInputError(
                "head", f"the shape is {weight.shape}", "Give (v,), or (instances, v)"
            )
        self.weight = weight

    def __call__(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """Predictions ``v^T x`` for outputs ``x``."""
        if self.weight.ndim == 1:
            return outputs @ self.weight
        flat = outputs.reshape(outputs.shape[0], -1, outputs.shape[-1])
        return (flat @ self.weight[..., None]).reshape(outputs.shape[:-1])

    @property
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the vector."""
        return None if self.weight.ndim == 1 else self.weight.shape[0]

    @property
    def input_dimension(self) -> int:
        """Dimension of the vector."""
        return self.weight.shape[-1]


_HEADS: dict[str, type[Head]] = {LinearHead.name: LinearHead}


def head_from_arrays(name: str, arrays: Mapping[str, Any]) -> Head:
    """Builds a head again from its name and its arrays.

    Raises:
        InvalidInputError: If no head has that name, or the arrays do not define one.
    """
    if name not in _HEADS:
        raise InvalidInputError(
            "head", f"there is none named {name!r}", f"Known heads: {', '.join(_HEADS)}"
        )
    try:
        return _HEADS[name](**arrays)
    except TypeError as error:
        raise InvalidInputError(
            "head", f"the arrays {sorted(arrays)} do not define {name!r}", str(error)
        ) from error
