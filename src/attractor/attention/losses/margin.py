"""Losses of the margin ``y f``: logistic, exponential, linear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.attention.losses.loss import Loss
from attractor.errors import InvalidInputError


class MarginLoss(Loss):
    """A decreasing function of the margin ``y f`` of prediction ``f`` and label ``y = -1, +1``."""

    def validate(self, labels: Float[np.ndarray, "..."], classes: int | None = None) -> None:
        """Checks that labels are -1 and +1.

        Args:
            labels: The labels.
            classes: Not used: there are two.

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
class Logistic(MarginLoss):
    """The logistic loss ``log(1 + exp(-y f))``."""

    name: ClassVar[str] = "logistic"

    def value(self, prediction: Float[Array, "*rows"], target: Float[Array, "*rows"]) -> Array:
        """``log(1 + exp(-y f))``."""
        return jax.nn.softplus(-target * prediction)

    def cotangent(
        self, prediction: Float[Array, "..."], target: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "..."], Float[Array, "*rows"]]:
        """``-y sigmoid(-y f)``, whose logarithm needs no difference of nearby numbers."""
        return -target, jax.nn.log_sigmoid(-target * prediction)


@dataclass(frozen=True)
class Exponential(MarginLoss):
    """The exponential loss ``exp(-y f)``."""

    name: ClassVar[str] = "exponential"

    def value(self, prediction: Float[Array, "*rows"], target: Float[Array, "*rows"]) -> Array:
        """``exp(-y f)``."""
        return jnp.exp(-target * prediction)

    def cotangent(
        self, prediction: Float[Array, "..."], target: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "..."], Float[Array, "*rows"]]:
        """``-y exp(-y f)``."""
        return -target, -target * prediction


@dataclass(frozen=True)
class Linear(MarginLoss):
    """The linear, or correlation, loss ``-y f``."""

    name: ClassVar[str] = "linear"

    def value(self, prediction: Float[Array, "*rows"], target: Float[Array, "*rows"]) -> Array:
        """``-y f``."""
        return -target * prediction

    def cotangent(
        self, prediction: Float[Array, "..."], target: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "..."], Float[Array, "*rows"]]:
        """``-y``."""
        return -target, jnp.zeros_like(prediction)
