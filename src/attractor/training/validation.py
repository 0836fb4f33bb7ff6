"""What must be true of the arguments of ``train``, and what is said where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import optax
from jaxtyping import Float

from attractor.attention import Head, Loss
from attractor.errors import InvalidInputError
from attractor.precision import as_float64
from attractor.tokens import Tokens
from attractor.training.optimizers import Optimizer


def check_tokens(tokens: Any, loss: Loss) -> None:
    """Checks that tokens can be trained on with a loss."""
    if not isinstance(tokens, Tokens):
        raise InvalidInputError(
            "tokens", f"{type(tokens).__name__} is not Tokens", "Give Tokens(keys, queries, labels)"
        )
    if tokens.labels is None:
        raise InvalidInputError(
            "tokens",
            "they carry no labels, so there is nothing to train towards",
            "Pass labels to Tokens",
        )
    loss.validate(tokens.labels)


def check_head(head: Any, tokens: Tokens) -> None:
    """Checks that a head reads what attention returns."""
    if not isinstance(head, Head):
        raise InvalidInputError(
            "head", f"{type(head).__name__} is not a head", "Give one, such as LinearHead(v)"
        )
    if head.input_dimension != tokens.value_dimension:
        raise InvalidInputError(
            "head",
            f"it reads vectors of dimension {head.input_dimension}, "
            f"but the values have {tokens.value_dimension}",
            f"Give a head for dimension {tokens.value_dimension}",
        )
    if head.instances not in (None, tokens.instances):
        have = "no axis of instances" if tokens.instances is None else f"{tokens.instances}"
        raise InvalidInputError(
            "head",
            f"it has {head.instances} instances, but the tokens have {have}",
            "Give one head for all, or one for each instance of the tokens",
        )


def check_optimizer(optimizer: Any) -> None:
    """Checks that an optimizer has declared its geometry."""
    if isinstance(optimizer, Optimizer):
        return
    if isinstance(optimizer, optax.GradientTransformation):
        raise InvalidInputError(
            "optimizer",
            "this optax transformation does not say which geometry it descends",
            "Wrap it: declare(transformation, geometry=Frobenius())",
        )
    raise InvalidInputError(
        "optimizer",
        f"{type(optimizer).__name__} is not an optimizer",
        "Give one, such as normalized_gradient_descent(0.1)",
    )


def check_count(argument: str, value: Any) -> int:
    """Checks that something counted is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInputError(argument, f"{value!r} is not a count", "Give an integer >= 1")
    return int(value)


def check_choice(argument: str, value: Any, choices: tuple[str, ...]) -> str:
    """Checks that a word is one of those known."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise InvalidInputError(argument, f"{value!r} is not known", f"Give one of {known}")
    return value


def check_initial(
    initial: Any, tokens: Tokens, seeds: int
) -> Float[np.ndarray, "instances seeds d e"] | None:
    """Gives the user's initial matrices their axes of instances and seeds, without copying."""
    if initial is None:
        return None
    initial = as_float64("initial", initial)
    instances = tokens.instances or 1
    matrix = (tokens.key_dimension, tokens.query_dimension)
    shapes = {
        matrix: initial,
        (instances, *matrix): initial[:, None] if initial.ndim == 3 else initial,
        (instances, seeds, *matrix): initial,
    }
    if initial.shape not in shapes:
        raise InvalidInputError(
            "initial",
            f"the shape is {initial.shape}",
            f"Give {matrix}, {(instances, *matrix)} for each instance, or "
            f"{(instances, seeds, *matrix)} for each instance and seed",
        )
    return np.broadcast_to(shapes[initial.shape], (instances, seeds, *matrix))
