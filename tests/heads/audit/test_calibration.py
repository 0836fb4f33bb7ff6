"""Null draws taken for the heads in turn."""

import numpy as np
import pytest
from made_audit import made_audit
from scipy.stats import binomtest

from attractor.heads.statistics import multiple as module
from attractor.heads.statistics.multiple import (
    calibration,
    draws_as_heads,
    randomization_p,
    together,
)

ALPHA, DRAWS = 0.05, 39


def exchangeable(seed, heads=12):
    random = np.random.default_rng(seed)
    shared = random.standard_normal((1, DRAWS + 1))
    return np.exp(0.7 * shared + random.standard_normal((heads, DRAWS + 1)))


def audit_of(statistic):
    """An audit with these accuracies."""
    data = made_audit(1, len(statistic), draws=DRAWS).data
    nulls = np.repeat(statistic[None, :, None, 1:], 3, axis=2)
    return data.assign(
        accuracy=(("layer", "head"), statistic[None, :, 0]),
        accuracy_null=(("layer", "head", "null", "draw"), nulls),
    )


def test_a_draw_is_put_in_the_place_of_the_head():
    statistic = exchangeable(0)
    alone, of_all = draws_as_heads(statistic)
    for draw in (0, 17, DRAWS - 1):
        others = np.delete(statistic, draw + 1, axis=1)  # the head is one of them
        taken = np.concatenate([statistic[:, [draw + 1]], others], 1)
        np.testing.assert_allclose(alone[:, draw], randomization_p(taken))
        np.testing.assert_allclose(of_all[:, draw], together(taken))


def test_without_ties_p_values_are_uniform_whatever_the_numbers():
    statistic = exchangeable(1)
    statistic[0, 0] = 1e6  # not exchangeable at all
    alone, of_all = draws_as_heads(statistic)
    every = np.concatenate([randomization_p(statistic)[:, None], alone], 1)
    steps = np.arange(1, DRAWS + 2) / (DRAWS + 1)
    np.testing.assert_allclose(np.sort(every, 1), np.tile(steps, (12, 1)))
    whole = np.concatenate([together(statistic)[:, None], of_all], 1)
    assert (whole.min(0) <= ALPHA).sum() == ALPHA * (DRAWS + 1)


def test_exchangeable_draws_are_told_apart_as_often_as_the_level_allows():
    found = [calibration(audit_of(exchangeable(seed))).isel(null=0) for seed in range(60)]
    rejected = sum(int(one["rejected"]) for one in found)
    assert binomtest(rejected, 60 * DRAWS, ALPHA).pvalue > 0.01
    share = np.mean([one["share_alone"] for one in found])
    assert share == pytest.approx(ALPHA, abs=0.003)
    assert max(float(one["excess"]) for one in found) < 1 / DRAWS
    assert sum(int(one["rejected_alone"]) for one in found) > 5 * rejected


def tied(seed):
    return np.round(np.log(exchangeable(seed)))


def test_ties_bring_fewer_rejections():
    found = calibration(audit_of(tied(2))).isel(null=0)
    assert found["share_alone"] < 0.7 * ALPHA and found["shortfall"] > 0.1


def by_their_draws_alone(statistic):
    """Standardized by the draws without the head, which so looks farther off than they do."""
    draws = statistic[:, 1:]
    standardized = (statistic - draws.mean(-1, keepdims=True)) / draws.std(-1, keepdims=True)
    return (standardized.max(0) >= standardized[:, :1]).mean(-1)


def with_ties_for_the_head(statistic):
    return (statistic > statistic[..., :1]).mean(-1) + 1 / (DRAWS + 1)


def test_tests_that_treat_a_head_unlike_its_draws_are_caught(monkeypatch):
    random = np.random.default_rng(3)
    heads = random.standard_t(2, (400, DRAWS + 1))  # one large draw is most of a deviation
    assert calibration(audit_of(heads))["rejected"][0] <= ALPHA * (DRAWS + 1)
    with monkeypatch.context() as patched:
        patched.setattr(module, "together", by_their_draws_alone)
        assert calibration(audit_of(heads))["rejected"][0] > 3 * ALPHA * DRAWS
    assert calibration(audit_of(tied(4)))["excess"][0] < 1 / DRAWS
    monkeypatch.setattr(module, "randomization_p", with_ties_for_the_head)
    assert calibration(audit_of(tied(4)))["excess"][0] > 0.1


def test_heads_without_a_test_are_left_out():
    data = made_audit(2, 3, draws=DRAWS).data
    assert np.isnan(data["accuracy"]).sum() == 1
    found = calibration(data)
    assert found["null"].to_numpy().tolist() == ["rotation", "pairing", "signs"]
    assert np.isfinite(found.to_array()).all()
    assert found["rejected"].max() <= ALPHA * (DRAWS + 1)
    kept = data["accuracy"].to_numpy().reshape(-1)[:5]
    nulls = data["accuracy_null"].sel(null="signs").to_numpy().reshape(6, -1)[:5]
    alone, _ = draws_as_heads(np.concatenate([kept[:, None], nulls], 1))
    assert found["share_alone"].sel(null="signs") == (alone <= ALPHA).mean()
