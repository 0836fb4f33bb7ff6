"""The contract of a head."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.attention.readout import Readout
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64

_NODES, _WEIGHTS = (array / 2 for array in np.polynomial.legendre.leggauss(4))
_SHORT = 1e-3
"""Length of a segment, relative to its ends, on which the quadrature alone is exact."""


class Head(Readout, eqx.Module):
    """Maps attention outputs to predictions: ``h: R^v -> R``, or ``R^C`` for logits of C classes.

    Its arrays may all carry one leading axis of instances: each data set has a head of its own.
    Attributes that are arrays are its parameters. A new head is one small class, and one line in
    ``heads/names.py`` to be read from files again. It needs no derivative: JAX finds it.
    """

    name: ClassVar[str]

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
