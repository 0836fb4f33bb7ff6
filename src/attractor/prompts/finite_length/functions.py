"""Exact averages over finite prompts of Gaussian tokens, at every length.

Along the direction of its scores the output is ``ghat = sum_l softmax(s g)_l g_l`` with ``g`` of
``L`` independent standard normal entries and ``s`` the standard deviation of the scores; at
infinite length it is ``s``. Errors in any dimension are combinations of a few averages of it.

Where scores are so wide that few tokens take all attention, with ``log t = s^2 / 2 - s v``, the
averages over one token of ``laplace`` are those of a standard normal law with the density ``phi``
and the distribution ``Phi``, smeared out over ``1 / s``: with ``y = exp(s (g - v))``,

    E[y^k g^j exp(-y)] = int phi(v + x / s) (v + x / s)^j exp(k x - e^x) dx / s
    E exp(-y)          = int Phi(v + x / s) exp(x - e^x) dx

The same nodes in ``x`` and ``v`` serve all deviations, however large, and the integrands are smooth
on the scale of the largest of ``L`` tokens. By both sums the trapezoidal rule is exact to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.laplace import Transforms
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64

_RARE = 40.0
"""Minus the logarithm of what is left out."""
_WIDER = 1.25
_LOWEST = -9.5
_STEP = 0.25
_LAST = 4.0  # exp(-exp(4)) is 2e-24
_STEPS_PER_SCALE = 4


class _Token(NamedTuple):
    """Averages over one token at every node of ``v``.

    Attributes:
        step: The distance of two nodes in ``log t``.
        log_phi: ``log E exp(-y)``.
        first: ``E[y exp(-y)]``.
        second: ``E[y^2 exp(-y)]``.
        along: ``E[y g exp(-y)]``.
        square: ``E[y^2 g^2 exp(-y)]``.
    """

    step: float
    log_phi: Float[np.ndarray, "node"]
    first: Float[np.ndarray, "node"]
    second: Float[np.ndarray, "node"]
    along: Float[np.ndarray, "node"]
    square: Float[np.ndarray, "node"]


def is_frozen(s: float, L: Float[np.ndarray, "length"]) -> bool:
    """Whether the scores are wider than those of all tokens that matter at the longest length."""
    return s > _WIDER * largest_token(L)


def frozen_moments(s: float, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "value length"]:
    """The averages of ``PromptMoments``, in its order, at a deviation that ``is_frozen``."""
    one = _average(s, L)

    def integral(tokens: int, integrand: np.ndarray) -> Float[np.ndarray, "length"]:
        choices = L * (L - 1 if tokens == 2 else 1)
        return choices * (np.exp((L - tokens)[:, None] * one.log_phi) @ integrand) * one.step

    weights = integral(1, one.second)
    mean = s * integral(2, one.first**2)
    square = integral(1, one.square) + integral(2, one.along**2)
    # The mean is far below s, so that the difference of the two is exact.
    error = (s - mean) ** 2 + (square - mean**2)
    values = np.stack([error, mean, square, weights, (error - weights) / s**2])
    alone = np.array([1 + s**2, 0.0, 1.0, 1.0, 1.0])
    return np.where(L == 1, alone[:, None], values)


def largest_token(L: Float[np.ndarray, "length"]) -> float:
    """A token that next to no prompt of the longest length has."""
    return float(np.sqrt(2 * (np.log(L.max()) + _RARE)))


def _average(s: float, L: Float[np.ndarray, "length"]) -> _Token:
    last = largest_token(L)
    others = max(float(L.min()) - 1, 1e-9)
    first = max(-float(scipy.special.ndtri(min(1.0, 2 * _RARE / others))), _LOWEST)
    # The largest of many tokens varies on the scale of one over its size.
    spacing = 1 / (_STEPS_PER_SCALE * np.sqrt(1 + 2 * np.log(L.max())))
    v = np.arange(first, last + spacing, spacing)
    # To the left the kernel decays like exp(x), and the density grows like exp(-x v / s).
    x = np.arange(-_RARE / (1 - last / s), _LAST, _STEP)
    g = v[:, None] + x / s
    kernel = _STEP * np.exp(x - np.exp(x))
    above = scipy.special.ndtr(-g) @ kernel
    log_phi = np.log1p(-np.minimum(above, 0.5))
    often = above >= 0.5
    log_phi[often] = np.log(scipy.special.ndtr(g[often]) @ kernel)
    density = np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)
    once, twice = kernel / s, kernel * np.exp(x) / s
    return _Token(
        s * spacing,
        log_phi,
        density @ once,
        density @ twice,
        (density * g) @ once,
        (density * g**2) @ twice,
    )


LARGEST_DEVIATION = 32.0
"""Largest deviation of what is computed by ``laplace`` alone."""
LARGEST_LENGTH = 1e60


class PromptMoments(NamedTuple):
    """Averages over prompts, each as a function of score deviation ``s`` and length ``L``.

    Attributes:
        output_error: ``E (ghat - s)^2``.
        mean_output: ``E ghat``.
        output_second_moment: ``E ghat^2``.
        sum_of_squared_weights: ``E sum_l p_l^2``.
        error_per_variance: ``(E (ghat - s)^2 - E sum_l p_l^2) / s^2``, and its limit at ``s = 0``.
    """

    output_error: Float[np.ndarray, "*shape"]
    mean_output: Float[np.ndarray, "*shape"]
    output_second_moment: Float[np.ndarray, "*shape"]
    sum_of_squared_weights: Float[np.ndarray, "*shape"]
    error_per_variance: Float[np.ndarray, "*shape"]


def prompt_moments(score_deviation: ArrayLike, length: ArrayLike) -> PromptMoments:
    """Computes all averages of this module together, at the cost of one.

    Args:
        score_deviation: Standard deviations ``s`` of the scores, however large.
        length: Numbers of tokens ``L >= 1``, at most 1e60; broadcasts against ``score_deviation``.
            Between whole numbers the result interpolates.

    Returns:
        The averages, to a relative error below 1e-9.

    Raises:
        InvalidInputError: If a deviation is negative, or a length below 1.
    """
    return PromptMoments(*for_each_deviation(score_deviation, length, _moments, most=LARGEST))


def output_error(score_deviation: ArrayLike, length: ArrayLike) -> Float[np.ndarray, "..."]:
    """Returns the expected squared error along the scores, ``E (ghat - s)^2``.

    It is not divided by ``s^2``; at ``s = 0`` it is ``1 / L``, and at ``L = 1`` it is ``1 + s^2``.
    Arguments, accuracy and errors are those of ``prompt_moments``.
    """
    return prompt_moments(score_deviation, length).output_error


def mean_output(score_deviation: ArrayLike, length: ArrayLike) -> Float[np.ndarray, "..."]:
    """Returns ``E ghat``, which is ``s (1 - E sum_l p_l^2)``.

    Arguments, accuracy and errors are those of ``prompt_moments``.
    """
    return prompt_moments(score_deviation, length).mean_output


def output_second_moment(score_deviation: ArrayLike, length: ArrayLike) -> Float[np.ndarray, "..."]:
    """Returns ``E ghat^2``, computed without taking differences of large numbers.

    Arguments, accuracy and errors are those of ``prompt_moments``.
    """
    return prompt_moments(score_deviation, length).output_second_moment


def sum_of_squared_weights(
    score_deviation: ArrayLike, length: ArrayLike
) -> Float[np.ndarray, "..."]:
    """Returns ``E sum_l p_l^2``, between ``1 / L`` and 1.

    Arguments, accuracy and errors are those of ``prompt_moments``.
    """
    return prompt_moments(score_deviation, length).sum_of_squared_weights


def for_each_deviation(
    score_deviation: ArrayLike,
    length: ArrayLike,
    compute: Callable[[float, Float[np.ndarray, "length"]], Float[np.ndarray, "value length"]],
    *,
    most: float = LARGEST_DEVIATION,
) -> Float[np.ndarray, "value ..."]:
    """Computes some values for every pair, with one call for all lengths of a deviation.

    Raises:
        InvalidInputError: If a deviation is negative or beyond ``most``, or a length below 1.
    """
    s, L = with_deviations(score_deviation, "length", check_length(length), most=most)
    deviations, group = np.unique(s.ravel(), return_inverse=True)
    lengths, place = np.unique(L.ravel(), return_inverse=True)
    order = np.argsort(group, kind="stable")
    ends = np.searchsorted(group[order], np.arange(len(deviations) + 1))
    values = None
    for i, deviation in enumerate(deviations):
        members = order[ends[i] : ends[i + 1]]
        wanted, where = np.unique(place[members], return_inverse=True)
        found = compute(float(deviation), lengths[wanted])
        values = np.empty((len(found), s.size)) if values is None else values
        values[:, members] = found[:, where]
    if values is None:  # no pairs, whose values still have names
        values = np.empty((len(compute(0.0, np.ones(1))), 0))
    return values.reshape(len(values), *s.shape)


def with_deviations(
    score_deviation: ArrayLike,
    argument: str,
    other: Float[np.ndarray, "..."],
    *,
    most: float = LARGEST_DEVIATION,
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """Returns deviations in [0, most] and another argument, broadcast against each other.

    Raises:
        InvalidInputError: If a deviation is not that, or shapes do not broadcast.
    """
    s = check_deviation(score_deviation, most)
    try:
        s, other = np.broadcast_arrays(s, other)
    except ValueError:
        raise InvalidInputError(
            argument,
            f"shape {other.shape} does not broadcast against {s.shape} of score_deviation",
            f"Give one {argument}, or shapes that broadcast as those of NumPy arrays do",
        ) from None
    return s, other


def check_deviation(
    score_deviation: ArrayLike, most: float = LARGEST_DEVIATION
) -> Float[np.ndarray, "..."]:
    """Returns deviations as float64, all in [0, most].

    Raises:
        InvalidInputError: If one is not.
    """
    s = as_float64("score_deviation", score_deviation, largest=LARGEST)
    if (s < 0).any():
        raise InvalidInputError(
            "score_deviation",
            f"{s.min():.6g} is negative",
            "Give standard deviations of the scores, sqrt(z^T U^T Gamma U z)",
        )
    if (s > most).any():
        raise InvalidInputError(
            "score_deviation",
            f"{s.max():.6g} is beyond {most:g}, where one token takes all attention at any length "
            "there is",
            f"Give deviations of at most {most:g}",
        )
    return s


def check_length(length: Any, argument: str = "length") -> Float[np.ndarray, "..."]:
    """Returns lengths as float64, all in [1, 1e60].

    Raises:
        InvalidInputError: If one is not.
    """
    L = as_float64(argument, length)
    if (L < 1).any():
        raise InvalidInputError(
            argument, f"{L.min():.6g} is below 1", "A prompt has at least one token"
        )
    if (L > LARGEST_LENGTH).any():
        raise InvalidInputError(
            argument,
            f"{L.max():.6g} is beyond {LARGEST_LENGTH:g}, whose powers leave floating point",
            "Give a shorter prompt, or the limit of infinite length in its place",
        )
    return L


def check_queries(
    query: Any, columns: int, length: Any
) -> tuple[Float[np.ndarray, "*batch e"], Float[np.ndarray, "..."]]:
    """Returns queries and lengths as float64, whose shapes broadcast.

    Raises:
        InvalidInputError: If queries have not as many entries as a score matrix has columns, a
            length is not in [1, 1e60], or shapes do not broadcast.
    """
    z = as_float64("query", query, largest=LARGEST)
    if z.ndim < 1 or z.shape[-1] != columns:
        raise InvalidInputError(
            "query", f"the shape is {z.shape}", f"Give (..., {columns}): U has that many columns"
        )
    lengths = check_length(length)
    try:
        np.broadcast_shapes(z.shape[:-1], lengths.shape)
    except ValueError:
        raise InvalidInputError(
            "length",
            f"shape {lengths.shape} does not broadcast against {z.shape[:-1]} queries",
            "Give one length, or an array with axes of length 1 where queries have theirs",
        ) from None
    return z, lengths


def _moments(s: float, L: Float[np.ndarray, "length"]) -> Float[np.ndarray, "value length"]:
    """The averages of ``PromptMoments``, in its order."""
    if s == 0:
        return np.stack([1 / L, np.zeros_like(L), 1 / L, 1 / L, 1 / L])
    if is_frozen(s, L):
        return frozen_moments(s, L)
    one = Transforms.of(s, L, (0, 0, 2, 0, 0))
    first, second, third, fourth = (one.moment(power) for power in (1, 2, 3, 4))
    around_zero = one.moment(2, 2) + 2 * s * one.moment(2, 1) + s**2 * second

    alone = np.stack([one.moment(2, 2), around_zero, second, second - 3 * third + fourth])
    of_two = np.stack([s * second, s * (first - second), first, second]) ** 2
    error, squared, weights, per_variance = one.integral(L, 1, 2, alone)
    other_error, other_squared, pairs, other_per_variance = one.integral(L, 2, 2, of_two)
    error, squared = error + other_error, squared + other_squared
    values = np.stack([error, s * pairs, squared, weights, per_variance + other_per_variance])
    single = np.array([1 + s**2, 0.0, 1.0, 1.0, 1.0])
    return np.where(L == 1, single[:, None], values)
