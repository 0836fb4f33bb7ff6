import numpy as np
import pytest
from scipy.optimize import brentq

from attractor.prompts.finite_length import prompt_moments
from attractor.prompts.length import required_length
from attractor.prompts.length.curves import ErrorCurves
from attractor.support.errors import InvalidInputError

PUBLISHED = {
    0.5: (79, 790, 7.9e3),
    1: (50, 630, 6.3e3),
    1.5: (50, 1.3e3, 1.6e4),
    2: (63, 3.2e3, 7.9e4),
    2.5: (100, 1e4, 5e5),
    3: (160, 4e4, 4e6),
    3.5: (400, 1.3e5, 4e7),
    4: (1e3, 5e5, 5e8),
}
"""Lengths on a grid of ten to a decade, for errors of 30, 10 and 3 %."""


def test_lengths_are_those_of_the_grid_of_ten_to_a_decade():
    deviations = np.array(list(PUBLISHED))
    found = required_length(deviations[:, None], [0.3, 0.1, 0.03])
    on_grid = 10 ** (np.ceil(10 * np.log10(found)) / 10)
    np.testing.assert_allclose(on_grid, list(PUBLISHED.values()), rtol=0.04)


@pytest.mark.parametrize(("s", "error"), [(0.02, 0.3), (1.3, 0.5), (2.7, 0.01), (9.0, 0.4)])
def test_a_length_is_a_root_of_the_exact_function(s, error):
    def excess(log_length):
        return float(prompt_moments(s, np.exp(log_length)).output_error) - (s * error) ** 2

    root = np.exp(brentq(excess, 0, np.log(1e12), xtol=1e-12))
    assert required_length(s, error) == pytest.approx(root, rel=1e-5)


def test_lengths_that_are_none():
    assert required_length(0.0, 0.1) == np.inf
    assert required_length(18.0, 0.1) == np.inf
    assert required_length(2.0, 1.2) == 1
    assert required_length(np.zeros((0, 1)), [0.1, 0.2]).shape == (0, 2)


def test_there_is_a_shortest_length_near_one():
    s = np.array([0.1, 0.9, 5.0])
    lengths = required_length(s, 0.1)
    assert lengths[1] < 1000 < lengths[[0, 2]].min()
    long = required_length(0.05, 0.01)
    assert long == pytest.approx(np.exp(0.05**2) * (1 + 0.05**2) / (0.05 * 0.01) ** 2, rel=1e-4)


def test_many_deviations_are_interpolated_and_as_exact_as_few():
    s = np.random.default_rng(0).uniform(0, 5, 200)
    lengths = np.array([1, 30, 1e4, 1e12])
    exact = prompt_moments(s[:40, None], lengths)
    error, weights = ErrorCurves.of(s).at(lengths)
    np.testing.assert_allclose(error[:40], exact.output_error, rtol=3e-6)
    np.testing.assert_allclose(weights[:40], exact.sum_of_squared_weights, rtol=3e-6)


@pytest.mark.parametrize(
    ("s", "error", "named"),
    [
        (-1, 0.1, "score_deviation: .*negative"),
        (33, 0.1, "score_deviation: .*beyond 32"),
        (1, 0, "error: .*not above 0"),
        (1, np.nan, "error"),
        ([1, 2], [0.1, 0.2, 0.3], "error: .*broadcast"),
    ],
)
def test_bad_input_is_named(s, error, named):
    with pytest.raises(InvalidInputError, match=f"^{named}"):
        required_length(s, error)


def test_lengths_beyond_those_known_are_refused():
    with pytest.raises(InvalidInputError, match=r"^lengths: 1e\+13"):
        ErrorCurves.of([1.0]).at(1e13)
