"""A value matrix before a head."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Array, Float

from attractor.attention.heads.head import Head, checked_array, share_instances
from attractor.errors import InvalidInputError


class ValueMatrix(Head):
    """A value matrix before another head: ``h(V^T x)``.

    Attention averages values, so that multiplying the average is the same as multiplying every
    token: ``V^T sum_t p_t x_t = sum_t p_t V^T x_t``.

    Attributes:
        matrix: The matrix ``V``, ``(v, w)`` or ``(instances, v, w)``.
        head: The head ``h``, which reads vectors of dimension w.
    """

    kind: ClassVar[str] = "value_matrix"
    matrix: Float[Any, "*instances v w"]
    head: Head

    def __init__(self, matrix: Any, head: Any) -> None:
        """Checks and stores the matrix and the head behind it.

        Args:
            matrix: ``(v, w)``, or ``(instances, v, w)``.
            head: A head for dimension w, or an Equinox module from ``(w,)`` to a prediction.

        Raises:
            InvalidInputError: If shapes are different, an entry is not a finite number, or the
                head does not read vectors of dimension w.
        """
        from attractor.attention.heads.names import as_head  # which imports this module

        matrix = checked_array(matrix, ("v", "w"))
        head = as_head(head, matrix.shape[-1])
        if head.input_dimension != matrix.shape[-1]:
            raise InvalidInputError(
                "head",
                f"it reads vectors of dimension {head.input_dimension}, but the value matrix "
                f"gives {matrix.shape[-1]}",
                f"Give a matrix of shape ({matrix.shape[-2]}, {head.input_dimension})",
            )
        if matrix.ndim == 3 and head.instances is None:
            head = head.for_instances(np.zeros(matrix.shape[0], dtype=int))
        count = () if head.instances is None else (head.instances,)
        self.matrix, _ = share_instances((matrix, 2), (np.zeros(count), 0))
        self.head = head

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Its own name and that of the head behind it."""
        return f"{self.kind}.{self.head.name}"

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """``h(V^T x)``."""
        return self.head.predict(outputs @ self.matrix)

    def reach(self, outputs: Float[Any, "*batch v"]) -> Float[Any, "*batch"]:
        """That of the head, for the sizes of the terms that add up to ``V^T x``."""
        return self.head.reach(self._by_instance(lambda x: abs(x) @ abs(self.matrix), outputs))

    def mean_gradient(
        self, start: Float[Array, "*batch v"], end: Float[Array, "*batch v"]
    ) -> Float[Array, "*batch v"]:
        """``V`` times that of the head."""
        return self.head.mean_gradient(start @ self.matrix, end @ self.matrix) @ self.matrix.T

    def arrays(self) -> dict[str, np.ndarray]:
        """The matrix, and the arrays of the head behind it."""
        behind = {f"head.{name}": array for name, array in self.head.arrays().items()}
        return {"matrix": np.asarray(self.matrix), **behind}

    @property
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the matrix and the head."""
        return None if self.matrix.ndim == 2 else self.matrix.shape[0]

    @property
    def input_dimension(self) -> int:
        """Number of rows of the matrix."""
        return self.matrix.shape[-2]

    @property
    def classes(self) -> int | None:
        """Number of logits of the head behind it."""
        return self.head.classes
