import functools
import math

import numpy as np
import pytest

from attractor.prompts.regression import (
    RegressionTask,
    kac_murdock_szego,
    linear_attention_optimum,
    opposite_heads_optimum,
    small_score_optimum,
    softmax_optimum,
    softmax_risk,
)
from attractor.prompts.regression.risks.prompt_averages import AveragedSoftmax, OppositeHeads
from attractor.support.errors import InvalidInputError

TASK = RegressionTask.official(as_run=True)
LENGTH = 10


@functools.cache
def official_optimum(as_run, length):
    return softmax_optimum(RegressionTask.official(as_run=as_run), length)


@pytest.fixture(scope="module")
def best():
    return official_optimum(True, LENGTH)


# By 500 steps of Adam; those of the last are far too few: it ends at 0.199.
@pytest.mark.long
@pytest.mark.parametrize(
    ("as_run", "length", "error"),
    [
        (False, 30, 0.431),
        (True, 10, 0.821),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                (False, 10, 0.657),
                (False, 100, 0.253),
                (False, 300, 0.161),
                (False, 1000, 0.119),
                (True, 100, 0.447),
                (True, 30, 0.654),
                (True, 300, 0.292),
                (True, 1000, 0.175),
            ]
        ),
    ],
)
def test_least_error_on_the_official_task(as_run, length, error):
    task = RegressionTask.official(as_run=as_run)
    best = official_optimum(as_run, length)
    found = task.mean_squared_error(best.risk)
    assert found == pytest.approx(error, abs=5e-3)
    assert best.standard_error == 0
    assert best.risk > linear_attention_optimum(task, length).risk


@pytest.mark.slow
def test_least_error_against_simulated_prompts(simulate):
    task = RegressionTask.official(as_run=True)
    best = official_optimum(True, 1000)
    squares = []
    for seed in range(20):
        simulation = simulate(task, 1000, 1000, seed=seed)
        squares.append((simulation.softmax(best.blocks) - simulation.targets) ** 2)
    squares = np.concatenate(squares)
    error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - 2 * best.risk) < 4 * error
    assert squares.mean() + task.query_noise + 4 * error < 0.199


@pytest.mark.long
def test_no_head_nearby_and_no_start_is_better(best):
    rng = np.random.default_rng(0)
    for _ in range(4):
        a = best.blocks.key_query + 0.01 * rng.standard_normal((5, 5))
        b = best.blocks.value_label + 0.01 * rng.standard_normal()
        moved = softmax_risk(TASK, best.blocks._replace(key_query=a, value_label=b), LENGTH)
        assert moved.risk > best.risk
    assert best.blocks.value_label > 0
    assert softmax_risk(TASK, best.blocks, LENGTH).risk == pytest.approx(best.risk, rel=1e-8)


def test_scoring_labels_or_adding_inputs_makes_it_worse(best, simulate):
    simulation = simulate(TASK, LENGTH, 20_000, seed=0)
    squares = (simulation.softmax(best.blocks) - simulation.targets) ** 2
    for name in ("label_row", "value_inputs"):
        for direction in np.eye(5):
            changed = [
                simulation.softmax(best.blocks._replace(**{name: sign * 0.3 * direction}))
                for sign in (1, -1)
            ]
            added = sum((x - simulation.targets) ** 2 for x in changed) / 2 - squares
            assert added.mean() > 4 * added.std() / math.sqrt(len(added))


@pytest.mark.slow
def test_units_of_the_data_do_not_matter(best):
    scaled = RegressionTask(1e6 * TASK.covariance, 1e-8 * TASK.query_covariance, 0.2e-6, 0.1)
    found = softmax_optimum(scaled, LENGTH)
    assert found.risk == pytest.approx(1e-14 * best.risk, rel=1e-4)
    np.testing.assert_allclose(found.blocks.key_query, 10 * best.blocks.key_query, atol=0.02)


@pytest.mark.slow
def test_queries_in_one_direction():
    found = softmax_optimum(
        RegressionTask(TASK.covariance, np.diag([1.0, 0, 0, 0, 0]), 0.2, 0.1), LENGTH
    )
    # of inputs that no query has nothing is known and nothing said
    assert not found.blocks.key_query[:, 1:].any()
    assert found.risk < 0.8 * TASK.weight_variance / 2


def test_one_token_says_nothing_that_helps():
    found = softmax_optimum(TASK, 1)
    assert found.blocks.value_label == pytest.approx(0, abs=1e-5)
    assert found.risk == pytest.approx(TASK.risk_of_zero, rel=1e-9)


@pytest.mark.parametrize("length", [0.5, math.inf, math.nan])
def test_bad_lengths(length):
    with pytest.raises(InvalidInputError, match="length"):
        softmax_optimum(TASK, length)


@pytest.mark.slow
def test_no_head_near_by_is_better_in_many_dimensions():
    # Covariances commute, so that only a diagonal was searched: others are tried here.
    task, length = RegressionTask(kac_murdock_szego(12, 0.5), label_noise=0.1), 60
    best = softmax_optimum(task, length)
    least = softmax_risk(task, best.blocks, length).risk
    change = np.random.default_rng(0).normal(size=(3, 12, 12))
    for each in change / np.linalg.norm(change, axis=(1, 2), keepdims=True):
        for sign in (0.1, -0.1):
            moved = best.blocks._replace(key_query=best.blocks.key_query + sign * each)
            assert softmax_risk(task, moved, length).risk > least


@pytest.mark.long
@pytest.mark.parametrize("task", [RegressionTask(np.eye(3)), RegressionTask.official()])
def test_two_opposite_heads_of_finite_scores_beat_small_ones_on_short_prompts(task):
    best = opposite_heads_optimum(task, 6)
    one_less, as_many = (linear_attention_optimum(task, length).risk for length in (5, 6))
    assert best.risk < softmax_optimum(task, 6).risk
    # They are nearer to linear attention on all tokens than its limit of small scores is.
    assert as_many < best.risk < one_less - 0.3 * (one_less - as_many)
    assert softmax_risk(task, best.blocks, 6).risk == pytest.approx(best.risk, rel=1e-7)


@pytest.mark.long
def test_two_opposite_heads_on_long_prompts_are_linear_attention_with_a_token_less():
    task = RegressionTask(np.diag([1.0, 0.3]), label_noise=0.1)
    best = opposite_heads_optimum(task, 400)
    assert best.risk == pytest.approx(small_score_optimum(task, 400).risk, rel=1e-4)


@pytest.mark.long
def test_no_opposite_heads_nearby_are_better():
    task = RegressionTask(np.array([[1.0, 0.4], [0.4, 0.7]]), np.diag([0.5, 1.0]))
    best = opposite_heads_optimum(task, 6)  # of the length above, whose tables are kept
    a, b = best.blocks.key_query[0], 2 * float(best.blocks.value_label[0])
    averaged = AveragedSoftmax(task, OppositeHeads(6))
    rng = np.random.default_rng(1)
    for _ in range(5):
        move = 0.02 * rng.standard_normal((2, 2))
        assert averaged(a + move, b * (1 + 0.02 * rng.standard_normal())).risk > best.risk
