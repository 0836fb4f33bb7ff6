"""The contract of a head."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64

_NODES, _WEIGHTS = (array / 2 for array in np.polynomial.legendre.leggauss(4))
_SHORT = 1e-3
"""Length of a segment, relative to its ends, on which the quadrature alone is exact."""


class Head(eqx.Module):
    """Maps attention outputs to predictions: ``h: R^v -> R``, or ``R^C`` for logits of C classes.

    Its arrays may all carry one leading axis of instances: each data set has a head of its own.
    Attributes that are arrays are its parameters. A new head is one small class, and one line in
    ``heads/names.py`` to be read from files again. It needs no derivative: JAX finds it.
    """

    name: ClassVar[str]

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

    def mean_gradient(
        self, start: Float[Array, "*batch v"], end: Float[Array, "*batch v"]
    ) -> Float[Array, "*batch v"]:
        """Gradient averaged over the segments between outputs, for heads of one prediction.

        It is the vector g with ``h(end) - h(start) = <g, end - start>``, free of the cancellation
        of the left side: by Gauss-Legendre quadrature, whose error along the segment is taken
        out where the segment is long enough for the left side to be exact.
        """
        step = end - start
        gradient = jax.grad(lambda x: self(x).sum())
        terms = zip(_WEIGHTS.tolist(), (_NODES + 0.5).tolist(), strict=True)
        mean = sum(weight * gradient(start + node * step) for weight, node in terms)
        length = (step**2).sum(-1)
        long = length > _SHORT**2 * ((start**2).sum(-1) + (end**2).sum(-1))
        error = self(end) - self(start) - (mean * step).sum(-1)
        missing = jnp.where(long, error / jnp.where(long, length, 1), 0)
        return mean + missing[..., None] * step

    def for_instances(self, positions: Any) -> Head:
        """The heads of the instances at some positions, along a leading axis."""
        if self.instances is None:
            shape = np.shape(positions)
            return jax.tree.map(lambda leaf: np.broadcast_to(leaf, shape + np.shape(leaf)), self)
        return jax.tree.map(lambda leaf: leaf[positions], self)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that define the head, for saving."""
        return {name: np.asarray(leaf) for name, leaf in vars(self).items()}

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


def checked_array(value: Any, axes: tuple[str, ...]) -> Float[np.ndarray, "..."]:
    """An array of a head, with the axes named or with an axis of instances before them.

    Raises:
        InvalidInputError: If the shape is different, or an entry is not a finite number.
    """
    array = as_float64("head", value)
    if array.ndim - len(axes) not in (0, 1) or 0 in array.shape:
        own = ", ".join(axes) + ("," if len(axes) == 1 else "")
        lead = ", ".join(("instances", *axes)) + ("," if not axes else "")
        raise InvalidInputError("head", f"the shape is {array.shape}", f"Give ({own}), or ({lead})")
    return array


def share_instances(*arrays: tuple[np.ndarray, int]) -> list[np.ndarray]:
    """Gives all arrays the axis of instances that some of them have.

    Args:
        *arrays: Each with its number of axes without that of instances.

    Raises:
        InvalidInputError: If they have different numbers of instances.
    """
    counts = {array.shape[0] for array, axes in arrays if array.ndim > axes}
    if not counts:
        return [array for array, _ in arrays]
    if len(counts) > 1:
        raise InvalidInputError(
            "head",
            f"its arrays have {' and '.join(map(str, sorted(counts)))} instances",
            "Give every array the same number of instances, or none",
        )
    lead = tuple(counts)
    return [
        array if array.ndim > axes else np.broadcast_to(array, lead + array.shape)
        for array, axes in arrays
    ]
