"""Losses by what a user calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attractor.attention.losses.cross_entropy import CrossEntropy
from attractor.attention.losses.loss import Loss
from attractor.attention.losses.margin import Exponential, Linear, Logistic, MarginLoss
from attractor.attention.losses.negative_log import NegativeLog
from attractor.attention.losses.squared import Squared
from attractor.attention.losses.user import UserLoss
from attractor.checks import suggest
from attractor.errors import InvalidInputError

_LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Logistic(),
        Exponential(),
        Linear(),
        CrossEntropy(),
        Squared(),
        NegativeLog(),
    )
}


def get_loss(loss: str | Loss | Callable[[Any, Any], Any]) -> Loss:
    """Returns the loss with a name; a ``Loss`` as it is, a function as a ``UserLoss``.

    Raises:
        InvalidInputError: If there is no such loss.
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in _LOSSES:
        return _LOSSES[loss]
    if callable(loss) and not isinstance(loss, type):
        return UserLoss(loss)
    problem = f"there is none named {loss!r}"
    if not isinstance(loss, str):
        problem = f"{loss!r} is neither a name nor a loss"
    raise InvalidInputError(
        "loss",
        problem,
        f"{suggest(loss, _LOSSES)}Known losses: {', '.join(_LOSSES)}; or give a function "
        "value(prediction, target)",
    )


def is_margin_loss(name: str) -> bool:
    """Whether a loss of this library with this name decreases with the margin ``y f``."""
    return isinstance(_LOSSES.get(name), MarginLoss)
