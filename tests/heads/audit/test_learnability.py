"""Rules learned from selections, against another optimizer and by what cannot matter."""

import dataclasses

import numpy as np
import pytest
from made_heads import gaussian_heads, matching_heads, rows_of
from scipy.optimize import minimize
from scipy.special import logsumexp

from attractor.heads.statistics.learnability import REGULARIZATION, learn
from attractor.heads.statistics.nulls import Null, draw_maps

NONE = np.empty((0, 4, 4))


def scaled(covariance):
    values, vectors = np.linalg.eigh(covariance)
    return (vectors / np.sqrt(values + values.mean())) @ vectors.T


def reference(rows, turn, learned=None):
    """Test queries that the rule of L-BFGS predicts, one by one in NumPy and SciPy."""
    known = rows if learned is None else dataclasses.replace(rows, learned=learned)
    scores = np.einsum("rtw,rw->rt", rows.keys, rows.queries @ turn.T + rows.mean_query)
    scores = np.where(rows.content, scores, -np.inf)
    chosen, ordered = scores.argmax(-1), np.sort(scores, -1)
    gap = ordered[:, -1] - ordered[:, -2]
    used = known.learned & (gap >= np.median(gap[known.learned]))
    keys = rows.keys @ scaled(known.key_covariance)
    ones = np.ones((len(rows.queries), 1))
    queries = np.concatenate([rows.queries @ scaled(known.query_covariance), ones], -1)
    shape = keys.shape[-1], queries.shape[-1]

    def predicted(rule):
        made = np.einsum("rtw,wf,rf->rt", keys, rule.reshape(shape), queries)
        return np.where(rows.content, made, -np.inf)

    def objective(rule):
        made = predicted(rule)[used]
        own = np.take_along_axis(made, chosen[used][:, None], -1)[:, 0]
        return np.mean(logsumexp(made, -1) - own) + REGULARIZATION / 2 * rule @ rule

    found = minimize(objective, np.zeros(np.prod(shape)), options={"gtol": 1e-6})
    return (predicted(found.x).argmax(-1) == chosen)[~rows.learned]


@pytest.mark.long
def test_rules_are_those_of_another_optimizer():
    rows = rows_of(gaussian_heads(5))
    maps = draw_maps(Null.ROTATION, rows, 2, (0, 0, 0))
    found = learn(rows, maps)
    np.testing.assert_array_equal(found.hits, reference(rows, np.eye(4)))
    for accuracy, turn in zip(found.accuracy[1:], maps, strict=True):
        assert accuracy == reference(rows, turn).mean()


@pytest.mark.long
def test_rules_of_fewer_rows_are_tested_on_the_same_ones():
    rows = rows_of(gaussian_heads(5))
    maps = draw_maps(Null.ROTATION, rows, 1, (0, 0, 0))
    few = rows.learned & (np.cumsum(rows.learned) <= 20)
    found = learn(rows, maps, few)
    np.testing.assert_array_equal(found.hits, reference(rows, np.eye(4), few))
    assert found.accuracy[1] == reference(rows, maps[0], few).mean()
    assert len(found.offset) == len(found.query_free) == (~rows.learned).sum()
    assert (found.hits != learn(rows, NONE).hits).any()


def test_what_is_predicted_does_not_depend_on_scale_or_rotations():
    rows = rows_of(gaussian_heads(5))
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    for scale in (1e-9, 1.0, 1e9):
        turned = dataclasses.replace(
            rows,
            keys=scale * rows.keys @ turn,
            queries=rows.queries @ turn,
            mean_query=rows.mean_query @ turn,
        )
        np.testing.assert_array_equal(learn(turned, NONE).hits, learn(rows, NONE).hits)


def test_a_matching_rule_is_learned_by_the_query_alone():
    matching = learn(rows_of(matching_heads(0)), NONE)
    assert matching.accuracy[0] > 0.9
    assert matching.query_free.mean() < 0.4
    np.testing.assert_allclose(matching.chance, 1 / 6)


def test_a_fixed_place_is_named_by_the_places_after_the_query():
    captured = gaussian_heads(6)
    layer = captured.layer(0)
    place = (captured.position + 1) % 6
    keys = np.zeros_like(layer.keys)
    keys[np.arange(len(place)), 0, place, 0] = 1.0
    queries = np.ones_like(layer.queries) + 0.1 * np.random.default_rng(0).standard_normal(
        layer.queries.shape
    )
    found = learn(rows_of(gaussian_heads(6, keys=keys, queries=queries)), NONE)
    assert found.offset.mean() > 0.7
    assert found.query_free.all()


def test_heads_without_variance_are_predicted_without_the_query():
    rows = rows_of(gaussian_heads(7, queries=np.ones((128, 1, 4))))
    found = learn(rows, np.zeros((2, 4, 4)))
    np.testing.assert_array_equal(found.hits, found.query_free)
    np.testing.assert_array_equal(found.accuracy, found.accuracy[0])
