"""Slopes of what is measured along a run."""

import numpy as np
import pytest
import xarray as xr

from attractor.papers import Outcome, examine
from attractor.papers.max_margin.claims import rates
from attractor.papers.max_margin.claims.rates import (
    DECADE,
    NORMALIZED_GRADIENT_DESCENT_RATE,
    Curves,
    curves,
)
from attractor.papers.max_margin.data import three_sequences, trapped_sequence


def made_up(**arrays):
    return Curves(xr.Dataset({name: ("record", array) for name, array in arrays.items()}), 1.0, 1)


def test_slopes_and_exponents_of_known_laws():
    t = np.geomspace(1, 1e4, 50)
    found = made_up(
        step=t, log_time=np.log(t), log_excess_loss=3 - 2 * np.log(t),
        directional_bregman_divergence=0.5 * (7 / t) ** 2,
    )  # fmt: skip
    slope = found.slope("log_excess_loss", "log_time", before_end=DECADE)
    assert slope == pytest.approx(-2)
    assert found.exponent("angle", "step") == pytest.approx(-1)


def test_an_angle_of_zero_falls_faster_than_any_power():
    t = np.geomspace(1, 100, 20)
    found = made_up(step=t, directional_bregman_divergence=np.where(t < 50, 0.1, 0.0))
    assert found.exponent("angle", "step") == -np.inf


@pytest.mark.parametrize("power", [-0.75, -1.25])
def test_another_power_than_the_claimed_one_fails(power, monkeypatch):
    t = np.geomspace(1, 1e4, 50)
    angle = 3 * t**power
    found = made_up(step=t, norm=t, directional_bregman_divergence=0.5 * angle**2)
    claim = NORMALIZED_GRADIENT_DESCENT_RATE
    monkeypatch.setattr(rates, "curves", lambda case, seed: found)
    assert examine(claim, three_sequences()).outcome is Outcome.FAILS


def test_nothing_is_claimed_where_there_is_no_angle(monkeypatch):
    t = np.geomspace(1, 100, 20)
    found = made_up(step=t, norm=t, directional_bregman_divergence=np.zeros(20))
    monkeypatch.setattr(rates, "curves", lambda case, seed: found)
    found = examine(NORMALIZED_GRADIENT_DESCENT_RATE, three_sequences())
    assert found.outcome is Outcome.VACUOUS


def test_too_short_a_run_has_no_slope():
    t = np.linspace(1.0, 1.5, 5)
    assert np.isnan(made_up(step=t, norm=t).slope("norm", "step", before_end=2))


def test_the_published_run_of_constant_steps():
    case = three_sequences().replace(optimizer="gd:learning_rate=1", steps=10_000)
    found = curves(case, 0)
    norm, step = found.along("norm"), found.along("step")
    assert norm[step == 10_000][0] == pytest.approx(7.0988, abs=1e-3)
    assert found.along("angle")[-1] == pytest.approx(0.1347, abs=1e-4)
    assert np.exp(found.along("log_excess_loss")[-1]) == pytest.approx(6.7e-5, rel=0.01)
    assert found.settled == 1


def test_nothing_is_claimed_of_a_selection_that_is_not_locally_optimal():
    case = trapped_sequence().replace(initial=np.array([5.0, 0.0]))
    assert curves(case, 0).settled == 1  # the wrong token has no support token beside it
    short = curves(case.replace(steps=3, initial=np.array([-40.0, 30.0])), 0)
    assert short.settled == 0
