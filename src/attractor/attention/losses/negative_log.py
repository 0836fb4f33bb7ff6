"""The negative logarithm of a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.attention.heads import Head, LinearHead, ValueMatrix
from attractor.attention.losses.loss import Loss
from attractor.attention.prediction import Prediction
from attractor.errors import InvalidInputError


@dataclass(frozen=True)
class NegativeLog(Loss):
    """The loss ``-log f`` of a prediction ``f`` in (0, 1], a probability such as attention mass.

    It is the loss of *Mechanics of Next Token Prediction with Self-Attention* (arXiv 2403.08081)
    where the values say which tokens equal the label, ``v_t = 1{x_t = y}``: the prediction is then
    the attention mass on them. The target is not read, and is one.

    The derivative is ``-1 / f``. Near one the loss is found from ``1 - f``, and predictions of a
    linear head from the logarithms of the weights, so that neither end of (0, 1] loses digits.
    """

    name: ClassVar[str] = "negative_log"

    def value(self, prediction: Float[Array, "*rows"], target: Float[Array, "*rows"]) -> Array:
        """``-log f``."""
        return -jnp.log(prediction)

    def cotangent(
        self, prediction: Float[Array, "..."], target: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "..."], Float[Array, "*rows"]]:
        """``-1 / f``."""
        return jnp.full_like(prediction, -1), -jnp.log(prediction)

    def value_at(
        self, prediction: Prediction, target: Float[Array, "sequence query"]
    ) -> Float[Array, "sequence query"]:
        """``-log f``, as large or as small as floating point can hold."""
        return -_log(prediction)

    def cotangent_at(
        self, prediction: Prediction, target: Float[Array, "sequence query"]
    ) -> tuple[Float[Array, "sequence query"], Float[Array, "sequence query"]]:
        """``-1 / f``, at any magnitude."""
        return jnp.full_like(prediction.value, -1), -_log(prediction)

    def validate(self, labels: Float[np.ndarray, "..."], classes: int | None = None) -> None:
        """Checks that labels are one, as they are not read.

        Args:
            labels: The labels.
            classes: Not used: there are none.

        Raises:
            InvalidInputError: If a label is not one.
        """
        wrong = np.argwhere(labels != 1)
        if len(wrong):
            place = tuple(int(i) for i in wrong[0])
            raise InvalidInputError(
                "labels",
                f"the label at {place} is {labels[place]:g}, but the {self.name} loss reads the "
                "prediction alone",
                "Give labels of one, and say by the values which tokens equal the label",
            )


def _log(prediction: Prediction) -> Float[Array, "sequence query"]:
    """``log f``, free of cancellation near one and of underflow near zero."""
    value = prediction.value
    mantissa, log_scale = prediction.residual(jnp.ones_like(value))
    above = value > 0.5
    near_one = jnp.log1p(jnp.where(above, mantissa * jnp.exp(log_scale), 0))
    return jnp.where(above, near_one, _log_small(prediction))


def _log_small(prediction: Prediction) -> Float[Array, "sequence query"]:
    """``log f`` without the product of weights and values, where the head is linear."""
    if not _is_linear(prediction.head):
        return jnp.log(prediction.value)
    row = prediction.row
    each = prediction.head(prediction.rows.values)[..., None, :]
    top = jnp.where(row.mask & (each != 0), row.gap, -jnp.inf).max(-1, keepdims=True)
    top = jax.lax.stop_gradient(jnp.where(jnp.isneginf(top), 0, top))
    sums = jnp.where(row.mask & (each != 0), jnp.exp(row.gap - top) * each, 0).sum(-1)
    return jnp.log(sums) + top[..., 0] - jnp.log(row.total[..., 0])


def _is_linear(head: Head) -> bool:
    while isinstance(head, ValueMatrix):
        head = head.head
    return isinstance(head, LinearHead)
