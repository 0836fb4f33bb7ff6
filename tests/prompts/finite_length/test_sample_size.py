"""Effective numbers of tokens."""

import numpy as np

from attractor.prompts import effective_sample_size, freezing_length


def test_equal_scores_count_every_token():
    np.testing.assert_array_equal(effective_sample_size(0, [1, 10, 1e6]), [1, 10, 1e6])


def test_long_prompts_lose_a_factor_and_short_ones_freeze():
    np.testing.assert_allclose(effective_sample_size(1.5, 1e9), 1e9 * np.exp(-2.25), rtol=1e-4)
    assert 1 < effective_sample_size(6, 100) < 2


def test_freezing_length():
    np.testing.assert_allclose(freezing_length([0, 2]), [1, np.exp(2)])
