"""Exact averages over finite prompts whose scores are so wide that few tokens take all attention.

With ``log t = s^2 / 2 - s v``, the averages over one token of ``laplace`` are those of a standard
normal law with the density ``phi`` and the distribution ``Phi``, smeared out over ``1 / s``: with
``y = exp(s (g - v))``,

    E[y^k g^j exp(-y)] = int phi(v + x / s) (v + x / s)^j exp(k x - e^x) dx / s
    E exp(-y)          = int Phi(v + x / s) exp(x - e^x) dx

The same nodes in ``x`` and ``v`` serve all deviations, however large, and the integrands are smooth
on the scale of the largest of ``L`` tokens. By both sums the trapezoidal rule is exact to rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.special
from jaxtyping import Float

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
