import numpy as np
import pytest
from scipy.stats import binomtest

from attractor.analysis.wilson import wilson_interval


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("trials", [1, 2, 7, 100, 10**6])
def test_the_interval_is_that_of_scipy(trials, confidence):
    successes = np.unique(np.linspace(0, trials, 8).astype(int))
    found = wilson_interval(successes, trials, confidence)
    expected = [
        binomtest(int(hits), trials).proportion_ci(confidence, "wilson") for hits in successes
    ]
    assert np.array_equal(found, expected)


def test_of_no_trials_there_is_none():
    found = wilson_interval(np.array([0, 3]), np.array([0, 4]), 0.95)
    assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()
    assert wilson_interval(1, 2, 0.95).shape == (2,)
