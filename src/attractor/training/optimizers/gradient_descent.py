"""Gradient descent, plain and normalized."""

from __future__ import annotations

import functools
import math

import jax
import optax
from jaxtyping import PyTree

from attractor.errors import InvalidInputError
from attractor.geometry import Frobenius, Geometry
from attractor.training.optimizers.optimizer import Optimizer, declare


def gradient_descent(learning_rate: float) -> Optimizer:
    """Gradient descent ``W <- W - learning_rate * grad L(W)``.

    Args:
        learning_rate: The step size, positive.

    Raises:
        InvalidInputError: If the learning rate is not a positive finite number.
    """
    return _gradient_descent(_check_learning_rate(learning_rate))


def normalized_gradient_descent(learning_rate: float) -> Optimizer:
    """Normalized gradient descent ``W <- W - learning_rate * grad L(W) / ||grad L(W)||_F``.

    A gradient that is exactly zero takes a zero step. No constant is added to the norm, so every
    other step has the length of the learning rate, however small the gradient.

    Args:
        learning_rate: The length of a step, positive.

    Raises:
        InvalidInputError: If the learning rate is not a positive finite number.
    """
    return _normalized_gradient_descent(_check_learning_rate(learning_rate))


# The same settings give the same object, so that training compiled once is compiled for good.
@functools.lru_cache
def _gradient_descent(learning_rate: float) -> Optimizer:
    return declare(
        optax.sgd(learning_rate),
        geometry=Frobenius(),
        reads="magnitude",
        name="gradient descent",
        settings={"learning_rate": learning_rate},
    )


@functools.lru_cache
def _normalized_gradient_descent(learning_rate: float) -> Optimizer:
    geometry = Frobenius()
    return declare(
        optax.chain(_steepest_ascent(geometry), optax.scale_by_learning_rate(learning_rate)),
        geometry=geometry,
        reads="direction",
        name="normalized gradient descent",
        settings={"learning_rate": learning_rate},
    )


def _steepest_ascent(geometry: Geometry) -> optax.GradientTransformation:
    """Replaces each leaf by the unit matrix along which the loss rises fastest."""

    def update(updates: PyTree, params: PyTree | None = None) -> PyTree:
        return jax.tree.map(geometry.steepest_descent_direction, updates)

    return optax.stateless(update)


def _check_learning_rate(learning_rate: float) -> float:
    try:
        value = float(learning_rate)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InvalidInputError(
            "learning_rate", f"{learning_rate!r} is not a positive number", "Give one, such as 0.1"
        )
    return value
