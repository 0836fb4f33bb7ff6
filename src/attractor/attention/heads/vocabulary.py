"""The head that gives a logit for each class or word."""

from __future__ import annotations

from typing import Any, ClassVar

from jaxtyping import Float

from attractor.attention.heads.head import Head, checked_array
from attractor.errors import InvalidInputError


class VocabularyHead(Head):
    """Logits ``h(x) = U x`` of C classes or words, for the cross-entropy loss.

    Attributes:
        weight: The matrix ``U``, ``(C, v)`` or ``(instances, C, v)``: a row a class.
    """

    name: ClassVar[str] = "vocabulary"
    weight: Float[Any, "*instances C v"]

    def __init__(self, weight: Any) -> None:
        """Checks and stores the matrix.

        Args:
            weight: ``(C, v)`` with two classes or more, or ``(instances, C, v)``.

        Raises:
            InvalidInputError: If the shape is different, or an entry is not a finite number.
        """
        self.weight = checked_array(weight, ("C", "v"))
        if self.weight.shape[-2] < 2:
            raise InvalidInputError(
                "head", "it has one class, so there is nothing to tell apart", "Give two or more"
            )

    def predict(self, outputs: Float[Any, "*instances rows v"] | Any) -> Float[Any, "..."]:
        """``U x``."""
        return outputs @ self.weight.swapaxes(-1, -2)

    @property
    def instances(self) -> int | None:
        """Number of instances, or None where all instances share the matrix."""
        return None if self.weight.ndim == 2 else self.weight.shape[0]

    @property
    def input_dimension(self) -> int:
        """Number of columns of the matrix."""
        return self.weight.shape[-1]

    @property
    def classes(self) -> int | None:
        """Number of rows of the matrix."""
        return self.weight.shape[-2]
