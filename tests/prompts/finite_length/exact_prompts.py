"""Errors of prompts of tokens on a line in mpmath, from closed forms that share no code.

A law is a list of weights and parts, and every part gives ``E[x^j w^k exp(-t w)]`` for the weight
``w = exp(a x)``. Averages over prompts are sums over which tokens coincide, each an integral over
``log t`` of products of these, by the trapezoidal rule.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence

import mpmath
from mpmath import mpf

DIGITS = 40
_STEP = mpf(1) / 4
"""Of ``log t``: errors are below 1e-13 of the results, for most lengths below 1e-15."""
_LARGE = 100
"""From this ``t`` on ``exp(-t)`` is below all digits."""
_MOST = 4
"""Of powers of ``x`` and ``w``."""

Table = list[list[mpf]]
"""``E[x^j w^k exp(-t w)]``, by ``k`` and ``j``."""


class LaplacePart:
    """Density ``exp(-|x| / b) / (2 b)``, by series of incomplete Gamma functions."""

    def __init__(self, scale: float, slope: float) -> None:
        """Computes what no ``t`` changes."""
        self.scale, self.slope = mpf(scale), mpf(slope)
        rate = 1 / (self.scale * self.slope)
        self.places = {side: [k - side * rate for k in range(_MOST + 1)] for side in (1, -1)}
        self.complete = {
            (side, k): _derivatives_of_gamma(self.places[side][k])
            for side in (1, -1)
            for k in range(_MOST + 1)
        }

    def __call__(self, t: mpf) -> Table:
        """The table at ``t``, from ``s^(z - 1) exp(-t s)`` on ``(0, 1)`` and beyond 1."""
        found = []
        for k in range(_MOST + 1):
            below, above = (self._of_power(side, k, t) for side in (-1, 1))
            # x = log(s) / a, whose powers are derivatives in z.
            found.append(
                [
                    (b + a) / (2 * self.scale * self.slope ** (j + 1))
                    for j, (b, a) in enumerate(zip(below, above, strict=True))
                ]
            )
        return found

    def _of_power(self, side: int, k: int, t: mpf) -> list[mpf]:
        z = self.places[side][k]
        if t > _LARGE:
            return self._whole(side, k, t) if side < 0 else [mpf(0)] * (_MOST + 1)
        series = [mpf(0)] * (_MOST + 1)
        term, n = mpf(1), 0
        while n < 2 * t + 5 or abs(term) > mpmath.eps:
            for j in range(_MOST + 1):
                series[j] += term * (-1) ** j * math.factorial(j) / (n + z) ** (j + 1)
            n += 1
            term *= -t / n
        if side < 0:
            return series
        return [w - s for w, s in zip(self._whole(side, k, t), series, strict=True)]

    def _whole(self, side: int, k: int, t: mpf) -> list[mpf]:
        """Derivatives of ``Gamma(z) t^(-z)``."""
        z, log_t, gamma = self.places[side][k], mpmath.log(t), self.complete[side, k]
        return [
            t**-z * sum(math.comb(j, i) * gamma[i] * (-log_t) ** (j - i) for i in range(j + 1))
            for j in range(_MOST + 1)
        ]


class GaussianPart:
    """Normal tokens, by the trapezoidal rule."""

    def __init__(self, mean: float, deviation: float, slope: float) -> None:
        """Chooses nodes."""
        reach = 2 * _MOST * mpf(slope) * mpf(deviation) + 15
        step = mpf(1) / max(8, math.ceil(6 * slope * deviation))
        nodes = [step * n for n in range(-int(15 / step), int(reach / step) + 1)]
        self.x = [mean + mpf(deviation) * g for g in nodes]
        self.w = [mpmath.exp(slope * x) for x in self.x]
        self.density = [step * mpmath.npdf(g) for g in nodes]

    def __call__(self, t: mpf) -> Table:
        """The table at ``t``."""
        found = [[mpf(0)] * (_MOST + 1) for _ in range(_MOST + 1)]
        for x, w, density in zip(self.x, self.w, self.density, strict=True):
            left = density * mpmath.exp(-t * w)
            for k in range(_MOST + 1):
                for j in range(_MOST + 1):
                    found[k][j] += left * w**k * x**j
        return found


def exact_errors(
    parts: Sequence[tuple[float, Callable[[mpf], Table]]],
    mean: mpf,
    variance: mpf,
    lengths: Sequence[float],
) -> dict[float, tuple[mpf, mpf, mpf]]:
    """``E (m_hat - m)^2``, ``E (C_hat - C)^2`` and ``E sum p^2``, by length.

    Args:
        parts: Weights and parts of the law.
        mean: ``m``, under attention over infinitely many tokens.
        variance: ``C``.
        lengths: Numbers of tokens ``L >= 2``.
    """
    longest = math.log(max(lengths))
    start, end = -longest - 45, 30
    logs = [_STEP * n for n in range(int(start / _STEP), int(end / _STEP) + 1)]
    xi = {1: mpf(1), 0: -mean}
    Y = _product([xi, xi, {0: mpf(1)}])
    Y[0] -= variance
    wanted = [
        [(1, [xi, xi])],
        [(1, [Y, Y]), (-2, [Y, xi, xi]), (1, [xi] * 4)],
    ]
    totals = {length: [mpf(0)] * 3 for length in lengths}
    for log_t in logs:
        t = mpmath.exp(log_t)
        tables = [(weight, part(t)) for weight, part in parts]

        def average(power: int, polynomial: dict[int, mpf], t: mpf = t, tables: list = tables):
            return t**power * sum(
                weight * sum(c * table[power][j] for j, c in polynomial.items())
                for weight, table in tables
            )

        phi = average(0, {0: mpf(1)})
        rests = {
            length: [phi ** (mpf(length) - m) if m <= length else mpf(0) for m in range(5)]
            for length in lengths
        }
        for place, terms in enumerate(wanted):
            for factor, functions in terms:
                for tokens, integrand in _coincidences(functions, average):
                    for length in lengths:
                        choices = functools.reduce(
                            lambda all_, m, n=length: all_ * (mpf(n) - m), range(tokens), mpf(1)
                        )
                        totals[length][place] += (
                            factor
                            * choices
                            * integrand
                            * rests[length][tokens]
                            * _STEP
                            / math.factorial(len(functions) - 1)
                        )
        once = average(2, {0: mpf(1)}) * _STEP
        for length in lengths:
            totals[length][2] += length * once * rests[length][1]
    return {length: tuple(total) for length, total in totals.items()}


def tilted(parts: Sequence[tuple[float, Callable]], slope: float) -> tuple[mpf, mpf]:
    """Mean and variance under attention over infinitely many tokens."""
    moments = [sum(weight * part(slope)[j] for weight, part in parts) for j in range(3)]
    mean = moments[1] / moments[0]
    return mean, moments[2] / moments[0] - mean**2


def tilted_laplace(scale: float) -> Callable[[float], list[mpf]]:
    """``E[x^j exp(a x)]`` for ``j`` up to 2."""

    def at(slope: float) -> list[mpf]:
        b, a = mpf(scale), mpf(slope)
        rest = 1 - (a * b) ** 2
        return [1 / rest, 2 * a * b**2 / rest**2, 2 * b**2 / rest**2 + 8 * a**2 * b**4 / rest**3]

    return at


def tilted_gaussian(mean: float, deviation: float) -> Callable[[float], list[mpf]]:
    """``E[x^j exp(a x)]`` for ``j`` up to 2."""

    def at(slope: float) -> list[mpf]:
        variance = mpf(deviation) ** 2
        value = mpmath.exp(slope * mpf(mean) + variance * slope**2 / 2)
        moved = mean + slope * variance
        return [value, value * moved, value * (variance + moved**2)]

    return at


def _derivatives_of_gamma(z: mpf) -> list[mpf]:
    """Those of ``Gamma``, from derivatives of its logarithm."""
    found = [mpmath.gamma(z)]
    for order in range(_MOST):
        found.append(
            sum(
                math.comb(order, i) * mpmath.polygamma(i, z) * found[order - i]
                for i in range(order + 1)
            )
        )
    return found


def _coincidences(functions: Sequence[dict], average: Callable) -> Iterator[tuple[int, mpf]]:
    """Every partition of the functions into those of one token, and its product of averages."""
    for blocks in _partitions(list(functions)):
        averages = [average(len(block), _product(block)) for block in blocks]
        yield len(blocks), functools.reduce(lambda one, two: one * two, averages)


def _partitions(items: list) -> Iterator[list[list]]:
    if not items:
        yield []
        return
    for rest in _partitions(items[1:]):
        yield [[items[0]], *rest]
        for place, block in enumerate(rest):
            yield [*rest[:place], [items[0], *block], *rest[place + 1 :]]


def _product(polynomials: Sequence[dict[int, mpf]]) -> dict[int, mpf]:
    found = {0: mpf(1)}
    for one in polynomials:
        longer: dict[int, mpf] = {}
        for i, a in found.items():
            for j, b in one.items():
                longer[i + j] = longer.get(i + j, 0) + a * b
        found = longer
    return found
