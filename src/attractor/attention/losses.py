"""Losses, with derivatives that keep their magnitude beside them.

A derivative such as ``-y sigmoid(-y f)`` leaves the range of floating point long before training
is over, so each loss gives it as a mantissa of order one and the logarithm of a scale.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attractor.attention.heads import is_linear
from attractor.attention.labels import (
    check_class_numbers,
    check_loss_name,
    check_ones,
    check_signs,
)
from attractor.attention.prediction import Prediction, added
from attractor.support.checks import check_function
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.support.randomness import traced


class Loss(abc.ABC):
    """A loss of a prediction, given its target.

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
        check_signs(self.name, labels)


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
        check_class_numbers(self.name, labels, classes)


def _one_hot(
    prediction: Float[Array, "*rows C"], target: Float[Array, "*rows"]
) -> Bool[Array, "*rows C"]:
    return target[..., None].astype(jnp.int32) == jnp.arange(prediction.shape[-1])


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
        check_ones(self.name, labels)


def _log(prediction: Prediction) -> Float[Array, "sequence query"]:
    """``log f``, free of cancellation near one and of underflow near zero."""
    value = prediction.value
    mantissa, log_scale = prediction.residual(jnp.ones_like(value))
    above = value > 0.5
    near_one = jnp.log1p(jnp.where(above, mantissa * jnp.exp(log_scale), 0))
    return jnp.where(above, near_one, _log_small(prediction))


def _log_small(prediction: Prediction) -> Float[Array, "sequence query"]:
    """``log f`` without the product of weights and values, where the heads are linear."""
    if not all(is_linear(part.head) for part in prediction.parts):
        return jnp.log(prediction.value)
    heads = []
    for part in prediction.parts:
        each, row = part.head(prediction.rows.values)[..., None, :], part.row
        top = jnp.where(row.mask & (each != 0), row.gap, -jnp.inf).max(-1, keepdims=True)
        top = jax.lax.stop_gradient(jnp.where(jnp.isneginf(top), 0, top))
        sums = jnp.where(row.mask & (each != 0), jnp.exp(row.gap - top) * each, 0).sum(-1)
        heads.append((sums, top[..., 0], row.total[..., 0]))
    (sums, top, total), *others = heads
    if others:  # all in units of the heaviest weight
        highest = functools.reduce(jnp.maximum, (own for _, own, _ in heads))
        sums = added(each * jnp.exp(own - highest) * (total / its) for each, own, its in heads)
        top = highest
    return jnp.log(sums) + top - jnp.log(total)


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

    @traced
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
                    "loss",
                    f"{self.name} fails for {shape} and a target: {_first_line(error)}",
                    remedy,
                ) from error
        if not fits:
            raise InvalidInputError(
                "loss", f"{self.name} gives {result.dtype} of shape {result.shape}", remedy
            )


_LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (Logistic(), Exponential(), Linear(), CrossEntropy(), Squared(), NegativeLog())
}


def get_loss(loss: str | Loss | Callable[[Any, Any], Any]) -> Loss:
    """Returns the loss with a name; a ``Loss`` as it is, a function as a ``UserLoss``.

    Raises:
        InvalidInputError: If there is no such loss.
    """
    if isinstance(loss, Loss):
        return loss
    if callable(loss) and not isinstance(loss, type):
        return UserLoss(loss)
    return _LOSSES[check_loss_name(loss)]


def _first_line(error: Exception) -> str:
    """What an error says in its first sentence: that of a traced array has a page."""
    return str(error).strip().partition("\n")[0].rstrip(".")
