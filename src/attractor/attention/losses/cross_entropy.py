"""The cross-entropy loss of logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attractor.attention.losses.loss import Loss
from attractor.errors import InvalidInputError


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """The cross-entropy loss ``-log softmax(f)_y`` of logits ``f`` and the class number ``y``.

    It is written as ``softplus(log sum_{c != y} exp(f_c) - f_y)``, and its derivative as pairs of
    the true class with every other: ``softmax - onehot`` would subtract nearly equal numbers.
    """

    name: ClassVar[str] = "cross_entropy"
    reads_logits: ClassVar[bool | None] = True

    def value(self, prediction: Float[Array, "*rows C"], target: Float[Array, "*rows"]) -> Array:
        """``-log softmax(f)_y``."""
        hot = _one_hot(prediction, target)
        others = jax.nn.logsumexp(jnp.where(hot, -jnp.inf, prediction), axis=-1)
        return jax.nn.softplus(others - jnp.where(hot, prediction, 0).sum(-1))

    def cotangent(
        self, prediction: Float[Array, "*rows C"], target: Float[Array, "*rows"]
    ) -> tuple[Float[Array, "*rows C"], Float[Array, "*rows"]]:
        """``softmax(f) - onehot(y)``, in units of the largest probability of a wrong class."""
        hot = _one_hot(prediction, target)
        wrong = jnp.where(hot, -jnp.inf, prediction)
        top = wrong.max(-1, keepdims=True)
        weights = jnp.exp(wrong - top)
        mantissa = jnp.where(hot, -weights.sum(-1, keepdims=True), weights)
        return mantissa, (top - jax.nn.logsumexp(prediction, axis=-1, keepdims=True))[..., 0]

    def validate(self, labels: Float[np.ndarray, "..."], classes: int | None = None) -> None:
        """Checks that labels are class numbers.

        Args:
            labels: The labels.
            classes: Number of classes, where it is known.

        Raises:
            InvalidInputError: If a label is not an integer from 0 to ``classes - 1``.
        """
        most = np.inf if classes is None else classes - 1
        wrong = np.argwhere((labels != np.rint(labels)) | (labels < 0) | (labels > most))
        if len(wrong):
            place = tuple(int(i) for i in wrong[0])
            known = "0, 1, 2, ..." if classes is None else f"from 0 to {classes - 1}"
            raise InvalidInputError(
                "labels",
                f"the label at {place} is {labels[place]:g}, which is not the number of a class",
                f"Give integers {known}: the position of the true class among the logits",
            )


def _one_hot(
    prediction: Float[Array, "*rows C"], target: Float[Array, "*rows"]
) -> Bool[Array, "*rows C"]:
    return target[..., None].astype(jnp.int32) == jnp.arange(prediction.shape[-1])
