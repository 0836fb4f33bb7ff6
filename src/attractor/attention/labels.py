"""The labels that each loss can use: what of a loss is asked of data before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from attractor.support.checks import suggest
from attractor.support.errors import InvalidInputError


def check_signs(loss: str, labels: Float[np.ndarray, "..."]) -> None:
    """Checks that labels are -1 and +1.

    Args:
        loss: Name of the loss.
        labels: The labels.

    Raises:
        InvalidInputError: If a label is neither -1 nor +1.
    """
    if (place := _first_place(np.abs(labels) != 1)) is not None:
        hint = " (labels 0 and 1 become -1 and +1 as 2 * labels - 1)"
        raise InvalidInputError(
            "labels",
            f"the label at {place} is {labels[place]:g}, which the {loss} loss cannot use",
            "Give labels -1 and +1" + (hint if np.isin(labels, (0, 1)).all() else ""),
        )


def check_class_numbers(
    loss: str, labels: Float[np.ndarray, "..."], classes: int | None = None
) -> None:
    """Checks that labels are class numbers.

    Args:
        loss: Not used: one loss alone reads them.
        labels: The labels.
        classes: Number of classes, where it is known.

    Raises:
        InvalidInputError: If a label is not an integer from 0 to ``classes - 1``.
    """
    most = np.inf if classes is None else classes - 1
    wrong = (labels != np.rint(labels)) | (labels < 0) | (labels > most)
    if (place := _first_place(wrong)) is not None:
        known = "0, 1, 2, ..." if classes is None else f"from 0 to {classes - 1}"
        raise InvalidInputError(
            "labels",
            f"the label at {place} is {labels[place]:g}, which is not the number of a class",
            f"Give integers {known}: the position of the true class among the logits",
        )


def check_ones(loss: str, labels: Float[np.ndarray, "..."]) -> None:
    """Checks that labels are one, as they are not read.

    Args:
        loss: Name of the loss.
        labels: The labels.

    Raises:
        InvalidInputError: If a label is not one.
    """
    if (place := _first_place(labels != 1)) is not None:
        raise InvalidInputError(
            "labels",
            f"the label at {place} is {labels[place]:g}, but the {loss} loss reads the "
            "prediction alone",
            "Give labels of one, and say by the values which tokens equal the label",
        )


_CHECKS: dict[str, Callable[..., None] | None] = {
    "logistic": check_signs,
    "exponential": check_signs,
    "linear": check_signs,
    "cross_entropy": check_class_numbers,
    "squared": None,
    "negative_log": check_ones,
}
"""The check of each loss of this library; None where it takes any numbers."""


def check_labels(loss: str, labels: Float[np.ndarray, "..."]) -> None:
    """Checks that labels suit the loss of this library with a name.

    Raises:
        InvalidInputError: If one does not.
    """
    if check := _CHECKS[loss]:
        check(loss, labels)


def is_margin_loss(name: str) -> bool:
    """Whether a loss of this library with this name decreases with the margin ``y f``."""
    return _CHECKS.get(name) is check_signs


def check_loss_name(loss: Any) -> str:
    """Returns the name of a loss of this library.

    Raises:
        InvalidInputError: If there is no such loss.
    """
    if isinstance(loss, str) and loss in _CHECKS:
        return loss
    named = isinstance(loss, str)
    raise InvalidInputError(
        "loss",
        f"there is none named {loss!r}" if named else f"{loss!r} is neither a name nor a loss",
        f"{suggest(loss, _CHECKS)}Known losses: {', '.join(_CHECKS)}; or give a function "
        "value(prediction, target)",
    )


def _first_place(wrong: Bool[np.ndarray, "..."]) -> tuple[int, ...] | None:
    """Position of the first entry that is marked; None where none is."""
    found = np.argwhere(wrong)
    return tuple(found[0].tolist()) if len(found) else None
