"""The head with one hidden layer of rectified linear units."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.attention.heads.head import Head, checked_array, share_instances
from attractor.errors import InvalidInputError
from attractor.geometry import lengths


class ReLUHead(Head):
    """A multilayer perceptron ``h(x) = c^T max(V^T x, 0)``.

    Its derivative is zero in a unit whose input ``(V^T x)_j`` is exactly zero. Source:
    *Transformers as Support Vector Machines* (arXiv 2308.16898), experiments on nonlinear heads,
    where ``c`` is all ones.

    Attributes:
        hidden: The matrix ``V``, ``(v, k)`` or ``(instances, v, k)``: a column a unit.
        weight: The vector ``c``, ``(k,)`` or ``(instances, k)``.
    """

    name: ClassVar[str] = "relu"
    hidden: Float[Any, "*instances v k"]
    weight: Float[Any, "*instances k"]

    def __init__(self, hidden: Any, weight: Any = None) -> None:
        """Checks and stores both layers.

        Args:
            hidden: ``(v, k)``, or ``(instances, v, k)``.
            weight: ``(k,)``, or ``(instances, k)``; default: ones.

        Raises:
            InvalidInputError: If shapes are different, or an entry is not a finite number.
        """
        hidden = checked_array(hidden, ("v", "k"))
        units = hidden.shape[-1]
        weight = np.ones(units) if weight is None else checked_array(weight, ("k",))
        if weight.shape[-1] != units:
            raise InvalidInputError(
                "head",
                f"there are {units} hidden units, but weight has the shape {weight.shape}",
                f"Give weight ({units},): one number for each column of hidden",
            )
        self.hidden, self.weight = share_instances((hidden, 2), (weight, 1))

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """``c^T max(V^T x, 0)``."""
        before = outputs @ self.hidden
        active = outputs.__array_namespace__().where(before > 0, before, 0)
        return (active @ self.weight[..., None])[..., 0]

    def reach(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """``sum_j |c_j| ||V_j|| ||x||``."""
        return self._by_instance(self._norms, outputs)

    def mean_gradient(
        self, start: Float[Array, "*batch v"], end: Float[Array, "*batch v"]
    ) -> Float[Array, "*batch v"]:
        """Each unit counts by the share of the segment on which it is active."""
        a, b = start @ self.hidden, end @ self.hidden
        crosses = (a > 0) != (b > 0)
        part = jnp.maximum(a, b) / jnp.where(crosses, jnp.abs(a - b), 1)
        share = jnp.where(crosses, part, jnp.where(a > 0, 1, 0))
        return (share * self.weight) @ self.hidden.T

    @property
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the head."""
        return None if self.hidden.ndim == 2 else self.hidden.shape[0]

    @property
    def input_dimension(self) -> int:
        """Number of rows of the hidden layer's matrix."""
        return self.hidden.shape[-2]

    def _norms(self, outputs: Any) -> Any:
        columns = lengths(self.hidden, axis=-2)
        total = (abs(self.weight) * columns).sum(-1)
        return lengths(outputs) * (total[:, None] if self.hidden.ndim == 3 else total)
