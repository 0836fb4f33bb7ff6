"""The effective number of tokens that a softmax over a prompt averages."""

from __future__ import annotations

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.functions import check_deviation, sum_of_squared_weights


def effective_sample_size(
    score_deviation: ArrayLike, length: ArrayLike
) -> Float[np.ndarray, "..."]:
    """Returns ``1 / E sum_l p_l^2``, the number of equal weights with the same sum of squares.

    It is between 1 and ``L``, and ``L exp(-s^2)`` for prompts much longer than ``exp(s^2)``.

    Args:
        score_deviation: Standard deviations ``s`` of the scores of Gaussian tokens.
        length: Numbers of tokens ``L >= 1``; broadcasts against ``score_deviation``.

    Raises:
        InvalidInputError: If a deviation is negative, or a length below 1.
    """
    return 1 / sum_of_squared_weights(score_deviation, length)


def freezing_length(score_deviation: ArrayLike) -> Float[np.ndarray, "..."]:
    """Returns ``exp(s^2 / 2)``, the length below which few tokens hold all attention.

    There the output along the scores is near ``sqrt(2 log L)`` and not ``s``: it stays away from
    the infinite prompt for so long that it looks as if it did not converge.

    Args:
        score_deviation: Standard deviations ``s`` of the scores of Gaussian tokens, at most 32.

    Raises:
        InvalidInputError: If a deviation is negative or beyond 32.
    """
    return np.exp(check_deviation(score_deviation) ** 2 / 2)
