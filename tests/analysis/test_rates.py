import numpy as np
import pytest

from attractor.analysis import fit_rate
from attractor.errors import InvalidInputError

STEPS = np.unique(np.rint(np.geomspace(1, 10_000, 60)))


def test_a_power_law_is_recovered_exactly():
    rate = fit_rate(STEPS, 3 * STEPS**-2.0)
    assert rate.exponent == pytest.approx(-2, abs=1e-12)
    assert rate.high - rate.low < 1e-9
    assert rate.first_step >= 1000
    assert rate.last_step == 10_000


def test_the_interval_covers_the_true_exponent_as_often_as_it_says(rng):
    covered = 0
    for _ in range(200):
        exponents = rng.normal(-1, 0.2, size=8)
        rate = fit_rate(STEPS, STEPS ** exponents[:, None])
        covered += rate.low <= -1 <= rate.high
    assert 180 <= covered <= 200


def test_only_the_window_counts_and_step_zero_never_does():
    steps = np.append(0, STEPS)
    values = np.maximum(steps / 1000, 1) ** -1.5
    values[0] = np.nan
    assert fit_rate(steps, values, decades=0.9).exponent == pytest.approx(-1.5, abs=1e-9)


def test_curves_that_are_not_positive_are_left_out():
    curves = np.stack([STEPS**-1.0, np.zeros_like(STEPS), np.full_like(STEPS, np.nan)])
    rate = fit_rate(STEPS, curves)
    assert rate.trials == 1
    assert rate.exponent == pytest.approx(-1)
    assert fit_rate(STEPS, 0 * STEPS).trials == 0
    assert str(fit_rate(STEPS, 0 * STEPS)) == "not defined"


def test_shapes_must_agree():
    with pytest.raises(InvalidInputError, match="values"):
        fit_rate(STEPS, np.ones((3, 2)))
