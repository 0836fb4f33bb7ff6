"""The linear head."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from attractor.attention.heads.head import Head, checked_array
from attractor.geometry import lengths


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
        self.weight = checked_array(weight, ("v",))

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """``v^T x``."""
        if self.weight.ndim == 1:
            return outputs @ self.weight
        return (outputs @ self.weight[..., None])[..., 0]

    def reach(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """``||v|| ||x||``."""
        return self._by_instance(self._norms, outputs)

    def mean_gradient(
        self, start: Float[Array, "*batch v"], end: Float[Array, "*batch v"]
    ) -> Float[Array, "*batch v"]:
        """``v`` itself."""
        return jnp.broadcast_to(self.weight, start.shape)

    @property
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the vector."""
        return None if self.weight.ndim == 1 else self.weight.shape[0]

    @property
    def input_dimension(self) -> int:
        """Dimension of the vector."""
        return self.weight.shape[-1]

    def _norms(self, outputs: Any) -> Any:
        length = lengths(self.weight)[..., None]
        return lengths(outputs) * (length if self.weight.ndim > 1 else length[0])
