"""The search for a learning rate on scores that are known."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.models._train_classifier import search_learning_rate
from attractor.support.errors import InvalidInputError


def peak(at):
    return lambda rate: -(math.log(rate / at) ** 2)


@given(st.floats(-3, 3))
def test_comes_near_a_peak_within_three_decades_of_the_guess(decades):
    found = search_learning_rate(peak(10**decades), 1.0, tries=10)
    assert abs(math.log10(found.best) - decades) <= 0.5
    assert not found.at_edge
    assert len(found.rates) == 10


@pytest.mark.parametrize("tries", [3, 4, 6, 9])
@pytest.mark.parametrize("at", [1e-6, 1.0, 1e6])
def test_takes_the_same_number_of_tries_wherever_the_peak_is(tries, at):
    called = []
    search_learning_rate(lambda rate: called.append(rate) or peak(at)(rate), 1.0, tries=tries)
    assert len(called) == len(set(called)) == tries


def test_says_when_the_best_is_at_the_edge():
    assert search_learning_rate(peak(1e9), 1.0, tries=5).at_edge


def test_closes_in_on_a_peak_between_rates():
    found = search_learning_rate(peak(1.3), 1.0, tries=9)
    assert abs(math.log10(found.best / 1.3)) < 0.1


def test_a_diverged_try_is_recorded_and_never_best():
    found = search_learning_rate(lambda rate: math.nan if rate > 1 else rate, 1.0, tries=5)
    assert np.isnan(found.scores[-1])
    assert found.best <= 1


def test_goes_down_while_everything_diverges_and_then_says_so():
    found = search_learning_rate(lambda rate: math.nan, 1.0, tries=6)
    assert found.rates[0] == pytest.approx(10**-2)
    with pytest.raises(InvalidInputError, match="guess: training diverged at every rate"):
        _ = found.best


def test_of_equal_scores_the_smallest_rate_is_best():
    found = search_learning_rate(lambda rate: float(rate >= 0.5), 1.0, tries=5)
    assert found.best == found.rates[found.scores == 1].min()


@pytest.mark.parametrize(
    ("changed", "named"),
    [({"guess": 0.0}, "guess"), ({"guess": math.inf}, "guess"), ({"tries": 2}, "tries"),
     ({"tries": True}, "tries"), ({"factor": 1.0}, "factor")],
)  # fmt: skip
def test_arguments_out_of_range_are_named(changed, named):
    arguments = {"guess": 1.0, "tries": 4, "factor": 3.0} | changed
    with pytest.raises(InvalidInputError, match=named):
        search_learning_rate(peak(1.0), arguments.pop("guess"), **arguments)
