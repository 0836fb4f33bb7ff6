"""The squared loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from attractor.attention.losses.loss import Loss
from attractor.attention.prediction import Prediction


@dataclass(frozen=True)
class Squared(Loss):
    """The squared loss ``(f - y)^2 / 2`` of a prediction ``f`` and a target ``y``.

    Where the token that attention settles on meets the target, the residual ``f - y`` falls with
    the weights of the other tokens, far below the rounding of ``f``. It is found from them.
    """

    name: ClassVar[str] = "squared"

    def value(self, prediction: Float[Array, "*rows"], target: Float[Array, "*rows"]) -> Array:
        """``(f - y)^2 / 2``."""
        return (prediction - target) ** 2 / 2

    def cotangent(
        self, prediction: Float[Array, "..."], target: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "..."], Float[Array, "*rows"]]:
        """``f - y``."""
        return prediction - target, jnp.zeros_like(target)

    def value_at(
        self, prediction: Prediction, target: Float[Array, "sequence query"]
    ) -> Float[Array, "sequence query"]:
        """``(f - y)^2 / 2``, as small as floating point can hold."""
        mantissa, log_scale = prediction.residual(target)
        return (mantissa * jnp.exp(log_scale)) ** 2 / 2

    def cotangent_at(
        self, prediction: Prediction, target: Float[Array, "sequence query"]
    ) -> tuple[Float[Array, "sequence query"], Float[Array, "sequence query"]]:
        """``f - y``, at any magnitude."""
        return prediction.residual(target)
