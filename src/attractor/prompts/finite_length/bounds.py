"""Bounds on errors of finite prompts that hold for every sub-Gaussian law, with their constants.

Tokens ``x`` are centered and ``sigma``-sub-Gaussian in R^d, ``sigma >= 1``; queries ``z`` are
centered and 1-sub-Gaussian in R^e; ``u`` and ``v`` are the operator norms of ``U`` and ``V``. For
``a = U z``, ``r = |a|`` and weights ``w = exp(a^T x) / E exp(a^T x)``, everything follows from

    E w^k <= exp(k^2 sigma^2 r^2 / 2),    |m_a| <= 2 sigma^2 r,
    E_{k a} exp(theta |x|^2) <= (1 - q)^(-d/2) exp(k^2 sigma^2 r^2 / (2 (1 - q))),
    P(mean of w < 1 - delta) <= exp(-delta^2 L / (2 E w^2)),

with ``q = 2 sigma^2 theta < 1``. Queries with ``r^2 > tau`` are few, and there the error is at most
what the largest token makes of it. For the others, sums of weights are near their means but for an
exponentially small share of prompts, and the error is that of plain averages. The bound is the
least over ``tau``, ``delta`` and ``theta``. It proves, with constants, what *Softmax as Linear
Attention in the Large-Prompt Regime* (arXiv 2512.11784) states of output and gradients with
constants that exist, for ``1 + log L`` in the place of ``log L``.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.functions import check_length
from attractor.support.checks import check_choice, check_count, check_kinds, check_number, shown
from attractor.support.errors import InvalidInputError

Error = Literal["output", "value_gradient", "score_gradient"]
"""What concentrates."""
_SHARES = np.linspace(0.04, 0.96, 24)
"""Values of ``q``."""
_GROWTHS = np.linspace(0.02, 0.9, 23)
"""Of ``E w^2``, as exponents of ``L``, at the largest ``r`` called near."""
_RATES = np.array([0.1, 0.3, 0.5, 0.7, 0.85, 0.95])
"""Of the tail of queries, over the least that is infinite."""
_SHORTFALLS = np.array([0.2, 0.3, 0.4, 0.5, 0.7])
"""Values of ``delta``."""
_LONGEST = 60
_DEVIATIONS = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)


@dataclasses.dataclass(frozen=True)
class ConcentrationBounds:
    """Bounds on the mean squared errors of a head, averaged over prompts and queries.

    Attributes:
        token_dimension: ``d``.
        query_dimension: ``e``.
        score_norm: ``u``, the operator norm of the score matrix.
        value_norm: ``v``, that of the value matrix.
        limit: ``M`` with ``|| T ||_(L4) <= sigma^2 M`` for the output ``T`` of the infinite prompt.
        mean: The same for the tilted mean, the output at ``V = I``.
        tilted_moments: ``(M_48, M_04)``: the averages over queries of ``|z|^4 E_a |x|^8``, over
            ``sigma^16``, and of ``|z|^4``.
    """

    token_dimension: int
    query_dimension: int
    score_norm: float
    value_norm: float
    limit: float
    mean: float
    tilted_moments: tuple[float, float]

    def __post_init__(self) -> None:
        """Validates.

        Raises:
            InvalidInputError: If a dimension is not a count, or a number is negative.
        """
        for name in ("token_dimension", "query_dimension"):
            check_count(name, getattr(self, name))
        for name in ("score_norm", "value_norm", "limit", "mean"):
            check_number(name, getattr(self, name), least=0.0, example=1.0)
        moments = self.tilted_moments
        if not isinstance(moments, Sequence | np.ndarray) or len(moments) != 2:
            raise InvalidInputError("tilted_moments", f"it is {shown(moments)}", "Give two numbers")
        for moment in moments:
            check_number("tilted_moments", moment, least=0.0, example=1.0)

    def output(self, sigma: float, length: ArrayLike) -> Float[np.ndarray, "length"]:
        """A bound on ``E || V (m_hat - m_a) ||^2``.

        Args:
            sigma: The sub-Gaussian parameter of the tokens, at least 1.
            length: Numbers of tokens.

        Raises:
            InvalidInputError: If sigma is below 1, or a length.
        """
        return self._of_mean(sigma, length, self.value_norm, self.limit)

    def value_gradient(self, sigma: float, length: ArrayLike) -> Float[np.ndarray, "length"]:
        """A bound on ``E || m_hat - m_a ||^2``, which is the error in ``V`` for each row of ``V``.

        Arguments and errors are those of ``output``.
        """
        return self._of_mean(sigma, length, 1.0, self.mean)

    def _of_mean(
        self, sigma: float, length: ArrayLike, v: float, limit: float
    ) -> Float[np.ndarray, "length"]:
        s, L = _checked(sigma, length)
        T, d = s**2 * limit, self.token_dimension
        largest, fourth = (_largest_norm(n, L, d, s) for n in (1, 2))
        best = (v * np.sqrt(largest) + T) ** 2
        best = np.where(L == 1, v**2 * largest + T**2, best)  # one token, of mean zero

        for near in self._near(s, L):
            second = (np.sqrt(_norm(1, 2, near, d, s)) + near.mean) ** 2 * near.weight  # E w^2 xi^2
            rare = v * np.sqrt(largest * near.far) + T * near.far**0.25
            for delta in _SHORTFALLS:
                few = near.shortfall(delta)
                mean = np.sqrt(fourth * few) ** 0.5 + near.mean * np.sqrt(few)
                plain = v**2 * (second / ((1 - delta) ** 2 * L) + mean**2)
                best = np.minimum(best, rare**2 + plain)
        return best

    def score_gradient(self, sigma: float, length: ArrayLike) -> Float[np.ndarray, "length"]:
        """A bound on ``E |z|^2 || V (C_hat - C_a) ||_F^2``.

        Arguments and errors are those of ``output``.
        """
        s, L = _checked(sigma, length)
        d, e, v = self.token_dimension, self.query_dimension, self.value_norm
        moment, query_moment = math.sqrt(self.tilted_moments[0]) * s**8, self.tilted_moments[1]
        # The covariance of a prompt: at most its largest square, or half the mean squared distance.
        pairs = np.maximum(L * (L - 1) / 2, 1.0)
        distance = ((L - 1) / (2 * L)) ** 2 * _largest_norm(2, pairs, d, math.sqrt(2) * s)
        largest = np.minimum(_largest_norm(2, L, d, s), distance)
        eighth = _largest_norm(4, L, d, s)
        # Both covariances are positive semidefinite: their inner product is not negative.
        best = v**2 * (e * largest + moment)

        for near in self._near(s, L):
            square = _norm(1, 1, near, d, s)
            spread = near.weight * (_norm(2, 2, near, d, s) + square**2) / L
            second = (np.sqrt(_norm(1, 2, near, d, s)) + near.mean) ** 2 * near.weight / L
            quartic = near.weight**4 * (_norm(2, 4, near, d, s) ** 0.25 + near.mean) ** 4 / L**3
            quartic += 3 * second**2
            rare = np.sqrt(near.far) * (largest * math.sqrt(query_moment) + moment)
            for delta in _SHORTFALLS:
                few, rest = near.shortfall(delta), 1 - delta
                shift = 2 * quartic / rest**4 + 8 * near.mean**2 * second / rest**2
                plain = (np.sqrt(spread) / rest + np.sqrt(shift)) ** 2
                plain = plain + np.sqrt(eighth * few) + square**2 * few
                best = np.minimum(best, v**2 * (rare + e * plain))
        return best

    def constants(self, error: Error, shape: BoundShape) -> ConcentrationConstants:
        """The constants with which the bound of an error has the shape of the paper.

        ``c2 = min(1/16, 1/(32 u^2))``, and ``c1`` is the largest bound over its shape, over lengths
        up to 1e60 and ``sigma`` up to 10.

        Args:
            error: ``"output"``, ``"value_gradient"`` or ``"score_gradient"``.
            shape: The shape.

        Raises:
            InvalidInputError: If there is no such error, or the shape is no ``BoundShape``.
        """
        bound = getattr(self, check_choice("error", error, get_args(Error)))
        check_kinds(shape=(shape, BoundShape))
        c2 = 1 / max(16.0, 32.0 * self.score_norm**2)
        lengths = np.concatenate([np.arange(1.0, 32), 10.0 ** np.arange(1.5, _LONGEST + 0.1, 0.25)])
        lengths = lengths[shape.start + np.log(lengths) > 0]
        ratios = [bound(sigma, lengths) / shape(sigma, lengths, c2) for sigma in _DEVIATIONS]
        return ConcentrationConstants(float(np.max(ratios)), c2)

    def _near(self, s: float, L: Float[np.ndarray, "length"]) -> Iterator[_Near]:
        """Ways to call queries near."""
        for growth in _GROWTHS:
            tau = growth * np.log(L) / (2 * s**2)
            far = np.zeros_like(L)
            if self.score_norm:
                rates = _RATES.reshape(-1, *(1,) * L.ndim)
                tails = -self.query_dimension / 2 * np.log1p(-rates)
                tails = tails - rates * tau / (2 * self.score_norm**2)
                far = np.exp(np.minimum(tails.min(0), 0.0))
            yield _Near(L, tau, far, np.exp(2 * s**2 * tau), 2 * s**2 * np.sqrt(tau))


class BoundShape(NamedTuple):
    """The shape ``sigma^p (start + log L)^k / L^(c2 / sigma^2)`` of a bound.

    Attributes:
        power: ``p``.
        logarithms: ``k``.
        start: 0 as printed, or 1, which covers prompts of one token.
    """

    power: int
    logarithms: int
    start: float

    def __call__(
        self, sigma: float, length: Float[np.ndarray, "length"], c2: float
    ) -> Float[np.ndarray, "length"]:
        """The shape at some lengths, without ``c1``."""
        logarithms = (self.start + np.log(length)) ** self.logarithms
        return sigma**self.power * logarithms * length ** (-c2 / sigma**2)


class ConcentrationConstants(NamedTuple):
    """The two constants of a bound.

    Attributes:
        c1: Its factor.
        c2: Its exponent at ``sigma = 1``.
    """

    c1: float
    c2: float


class _Near(NamedTuple):
    """Queries with ``r^2 <= tau``.

    Attributes:
        length: ``L``.
        tau: ``tau``.
        far: A bound on the share of the other queries.
        weight: A bound on ``E w^2`` of these.
        mean: A bound on ``|m_a|`` of these.
    """

    length: Float[np.ndarray, "length"]
    tau: Float[np.ndarray, "length"]
    far: Float[np.ndarray, "length"]
    weight: Float[np.ndarray, "length"]
    mean: Float[np.ndarray, "length"]

    def shortfall(self, delta: float) -> Float[np.ndarray, "length"]:
        """A bound on the probability that the weights have a mean below ``1 - delta``."""
        return np.exp(-(delta**2) * self.length / (2 * self.weight))


def _checked(sigma: float, length: ArrayLike) -> tuple[float, Float[np.ndarray, "length"]]:
    sigma = check_number("sigma", sigma, least=1.0, example=1.0)
    return sigma, check_length(length)


def _norm(n: int, k: int, near: _Near, d: int, s: float) -> Float[np.ndarray, "length"]:
    """A bound on ``E_{k a} |x|^(2 n)`` of near queries."""
    q = _SHARES
    log_mean = -d / 2 * np.log1p(-q) + k**2 * s**2 * near.tau[..., None] / (2 * (1 - q))
    return _moments(n, log_mean, q / (2 * s**2))


def _largest_norm(
    n: int, L: Float[np.ndarray, "length"], d: int, s: float
) -> Float[np.ndarray, "length"]:
    """A bound on ``E max_l |x_l|^(2 n)`` of ``L`` tokens."""
    q = np.concatenate([[1e-6], _SHARES])
    log_mean = np.log(L)[..., None] - d / 2 * np.log1p(-q)
    found = _moments(n, log_mean, q / (2 * s**2))
    if d == 1 and n > 1:  # two tails
        found = np.minimum(found, _from_tail(n, np.log(2 * L)) * (2 * s**2) ** n)
    return found


def _moments(
    n: int, log_mean: Float[np.ndarray, "length q"], theta: Float[np.ndarray, "q"]
) -> Float[np.ndarray, "length"]:
    """The least bound on ``E Y^n / theta^n`` from ``E exp(Y) <= B`` for ``Y >= 0``."""
    if n == 1:
        return (log_mean / theta).min(-1)  # by Jensen's inequality
    with np.errstate(over="ignore"):
        by_series = math.factorial(n) * np.expm1(log_mean)  # y^n <= n! (e^y - 1)
    return (np.minimum(_from_tail(n, log_mean), by_series) / theta**n).min(-1)


def _from_tail(n: int, log_bound: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """``E Y^n`` if ``P(Y > y) <= B exp(-y)``: ``n! sum_(k <= n) (log B)^k / k!``."""
    terms = (log_bound**k / math.factorial(k) for k in range(n + 1))
    return math.factorial(n) * functools.reduce(np.add, terms)
