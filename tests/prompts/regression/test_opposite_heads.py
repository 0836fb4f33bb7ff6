import numpy as np
import pytest

from attractor.prompts.regression import (
    Blocks,
    RegressionTask,
    infinite_risk,
    leading_order,
    linear_attention_optimum,
    opposite_heads,
    small_score_optimum,
    small_score_risk,
)
from attractor.support.errors import InvalidInputError

TASK = RegressionTask([[0.9, 0.3], [0.3, 0.6]], label_noise=0.3)
HEAD = Blocks(np.array([[0.6, 0.1], [-0.2, 0.7]]), np.zeros(2), np.zeros(2), np.array(1.3))
PRODUCT = HEAD.value_label * HEAD.key_query


def test_pairs_do_what_one_head_does_on_infinite_prompts(rng):
    shapes = ((2, 2), (2,), (2,), ())
    head = Blocks(*(np.asarray(rng.standard_normal(shape)) for shape in shapes))
    for scale in (1.0, 0.01):
        pair = opposite_heads(head, scale)
        assert infinite_risk(TASK, pair) == pytest.approx(infinite_risk(TASK, head), rel=1e-12)


@pytest.mark.parametrize("length", [2, 6])
def test_small_scores_against_simulation(simulate, length):
    simulation = simulate(TASK, length, 100_000, seed=length)
    predictions = simulation.softmax(opposite_heads(HEAD, 1e-3))
    assert simulation.agrees(predictions, small_score_risk(TASK, PRODUCT, length))
    x, y = simulation.tokens[..., :-1], simulation.tokens[..., -1:]
    centered = np.mean((x - x.mean(1, keepdims=True)) * (y - y.mean(1, keepdims=True)), axis=1)
    exact = np.sum(centered @ PRODUCT * simulation.queries[:, :-1], axis=1)
    np.testing.assert_allclose(predictions, exact, atol=1e-2)
    assert np.abs(predictions - exact).mean() < 1e-5


def test_small_scores_agree_with_the_leading_order():
    coefficient = leading_order(TASK, opposite_heads(HEAD, 1e-4)).coefficient
    limit = infinite_risk(TASK, HEAD)
    length = 10**6
    assert length * (small_score_risk(TASK, PRODUCT, length) - limit) == pytest.approx(
        coefficient, rel=1e-4
    )


def test_best_pair_is_one_token_behind_linear_attention():
    product, risk = small_score_optimum(TASK, 9)
    assert risk == linear_attention_optimum(TASK, 8).risk
    assert small_score_risk(TASK, product, 9) == pytest.approx(risk, rel=1e-12)
    assert small_score_risk(TASK, 1.001 * product, 9) > risk


def test_bad_input():
    with pytest.raises(InvalidInputError, match="length"):
        small_score_optimum(TASK, 1)
    with pytest.raises(InvalidInputError, match="score_scale"):
        opposite_heads(HEAD, 0)
