"""Averages over one token, at the nodes of the integral."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad

from attractor.prompts.finite_length.laplace import Transforms


def average(f, s):
    """``E f(g, g - s)`` over a standard normal number, piece by piece."""
    ends = [-12, -4, 0, s, 2 * s + 1, 4 * s + 6, 4 * s + 13]
    pieces = [
        quad(lambda g: f(g) * np.exp(-g * g / 2), a, b, epsabs=0, epsrel=1e-12, limit=200)[0]
        for a, b in itertools.pairwise(ends)
    ]
    return sum(pieces) / np.sqrt(2 * np.pi)


@pytest.mark.parametrize("s", [0.004, 0.6, 4.0])
@pytest.mark.parametrize("place", [0.3, 0.6])
def test_averages_over_one_token(s, place):
    one = Transforms.of(s, np.array([4.0, 1e6]), (0, 0, 2, 0, 0))
    node = int(place * len(one.log_times))
    log_y0 = one.log_times[node] - s * s / 2

    def y(g):
        return np.exp(log_y0 + s * g)

    log_phi = np.log1p(-average(lambda g: -np.expm1(-y(g)), s))
    np.testing.assert_allclose(one.log_phi[node], log_phi, rtol=1e-11)
    plain = [average(lambda g, k=k: y(g) ** k * np.exp(-y(g)), s) for k in range(5)]
    np.testing.assert_allclose([power[0, node] for power in one.powers], plain, rtol=1e-10)
    squared = average(lambda g: (g - s) ** 2 * y(g) ** 2 * np.exp(-y(g)), s)
    np.testing.assert_allclose(one.moment(2, 2)[node], squared, rtol=1e-10)


def test_small_differences_are_found_by_parts():
    one = Transforms.of(1.0, np.array([10.0]), (0, 2, 0, 0))
    np.testing.assert_allclose(one.powers[1][1], one.moment(1, 1), rtol=1e-9, atol=1e-15)
    direct = one.powers[1][2] - one.powers[1][0]
    np.testing.assert_allclose(direct, one.excess(1), rtol=1e-9, atol=1e-15)
