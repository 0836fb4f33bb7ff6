"""Losses, with derivatives that keep their magnitude beside them.

A derivative such as ``-y sigmoid(-y f)`` leaves the range of floating point long before training
is over, so each loss gives it as a mantissa of order one and the logarithm of a scale.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.errors import InvalidInputError


class Loss(abc.ABC):
    """A decreasing function of the margin ``y f`` of prediction ``f`` and label ``y = -1, +1``."""

    name: ClassVar[str]

    @abc.abstractmethod
    def value(self, prediction: Float[Array, "*rows"], label: Float[Array, "*rows"]) -> Array:
        """The loss of each row."""

    @abc.abstractmethod
    def cotangent(
        self, prediction: Float[Array, "*rows"], label: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "*rows"], Float[Array, "*rows"]]:
        """The derivative in the prediction, as ``mantissa * exp(log_scale)``."""

    def validate(self, labels: Float[np.ndarray, "..."]) -> None:
        """Checks that labels suit the loss.

        Raises:
            InvalidInputError: If a label is neither -1 nor +1.
        """
        wrong = np.argwhere(np.abs(labels) != 1)
        if len(wrong):
            place = tuple(int(i) for i in wrong[0])
            hint = " (labels 0 and 1 become -1 and +1 as 2 * labels - 1)"
            raise InvalidInputError(
                "labels",
                f"the label at {place} is {labels[place]:g}, which the {self.name} loss cannot use",
                "Give labels -1 and +1" + (hint if np.isin(labels, (0, 1)).all() else ""),
            )


@dataclass(frozen=True)
class Logistic(Loss):
    """The logistic loss ``log(1 + exp(-y f))``."""

    name: ClassVar[str] = "logistic"

    def value(self, prediction: Float[Array, "*rows"], label: Float[Array, "*rows"]) -> Array:
        """``log(1 + exp(-y f))``."""
        return jax.nn.softplus(-label * prediction)

    def cotangent(
        self, prediction: Float[Array, "*rows"], label: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "*rows"], Float[Array, "*rows"]]:
        """``-y sigmoid(-y f)``, whose logarithm needs no difference of nearby numbers."""
        return -label, jax.nn.log_sigmoid(-label * prediction)


@dataclass(frozen=True)
class Exponential(Loss):
    """The exponential loss ``exp(-y f)``."""

    name: ClassVar[str] = "exponential"

    def value(self, prediction: Float[Array, "*rows"], label: Float[Array, "*rows"]) -> Array:
        """``exp(-y f)``."""
        return jnp.exp(-label * prediction)

    def cotangent(
        self, prediction: Float[Array, "*rows"], label: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "*rows"], Float[Array, "*rows"]]:
        """``-y exp(-y f)``."""
        return -label, -label * prediction


@dataclass(frozen=True)
class Linear(Loss):
    """The linear, or correlation, loss ``-y f``."""

    name: ClassVar[str] = "linear"

    def value(self, prediction: Float[Array, "*rows"], label: Float[Array, "*rows"]) -> Array:
        """``-y f``."""
        return -label * prediction

    def cotangent(
        self, prediction: Float[Array, "*rows"], label: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "*rows"], Float[Array, "*rows"]]:
        """``-y``."""
        return -label, jnp.zeros_like(prediction)


_LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Logistic(), Exponential(), Linear())}


def get_loss(loss: str | Loss) -> Loss:
    """Returns the loss with a name; a ``Loss`` is returned as it is.

    Raises:
        InvalidInputError: If there is no such loss.
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in _LOSSES:
        raise InvalidInputError(
            "loss", f"there is none named {loss!r}", f"Known losses: {', '.join(_LOSSES)}"
        )
    return _LOSSES[loss]
