"""The inequalities between divergence and distance, by numbers of many digits."""

import mpmath
import numpy as np
import pytest

from attractor.papers import Exponent, Outcome, examine, get_claim
from attractor.papers.mirror_descent.claims._examples import with_exponent

CLAIM = get_claim("mirror-descent/divergence-bounds-distance")


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 2.5, 4.0])
def test_they_hold_between_random_directions_in_many_digits(p, rng):
    with mpmath.workdps(40):
        for scale in (1e-8, 1e-2, 1.0):
            many = np.vectorize(mpmath.mpf, otypes=[object])
            first = many(rng.standard_normal(5))
            second = first + many(scale * rng.standard_normal(5))
            a, b = (one / (abs(one) ** p).sum() ** (1 / mpmath.mpf(p)) for one in (first, second))
            divergence = 1 - (np.vectorize(mpmath.sign)(b) * abs(b) ** (p - 1) * a).sum()
            if p <= 2:
                bound = (mpmath.mpf(p) - 1) / 2 * ((a - b) ** 2).sum()
            else:
                bound = (abs(a - b) ** p).sum() / (p * mpmath.mpf(2) ** p)
            assert bound <= divergence * (1 + mpmath.mpf(10) ** -20)


def test_two_is_an_identity_and_the_constant_cannot_be_larger():
    case = with_exponent(CLAIM.example(), 2.0)
    found = CLAIM.measured(case, 0)
    assert found.value == pytest.approx(1, abs=1e-9)
    assert found.details["smallest share"] == pytest.approx(1, abs=1e-9)
    larger = CLAIM.about((0.5 + 1e-6, Exponent(2)))
    assert examine(larger, case).outcome is Outcome.FAILS


@pytest.mark.parametrize("p", [1.1, 1.5, 1.75])
def test_below_two_it_is_nearly_reached_by_directions_with_two_entries(p):
    """Of two equal entries the divergence is ``2^((2 - p)/p)`` times the bound, to first order."""
    found = CLAIM.measured(with_exponent(CLAIM.example(), p))
    assert found.value == pytest.approx(2 ** (1 - 2 / p), rel=1e-5)
