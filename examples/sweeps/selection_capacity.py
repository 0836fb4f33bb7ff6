"""How many random sequences some matrix can select a token of: a theory without parameters.

Scores that are linear in a vector of N unknowns, with independent Gaussian coefficients for each
of T tokens, are a random subspace of dimension N. It meets a product of cones
``{h : h_1 >= h_t}`` beyond the origin with probability (the kinematic formula; Schneider and Weil
2008, Theorem 6.5.6; Amelunxen, Lotz, McCoy and Tropp 2014, arXiv 1303.6672)::

    2 (P(K = N - 1) + P(K = N - 3) + ...),    K = k_1 + ... + k_n,

where ``T - k`` is distributed as the intrinsic volumes of that cone. For T = 2 the k are fair
coins and this is Cover's theorem. Attention has ``N = d^2`` unknowns and rank-one coefficients, for
which it is exact with T = 2; with more tokens it is a limit of large d.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp, wofz

_NEGLIGIBLE = 1e-18
"""Probability below which a number of pooled tokens is left out."""
_SPACING = 0.04
_LINE = _SPACING * np.arange(-250, 251)
"""Nodes of the trapezoidal rule, which converges exponentially for what is integrated here."""


def selection_capacity(T: int) -> float:
    """Random sequences for each of d^2 unknowns at which half of the data sets can be selected.

    ``1 / E k``, where k is the number of tokens pooled with the selected one when T independent
    standard normal scores are moved, as little as possible, to where the selected one is largest.
    It is 2 for T = 2, Cover's number, 6/5 for T = 3, and falls like ``1 / (2 log T)``.
    """
    pooled = pooled_tokens(T)
    return float(1 / (pooled @ np.arange(len(pooled))))


@functools.lru_cache(64)
def pooled_tokens(T: int) -> np.ndarray:
    """Probabilities that 0, 1, 2, ... tokens are pooled with the selected one.

    Of T independent standard normal scores, k others are pooled with the selected one if they
    exceed the mean m of these k + 1, and the other T - 1 - k do not::

        P(k) = binomial(T - 1, k) q_k E Phi(m)^(T - 1 - k),    m ~ N(0, 1 / (k + 1)).

    ``q_k``, the probability that k of k + 1 scores exceed the mean of all, is an orthant
    probability of equal negative correlations: ``E Phi(i y)^k`` with y like m, integrated along
    the line through its saddle point. (Derived here; that they add up to 1 is not enforced.)
    """
    found: list[float] = []
    for k in range(T):
        others = T - 1 - k
        ways = math.lgamma(T) - math.lgamma(k + 1) - math.lgamma(others + 1)
        below = _log_mean_power(1 / math.sqrt(k + 1), others)
        found.append(math.exp(ways + _log_all_exceed_mean(k) + below))
        if k > 2 and found[-1] < _NEGLIGIBLE and found[-1] < found[-2]:
            break
    return np.array(found)


def _log_mean_power(deviation: float, power: int) -> float:
    """``log E Phi(m)^power`` of a normal number m with mean 0."""

    def exponents(x: np.ndarray) -> np.ndarray:
        return power * log_ndtr(deviation * x) - x**2 / 2

    wide = np.arange(0, 10 / deviation, _SPACING)  # of one peak, where m is below 10
    line = wide[np.argmax(exponents(wide))] + _LINE
    integral: Any = logsumexp(exponents(line))
    return float(integral) + math.log(_SPACING / math.sqrt(2 * math.pi))


@functools.cache
def _log_all_exceed_mean(k: int) -> float:
    """Logarithm of the probability that k of k + 1 normal numbers exceed the mean of all.

    ``sqrt((k + 1) / (2 pi)) int exp(z^2 / 2) (erfcx(-z / sqrt 2) / 2)^k dt`` along ``z = u + i t``.
    """
    if k == 0:
        return 0.0
    u = -math.sqrt(k)
    z = u + 1j * _LINE
    exponents = z**2 / 2 + k * np.log(wofz(-1j * z / math.sqrt(2)) / 2)
    top = exponents.real.max()
    integral = np.exp(exponents - top).sum().real * _SPACING
    return float(0.5 * math.log((k + 1) / (2 * math.pi)) + top + math.log(integral))
