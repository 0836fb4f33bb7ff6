"""Measured values of claims, computed again from the definitions in NumPy and SciPy alone.

A prompt of ``L`` standard normal scores ``g`` attends with the shares of ``w = exp(s g - s^2 / 2)``
and returns ``ghat``. With ``1 / S^2 = int t exp(-t S) dt`` for the sum ``S`` of the ``w``, tokens
are independent under the integral, and with ``phi(t) = E exp(-t w)``

    E sum p^2        = int t L E[w^2 exp(-t w)] phi^(L-1) dt
    E (ghat - s)^2   = int t (L E[(g - s)^2 w^2 exp(-t w)] phi^(L-1)
                              + L (L - 1) E[(g - s) w exp(-t w)]^2 phi^(L-2)) dt

where integration by parts turns the last average into ``-s t E[w^2 exp(-t w)]``. All integrals
here are sums over fine lattices, of ``log t`` and ``g``, on which such integrands converge
exponentially. Nothing of the package is used but the arrays of the data.
"""

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.optimize

from attractor.papers import get_claim
from attractor.papers.large_prompt.data import line
from attractor.papers.large_prompt.regression import independent


def errors_of_prompts(deviation, lengths):
    """``E (ghat - s)^2`` and ``E sum p^2`` for one ``s`` and each length."""
    s, lengths = deviation, np.asarray(lengths, dtype=float)[:, None]
    log_length = np.log(lengths.max())
    log_t = np.arange(-log_length - 20 - s**2 / 2, s**2 / 2 + 9 * s + 8, 0.2)
    spacing = min(0.1, 0.25 / max(s, 1e-9))
    g = np.arange(-10, 2 * s + 12, spacing)
    density = spacing * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)
    y = np.exp(np.minimum(log_t[:, None] + s * g - s**2 / 2, 7.0))  # t w
    squared, centered = (y**2 * np.exp(-y) @ np.stack([density, (g - s) ** 2 * density], 1)).T
    log_phi = np.log1p(-np.minimum(-(np.expm1(-y) @ density), 1 - 1e-16))
    one, two = (np.exp((lengths - k) * log_phi) for k in (1, 2))
    shares = lengths * squared * one
    error = lengths * centered * one + lengths * (lengths - 1) * (s * squared) ** 2 * two
    return 0.2 * error.sum(-1), 0.2 * shares.sum(-1)


def test_errors_of_one_token_and_of_plain_averages():
    error, shares = errors_of_prompts(1.5, [1])
    assert (error[0], shares[0]) == pytest.approx((1 + 1.5**2, 1.0), rel=1e-9)
    error, shares = errors_of_prompts(0.0, [2, 1e12])
    assert error == pytest.approx([1 / 2, 1e-12], rel=1e-9)
    assert shares == pytest.approx([1 / 2, 1e-12], rel=1e-9)


def test_the_exponent_of_averaged_errors():
    case = line(1.0)
    lengths = np.array([1e12, 1e24, 1e36])
    horizon = float(np.sqrt(case.token_moments[1][0, 0]) * abs(case.U[0, 0]))
    queries = np.arange(0.25, 12.5, 0.5)  # midpoints; both signs have the same errors
    errors = np.array([errors_of_prompts(horizon * z, lengths)[0] for z in queries])
    averaged = np.exp(-(queries**2) / 2) @ errors
    logs = np.log(lengths)
    terms = np.stack([np.ones(3), -logs, np.log(logs)], axis=1)
    exponent = np.linalg.solve(terms, np.log(averaged))[1]
    claimed = (np.sqrt(1 + 4 / horizon**2) - 1) / 2

    claim = get_claim("large-prompt/averaged-exponent")
    # The claim's quadrature over queries is good to 1e-5, which an exponent feels by 1e-6.
    found = claim.measured(case, 0).value
    assert found == pytest.approx(abs(exponent - claimed), abs=2e-6)
    miss = claim.exchanged().measured(case, 0).value
    assert miss == pytest.approx(abs(exponent - 1 / (1 + horizon**2)), abs=2e-6)


class FinitePrompts:
    """The risk of ``A = a I`` and ``b`` on prompts of ``L`` tokens of ``d`` independent inputs.

    With ``s = a r`` for a query of length ``r`` it is

        E_r[b^2 E(ghat - s)^2 - 2 b (b s - r) s q + (b s - r)^2 + (d - 1) b^2 q] / 2

    as ``E ghat = s (1 - q)`` with ``q = E sum p^2``, and other inputs have variance ``q``.
    """

    def __init__(self, dimension, deviations, logs):
        self.dimension = dimension
        self.logs = scipy.interpolate.make_interp_spline(deviations, logs, k=7)
        nodes, weights = np.polynomial.legendre.leggauss(60)
        self.r = 5 * (nodes + 1)
        density = self.r ** (dimension - 1) * np.exp(-(self.r**2) / 2) * weights
        self.weights = density / density.sum()

    @classmethod
    def of_lengths(cls, dimension, lengths):
        """Those of several lengths, whose sums have most in common."""
        s = np.arange(0, 7.5, 0.1)
        logs = np.log([errors_of_prompts(each, lengths) for each in s])
        return [cls(dimension, s, logs[..., k]) for k in range(len(lengths))]

    def risk(self, a, b):
        s = a * self.r
        error, q = np.exp(self.logs(s)).T
        off = b * s - self.r
        of_query = b**2 * (error + (self.dimension - 1) * q) - 2 * b * off * s * q + off**2
        return self.weights @ of_query / 2

    def flow(self, scale, time):
        """``b`` after gradient flow in ``||A|| = sqrt(d) a`` and ``b``, both from a scale."""
        root, step = np.sqrt(self.dimension), 1e-3

        def velocity(_, point):
            def slope(moved):
                risk = {
                    k: self.risk(*(point + k * step * moved) / [root, 1]) for k in (-2, -1, 1, 2)
                }
                return (risk[-2] - risk[2] + 8 * (risk[1] - risk[-1])) / (12 * step)

            return -np.array([slope(moved) for moved in np.eye(2)])

        return end_of(velocity, scale, time)


def end_of(velocity, scale, time):
    start = np.full(2, scale)
    found = scipy.integrate.solve_ivp(velocity, (0, time), start, "DOP853", rtol=1e-9, atol=1e-11)
    return found.y[1, -1]


def test_parameters_trained_for_a_fixed_time():
    case = independent(5, time=3.0)
    d = case.task.dimension

    def velocity_of_infinite(_, point):
        norm, b = point
        off = norm * b / np.sqrt(d) - 1  # the risk is d off^2 / 2
        return -np.sqrt(d) * off * np.array([b, norm])

    target = end_of(velocity_of_infinite, case.initial_scale, case.time)
    gaps = [
        abs(prompts.flow(case.initial_scale, case.time) - target)
        for prompts in FinitePrompts.of_lengths(d, [case.lengths[0], case.lengths[-1]])
    ]
    found = get_claim("large-prompt/parameter-limit").measured(case, 0)
    # Both follow flows to 1e-9, and the longer prompts leave a gap of 0.05.
    assert found.value == pytest.approx(gaps[1] / gaps[0], abs=1e-6)


def test_the_risk_trained_to_the_end():
    case = independent(5)
    d = case.task.dimension
    t = 2 + d / 2 + np.sqrt(1 + (1 + d / 2) ** 2)
    constant = d / 2 * (t - 1) * (1 - 2 / t) ** -(1 + d / 2)
    off, lengths = [], (65_536, 1_000_000)
    for length, prompts in zip(lengths, FinitePrompts.of_lengths(d, lengths), strict=True):
        best = scipy.optimize.minimize(
            lambda point, risk=prompts.risk: np.log(risk(*point)),
            [0.5, 2.0],
            method="Nelder-Mead",
            options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 2000},
        )
        off.append(abs(np.exp(best.fun) * length / constant - 1))
    found = get_claim("large-prompt/trained-risk-limit").measured(case, 0)
    # Splines and sums are good to 1e-8 of the risk, and so is training.
    assert found.value == pytest.approx(max(off), abs=1e-7)
