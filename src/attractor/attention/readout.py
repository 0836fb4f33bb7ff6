"""Readouts: functions of what attention returns, in arrays of any kind and without JAX.

Margin problems ask no more of a head; a ``Head`` is a readout that can be trained.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.geometry import lengths
from attractor.support.errors import InvalidInputError


class Readout(abc.ABC):
    """Maps attention outputs to predictions: ``h: R^v -> R``, or ``R^C`` for logits of C classes.

    Its arrays may all carry one leading axis of instances: each data set has a readout of its own.
    """

    @abc.abstractmethod
    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """Predictions for outputs: NumPy arrays for NumPy arrays, JAX arrays for JAX arrays.

        Args:
            outputs: ``(*batch, v)`` where all instances share the head, else
                ``(instances, rows, v)``.
        """

    @property
    @abc.abstractmethod
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the head."""

    @property
    @abc.abstractmethod
    def input_dimension(self) -> int:
        """Dimension v of the outputs it reads."""

    @property
    def classes(self) -> int | None:
        """Number of logits it gives for each output, or None where it gives one prediction."""
        return None

    def __call__(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "..."]:
        """Predictions ``h(x)`` for outputs ``x``.

        Args:
            outputs: ``(*batch, v)``; with an axis of instances, that axis leads the batch.

        Returns:
            ``(*batch)``, or ``(*batch, C)`` for logits.

        Raises:
            InvalidInputError: If the outputs have another dimension or number of instances.
        """
        self.check_outputs(outputs.shape)
        return self._by_instance(self.predict, outputs)

    def reach(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """Size of the terms that add up to a prediction: rounding errors are relative to it."""
        sizes = abs(self(outputs))
        return sizes if self.classes is None else sizes.max(-1)

    def check_outputs(self, shape: tuple[int, ...]) -> None:
        """Checks that the head fits outputs of a shape.

        Raises:
            InvalidInputError: If they have another dimension or number of instances.
        """
        self.check_dimension(shape[-1])
        if self.instances is not None and (len(shape) < 2 or shape[0] != self.instances):
            raise InvalidInputError(
                "head",
                f"it has {self.instances} instances, but the outputs have the shape {shape}",
                "Give one head for all, or one for each instance of the tokens",
            )

    def check_dimension(self, dimension: int) -> None:
        """Checks that the head reads vectors of a dimension.

        Raises:
            InvalidInputError: If it reads others.
        """
        if dimension != self.input_dimension:
            raise InvalidInputError(
                "head",
                f"it reads vectors of dimension {self.input_dimension}, "
                f"but the values have {dimension}",
                f"Give a head for dimension {dimension}",
            )

    def _by_instance(
        self, function: Callable[[Any], Any], outputs: Float[Any, "*batch v"]
    ) -> Float[Any, "..."]:
        """Calls a function that wants one axis of rows behind that of instances."""
        if self.instances is None:
            return function(outputs)
        flat = outputs.reshape(outputs.shape[0], -1, outputs.shape[-1])
        found = function(flat)
        return found.reshape(*outputs.shape[:-1], *found.shape[2:])


class LinearReadout(Readout):
    """The linear readout ``h(x) = v^T x``.

    Attributes:
        weight: The vector ``v``, ``(v,)`` or ``(instances, v)``.
    """

    weight: Float[Any, "*instances v"]

    def __init__(self, weight: Float[np.ndarray, "*instances v"]) -> None:
        """Stores the vector, which is not checked."""
        self.weight = weight

    @property
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the vector."""
        return None if self.weight.ndim == 1 else self.weight.shape[0]

    @property
    def input_dimension(self) -> int:
        """Length of the vector."""
        return self.weight.shape[-1]

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """``v^T x``."""
        if self.weight.ndim == 1:
            return outputs @ self.weight
        return (outputs @ self.weight[..., None])[..., 0]

    def reach(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """``||v|| ||x||``."""
        return self._by_instance(self._norms, outputs)

    def _norms(self, outputs: Any) -> Any:
        length = lengths(self.weight)[..., None]
        return lengths(outputs) * (length if self.weight.ndim > 1 else length[0])
