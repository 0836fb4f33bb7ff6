import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor.analysis.bias import median_interval
from attractor.analysis.bias.intervals import smallest_sample


def test_twenty_values_have_the_sixth_and_the_fifteenth():
    values = np.random.default_rng(0).permutation(20.0 + np.arange(20))
    assert median_interval(values) == (29.5, 25.0, 34.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_coverage_is_enough_and_could_not_be_less(count, confidence):
    found = median_interval(np.arange(1.0, count + 1), confidence)
    below = scipy.stats.binom.cdf(np.arange(count + 1), count, 0.5)
    if np.isinf(found.low):
        assert 1 - 2 * below[0] < confidence  # not even the range would do
        assert count < smallest_sample(confidence)
        return
    place = int(found.low)
    assert found.high == count + 1 - place
    assert 1 - 2 * below[place - 1] >= confidence - 1e-12
    if place + 1 <= count // 2:
        assert 1 - 2 * below[place] < confidence


@pytest.mark.parametrize("draw", ["standard_cauchy", "standard_exponential"])
def test_it_covers_the_median_of_skewed_and_heavy_tailed_samples(draw):
    median = {"standard_cauchy": 0.0, "standard_exponential": np.log(2)}[draw]
    samples = getattr(np.random.default_rng(1), draw)((2000, 20))
    found = [median_interval(sample) for sample in samples]
    covered = np.mean([one.low <= median <= one.high for one in found])
    assert 0.945 < covered < 0.975  # 0.9586 in theory


def test_missing_values_are_left_out():
    values = np.array([3.0, np.nan, 1.0, 2.0])
    assert median_interval(values, 0.5) == median_interval(np.array([1.0, 2.0, 3.0]), 0.5)
    assert np.isnan(median_interval(np.array([np.nan])).median)
