"""A loss that is a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array, Float

from attractor.attention.losses.loss import Loss
from attractor.checks import check_function
from attractor.errors import InvalidInputError
from attractor.precision import double_precision


@dataclass(frozen=True)
class UserLoss(Loss):
    """Any function of one prediction and one target that JAX can differentiate.

    Its derivative is JAX's, in plain floating point: it is zero below exp(-745), and where it
    vanishes at a finite prediction it is as exact as the rounded prediction. The losses of this
    library have neither limit.

    Attributes:
        function: ``value(prediction, target) -> scalar``; the prediction is a number, or the
            vector of logits of one row.
    """

    reads_logits: ClassVar[bool | None] = None
    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        """Checks that it is a function.

        Raises:
            InvalidInputError: If it cannot be called.
        """
        check_function("function", self.function, "Give one of a prediction and a label")

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """``user:`` and the qualified name of the function."""
        return f"user:{getattr(self.function, '__qualname__', type(self.function).__qualname__)}"

    def value(self, prediction: Float[Array, "..."], target: Float[Array, "*rows"]) -> Array:
        """The function, row by row."""
        by_row = self.function
        for _ in range(target.ndim):
            by_row = jax.vmap(by_row)
        return by_row(prediction, target)

    def check_classes(self, classes: int | None) -> None:
        """Checks that the function maps a prediction of the head and a target to one number.

        Args:
            classes: Number of logits the head gives, or None where it gives one prediction.

        Raises:
            InvalidInputError: If it does not.
        """
        remedy = "Give a function value(prediction, target) -> scalar of jax.numpy operations"
        with double_precision():
            number = jax.ShapeDtypeStruct((), np.float64)
            one = number if classes is None else jax.ShapeDtypeStruct((classes,), np.float64)
            try:
                result = jax.eval_shape(self.function, one, number)
                fits = result.shape == () and np.issubdtype(result.dtype, np.floating)
            except Exception as error:  # the user's own code may raise anything
                shape = "a number" if classes is None else f"{classes} logits"
                raise InvalidInputError(
                    "loss", f"{self.name} fails for {shape} and a target: {error}", remedy
                ) from error
        if not fits:
            raise InvalidInputError(
                "loss", f"{self.name} gives {result.dtype} of shape {result.shape}", remedy
            )
