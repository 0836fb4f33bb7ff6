"""What a loss is."""

from __future__ import annotations

import abc
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.attention.prediction import Prediction
from attractor.errors import InvalidInputError


class Loss(abc.ABC):
    """What a prediction costs, given its target.

    A new loss is a subclass with ``value``. Its derivative is then JAX's, which is zero from
    exp(-745) on; a loss whose derivative is to be followed further gives its own ``cotangent``.
    Instances are hashable, and those that are equal share compiled code.

    Attributes:
        name: What a user calls it.
        reads_logits: Whether predictions have a last axis of classes; None where either will do.
    """

    name: ClassVar[str]
    reads_logits: ClassVar[bool | None] = False

    @abc.abstractmethod
    def value(self, prediction: Float[Array, "*rows"], target: Float[Array, "*rows"]) -> Array:
        """The loss of each row.

        Args:
            prediction: ``(*rows)``; ``(*rows, C)`` where the loss reads logits.
            target: ``(*rows)``.
        """

    def cotangent(
        self, prediction: Float[Array, "..."], target: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "..."], Float[Array, "*rows"]]:
        """The derivative in the prediction, ``mantissa * exp(log_scale)``, one scale a row."""
        mantissa = jax.grad(lambda p: self.value(p, target).sum())(prediction)
        return mantissa, jnp.zeros(target.shape, mantissa.dtype)

    def value_at(
        self, prediction: Prediction, target: Float[Array, "sequence query"]
    ) -> Float[Array, "sequence query"]:
        """The loss of each row, of a prediction that knows what it was made of."""
        return self.value(prediction.value, target)

    def cotangent_at(
        self, prediction: Prediction, target: Float[Array, "sequence query"]
    ) -> tuple[Float[Array, "sequence query ..."], Float[Array, "sequence query"]]:
        """The derivative of each row, of a prediction that knows what it was made of.

        Losses whose derivative vanishes at a finite prediction override it: a rounded prediction
        does not say how near it is.
        """
        return self.cotangent(prediction.value, target)

    def validate(  # noqa: B027 - most losses take any numbers
        self, labels: Float[np.ndarray, "..."], classes: int | None = None
    ) -> None:
        """Checks that labels suit the loss.

        Args:
            labels: The labels, finite numbers.
            classes: Number of classes, where it is known.

        Raises:
            InvalidInputError: If one does not.
        """

    def check_classes(self, classes: int | None) -> None:
        """Checks that the predictions of a head suit the loss.

        Args:
            classes: Number of logits the head gives, or None where it gives one prediction.

        Raises:
            InvalidInputError: If they do not.
        """
        if self.reads_logits is None or self.reads_logits == (classes is not None):
            return
        if self.reads_logits:
            raise InvalidInputError(
                "head",
                f"it gives one number for each output, but the {self.name} loss reads logits",
                "Give a head with a logit for each class, such as VocabularyHead(U)",
            )
        raise InvalidInputError(
            "head",
            f"it gives {classes} logits for each output, but the {self.name} loss reads one number",
            'Use the loss "cross_entropy", or a head with one prediction, such as LinearHead(v)',
        )
