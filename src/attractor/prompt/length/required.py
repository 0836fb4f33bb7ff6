"""The length at which a finite prompt is as good as an infinite one, to a wanted error."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.errors import InvalidInputError
from attractor.precision import LARGEST, as_float64
from attractor.prompt.finite_length.functions import check_deviation
from attractor.prompt.length.curves import ErrorCurves


def required_length(score_deviation: ArrayLike, error: ArrayLike) -> Float[np.ndarray, "..."]:
    """Returns the length at which the output along the scores has a wanted relative error.

    It is the ``L`` with ``sqrt(E (ghat - s)^2) / s = error``, averaged over prompts of independent
    Gaussian tokens, found as a root of the exact function and not of its limit for long prompts,
    ``exp(s^2) (1 + s^2) / (s error)^2``, which is far too large beyond ``s = 1.5``.

    The error is relative to ``s``, what an infinite prompt puts out. That is small for scores that
    hardly vary, so that the length has a minimum near ``s = 1`` and grows to both sides.

    Args:
        score_deviation: Standard deviations ``s`` of the scores, at most 32.
        error: Relative root-mean-square errors above 0, such as 0.1; broadcasts against
            ``score_deviation``.

    Returns:
        Lengths, not rounded, at least 1; infinite beyond 1e12 and for ``s = 0``.

    Raises:
        InvalidInputError: If a deviation is negative or beyond 32, an error is not above 0, or
            shapes do not fit.
    """
    s, wanted = check_deviation(score_deviation), check_errors(error)
    try:
        s, wanted = np.broadcast_arrays(s, wanted)
    except ValueError:
        raise InvalidInputError(
            "error",
            f"shape {wanted.shape} does not broadcast against {s.shape} of score_deviation",
            "Give one error, or shapes that broadcast as those of NumPy arrays do",
        ) from None
    curves = ErrorCurves.of(s.ravel())
    ones = np.ones(s.size)
    lengths = curves.length_for(ones, np.zeros(s.size), (s * wanted).ravel() ** 2)
    return lengths.reshape(s.shape)


def check_errors(error: Any, argument: str = "error") -> Float[np.ndarray, "..."]:
    """Returns relative errors as float64, all above 0.

    Raises:
        InvalidInputError: If one is not.
    """
    wanted = as_float64(argument, error, largest=LARGEST)
    if not (wanted > 0).all():
        raise InvalidInputError(
            argument, f"{wanted.min():.6g} is not above 0", "Give relative errors, such as 0.1"
        )
    return wanted
