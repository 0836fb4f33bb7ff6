"""Error rates for many heads at once."""

import numpy as np
import pytest
from scipy.stats import binomtest, false_discovery_control

from attractor.heads.statistics.multiple import (
    enough_for_discovery,
    false_discovery,
    randomization_p,
    resampled,
    together,
)


def test_no_p_value_is_zero_and_ties_count_against_the_head():
    np.testing.assert_allclose(randomization_p(np.array([3.0, 1.0, 2.0, 0.0])), 1 / 4)
    np.testing.assert_allclose(randomization_p(np.array([3.0, 3.0, 2.0, 4.0])), 3 / 4)


def test_of_one_head_alone_the_p_value_stays():
    statistic = np.random.default_rng(0).standard_normal((1, 20))
    np.testing.assert_allclose(together(statistic), randomization_p(statistic))


def test_the_largest_of_all_heads_decides_in_each_draw():
    statistic = np.array([[9.0, 0.0, 1.0, 2.0], [1.0, 5.0, 0.0, 2.0]])
    standardized = (statistic - statistic.mean(-1, keepdims=True)) / statistic.std(-1)[:, None]
    largest = standardized.max(0)
    expected = [(largest >= standardized[head, 0]).mean() for head in range(2)]
    np.testing.assert_allclose(together(statistic), expected)
    np.testing.assert_allclose(together(np.ones((2, 4))), 1.0)


def test_any_of_many_exchangeable_heads_is_rejected_at_the_level():
    random = np.random.default_rng(1)
    shared = random.standard_normal((400, 1, 20))
    heads = 0.7 * shared + random.standard_normal((400, 12, 20))
    rejected = sum(bool((together(one) <= 0.05).any()) for one in heads)
    assert binomtest(rejected, 400, 0.05).pvalue > 0.01
    alone = sum(bool((randomization_p(one) <= 0.05).any()) for one in heads)
    assert alone > 3 * rejected  # without the correction most sets of heads are


def test_false_discovery_rates_are_those_of_scipy():
    p = np.random.default_rng(2).uniform(size=30) ** 3
    np.testing.assert_allclose(false_discovery(p), false_discovery_control(p))


@pytest.mark.parametrize(("draws", "enough"), [(19, False), (99, False), (198, False), (199, True)])
def test_too_few_draws_for_false_discovery_are_told(draws, enough):
    assert enough_for_discovery(draws, 0.05) is enough


def test_documents_are_resampled_whole():
    hits = np.repeat(np.arange(40) % 2, 5).astype(float)
    document = np.repeat(np.arange(40), 5)
    low, high = resampled(hits, document, np.random.default_rng(0))
    assert 2 * 1.96 * 0.5 / np.sqrt(40) == pytest.approx(high - low, rel=0.2)
    one_each, _ = resampled(hits, np.arange(200), np.random.default_rng(0))
    assert one_each > low
    assert np.isnan(resampled(hits, np.zeros(200), np.random.default_rng(0))).all()
