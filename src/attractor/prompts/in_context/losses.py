"""Losses of in-context tasks, and whether the theorem on risks of long prompts admits them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attractor.support.checks import check_function, check_kind, check_number, check_text
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64, double_precision


class State(enum.Enum):
    """Whether a hypothesis is met."""

    MET = "met"
    """Shown to be true of the task."""
    NOT_MET = "not met"
    """Shown to be false of the task."""
    NOT_SETTLED = "not settled"
    """Not known in closed form, and not decided by what was measured."""


@dataclass(frozen=True)
class Finding:
    """A hypothesis on a task, decided.

    Attributes:
        name: The hypothesis, in a few words.
        state: Whether it is met.
        found: The quantities that decide it, in words and numbers.
    """

    name: str
    state: State
    found: str


_GRID = 401
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Loss:
    """A loss ``l(prediction, label)``; of several predictions for one query it is summed.

    Attributes:
        name: A word or two.
        value: ``l`` of one prediction and one label, a function of JAX.
        curvature: The largest ``|d^2 l / d prediction^2|`` for labels up to a magnitude, a function
            of that; None where it is not known.
    """

    name: str
    value: Callable[[Any, Any], Any]
    curvature: Callable[[float], float] | None = None

    def __post_init__(self) -> None:
        """Tries the function.

        Raises:
            InvalidInputError: If it is none, or gives anything but one finite number.
        """
        check_text("name", self.name)
        check_function("value", self.value, "Give one of prediction and label, in jax.numpy")
        if self.curvature is not None:
            check_function("curvature", self.curvature, "Give one of the largest label, or None")
        if self.value in _NAMED:  # at import: differentiating compiles a program for each operation
            return
        with double_precision():
            try:
                found = np.asarray(jax.grad(self.value)(jnp.array(0.3), jnp.array(1.0)))
            except Exception as error:
                raise InvalidInputError(
                    "value",
                    f"it cannot be differentiated: {' '.join(str(error).split())[:200]}",
                    "Give a function of jax.numpy that returns one real number",
                ) from None
        if not np.isfinite(found):
            raise InvalidInputError(
                "value", f"its derivative at (0.3, 1) is {found}", "Give a finite function"
            )


def summed(
    loss: Loss, predictions: Float[Array, "*batch output"], labels: Float[Array, "*batch output"]
) -> Float[Array, "*batch"]:
    """The loss of each row of predictions, summed over the row."""
    flat = jax.vmap(loss.value)(jnp.ravel(predictions), jnp.ravel(labels))
    return flat.reshape(jnp.shape(predictions)).sum(-1)


def _squared(prediction: Any, label: Any) -> Any:
    return (prediction - label) ** 2 / 2


def _logistic(prediction: Any, label: Any) -> Any:
    return jnp.logaddexp(0.0, -label * prediction)


def _huber(prediction: Any, label: Any) -> Any:
    gap = jnp.abs(prediction - label)
    return jnp.where(gap <= 1, gap**2 / 2, gap - 0.5)


_NAMED = (_squared, _logistic, _huber)
SQUARED = Loss("squared", _squared, lambda label: 1.0)
"""``(prediction - label)^2 / 2``."""
LOGISTIC = Loss("logistic", _logistic, lambda label: label**2 / 4)
"""``log(1 + exp(-label prediction))`` for labels -1 and 1."""
HUBER = Loss("Huber", _huber, lambda label: 1.0)
"""Half the square of errors up to 1, and linear beyond."""
LOSSES = (SQUARED, LOGISTIC, HUBER)
"""The losses that are known by name."""


def check_loss(loss: Loss, labels: Float[np.ndarray, "..."], radius: float = 10.0) -> Finding:
    """Whether a loss is 1-smooth in the prediction, with derivative zero at the origin.

    At the origin prediction and label are zero, so that ``|dl| <= |prediction| + |label|``. A loss
    whose curvature is known is decided by it. Any other is differentiated on a grid of
    predictions, for the labels at hand: what breaks the hypothesis there breaks it; where nothing
    does, the finding says that it is one on a grid.

    Args:
        loss: The loss.
        labels: Labels in use.
        radius: Predictions on the grid reach so far on both sides.

    Raises:
        InvalidInputError: If there are no labels, or the radius is not positive.
    """
    check_kind("loss", loss, Loss, "Give one of attractor.prompts.in_context.LOSSES")
    radius = check_number("radius", radius, above=0.0, most=LARGEST, example=10.0)
    values = as_float64("labels", labels, largest=LARGEST)
    if not values.size:
        raise InvalidInputError("labels", "there are none", "Give one or more")
    seen = np.unique(np.quantile(values, np.linspace(0, 1, 21)))
    grid = np.linspace(-radius, radius, _GRID)
    with double_precision():
        slope = jax.grad(loss.value)
        origin = float(slope(jnp.array(0.0), jnp.array(0.0)))
        over = jax.vmap(jax.vmap(slope, (0, None)), (None, 0))
        slopes = np.asarray(over(jnp.asarray(grid), jnp.asarray(seen)))
        curved = jax.vmap(jax.vmap(jax.grad(slope), (0, None)), (None, 0))
        second = np.abs(np.asarray(curved(jnp.asarray(grid), jnp.asarray(seen))))
    # Differences of slopes see kinks, at which second derivatives are zero or nothing.
    steepest = max(float(second.max()), float(np.abs(np.diff(slopes)).max() / (grid[1] - grid[0])))
    at_origin = f"derivative {abs(origin):.3g} at the origin"
    if loss.curvature is not None:
        most = float(loss.curvature(float(np.abs(values).max())))
        met = most <= 1 and abs(origin) <= _ROUNDING
        words = f"{loss.name} loss: curvature at most {most:g}, {at_origin}"
        return Finding("loss", State.MET if met else State.NOT_MET, words)
    bad = not steepest <= 1 + 1e-6 or not abs(origin) <= _ROUNDING
    words = (
        f"{loss.name} loss: curvature up to {steepest:.4g} on a grid of predictions in "
        f"[{-radius:g}, {radius:g}] and labels in [{seen[0]:.3g}, {seen[-1]:.3g}], {at_origin}"
    )
    return Finding("loss", State.NOT_MET if bad else State.MET, words)
