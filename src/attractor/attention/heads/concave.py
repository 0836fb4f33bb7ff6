"""The concave quadratic head."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array, Float

from attractor.attention.heads.head import Head, checked_array, share_instances
from attractor.errors import InvalidInputError
from attractor.geometry import lengths


class ConcaveHead(Head):
    """The concave head ``h(x) = v^T x - lambda ||x||^2``, which makes attention keep several.

    The penalty ``lambda`` is a setting, not a parameter: training the head leaves it alone.
    Source: *Transformers as Support Vector Machines* (arXiv 2308.16898), experiments on attention
    that keeps several tokens.

    Attributes:
        weight: The vector ``v``, ``(v,)`` or ``(instances, v)``.
        penalty: The factor ``lambda >= 0``, a number or ``(instances,)``.
    """

    name: ClassVar[str] = "concave"
    weight: Float[Any, "*instances v"]
    penalty: Float[Any, "*instances"]

    def __init__(self, weight: Any, penalty: Any) -> None:
        """Checks and stores the vector and the penalty.

        Args:
            weight: ``(v,)``, or ``(instances, v)``.
            penalty: A number at least 0, or ``(instances,)`` of them.

        Raises:
            InvalidInputError: If shapes are different, an entry is not a finite number, or the
                penalty is negative.
        """
        weight = checked_array(weight, ("v",))
        penalty = checked_array(penalty, ())
        if (penalty < 0).any():
            raise InvalidInputError(
                "penalty", f"it is {penalty.min():g}, and the head not concave", "Give 0 or more"
            )
        self.weight, self.penalty = share_instances((weight, 1), (penalty, 0))

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """``v^T x - lambda ||x||^2``."""
        linear = (outputs @ self.weight[..., None])[..., 0]
        return linear - self._penalty(outputs) * (outputs**2).sum(-1)

    def reach(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """``||v|| ||x|| + lambda ||x||^2``."""
        return self._by_instance(self._norms, outputs)

    def mean_gradient(
        self, start: Float[Array, "*batch v"], end: Float[Array, "*batch v"]
    ) -> Float[Array, "*batch v"]:
        """``v - lambda (start + end)``."""
        return self.weight - self._penalty(start) * (start + end)

    @property
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the head."""
        return None if self.weight.ndim == 1 else self.weight.shape[0]

    @property
    def input_dimension(self) -> int:
        """Dimension of the vector."""
        return self.weight.shape[-1]

    def _penalty(self, outputs: Any) -> Any:
        fixed = self.penalty
        if not isinstance(outputs, np.ndarray):
            fixed = jax.lax.stop_gradient(fixed)
        return fixed if self.weight.ndim == 1 else fixed[:, None]

    def _norms(self, outputs: Any) -> Any:
        length, vector = lengths(outputs), lengths(self.weight)
        vector = vector if self.weight.ndim == 1 else vector[:, None]
        return length * (vector + self._penalty(outputs) * length)
