import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attractor as at
from attractor.attention import get_loss
from attractor.maps.basins.attractors import Attractors, pulls
from attractor.maps.basins.problem import check_problem
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision


def judged(data, step, W, **options):
    given = {"loss": "logistic", "parameterization": "p", "geometry": None} | options
    attractors = Attractors(check_problem(*data, step, **given))
    return attractors.judge(np.asarray(W, dtype=float)), attractors


def test_a_run_is_judged_by_what_pulls_at_it(three_tokens, step):
    prompts = [(100, 0), (100, 10), (60, 40), (-10, 100), (0, 0), (0.1, 5), (np.nan, 1)]
    found, attractors = judged(three_tokens, step, np.array(prompts)[..., None])
    # Token 1 for good; on the ridge between the basins; above it; token 0; nothing yet.
    assert found.attended[:, 0, 0].tolist()[:4] == [1, 1, 1, 0]
    assert found.settled.tolist() == [True, False, False, True, False, False, False]
    assert found.attractor.tolist()[:4] == [0, 0, 0, 1]
    assert found.attractor[4] == -1 == found.attractor[6]
    assert found.correlation[1] == pytest.approx(100 / np.hypot(100, 10))
    # Token 0 pulls 0.1 sqrt(1.1^2 + 1) at e^(-10), token 2 pushes 0.9 at e^(-10) sqrt(1).
    logits = np.array([-0.1 * 100 + 10, 0.0])
    ratio = np.log(0.1 * np.hypot(1.1, 1) / 0.9) + logits[0] - logits[1]
    assert found.log_opposing_pull[1] == pytest.approx(ratio, abs=1e-9)
    assert len(attractors.found) == 2


def test_a_selection_without_solution_never_settles(make, step):
    inside = make([[[0, 0], [1, 0], [-1, 0], [0, 1e-3]]], [[1, 0.5, 0.2, 0]])
    found, _ = judged(inside, step, [[[0.0], [-1e9]]])
    assert found.smallest_weight[0] == pytest.approx(1 / 3)
    apart, _ = judged(inside, step, [[[1e6], [0.0]]])
    assert apart.attended[0, 0, 0] == 1 and apart.smallest_weight[0] > 0.99
    assert not apart.settled[0]  # token 0 is better, and a support token


def test_rows_without_anything_to_separate(make, step):
    level = make([[[1, 0], [0, 1]]], [[1, 1]])
    found, _ = judged(level, step, [[[50.0], [0.0]]])
    assert found.smallest_weight[0] > 0.99
    assert not found.settled[0] and np.isnan(found.margin_ratio[0])


def test_logits_have_attractors_though_no_token_scores(step):
    keys = np.array([[[1.0, 0], [-1, 0], [0, 1]], [[0, 1], [1, 1], [-1, -1]]])
    tokens = at.Tokens(keys, np.ones((2, 1)), np.array([0, 1]))
    head = at.VocabularyHead(np.array([[3.0, 0], [-3, 3]]))
    found, attractors = judged((tokens, head), step, [[[9.0], [-1]]], loss="cross_entropy")
    assert found.attended[0, :, 0].tolist() == [0, 1]
    # Token 0 is best for the first sequence; both others are better for the second.
    assert attractors.found[0].better[:, 0].tolist() == [[False] * 3, [True, False, True]]
    assert not found.settled[0]


def test_keys_and_queries_stand_for_matrices(step):
    tokens, heads = at.datasets.unit_tokens(2, 3, 4, seeds=[3])
    problem = check_problem(
        tokens[0], at.LinearHead(heads.weight[0]), step,
        loss="logistic", parameterization="KQ", geometry=None,
    )  # fmt: skip
    W = np.random.default_rng(0).normal(size=(5, 4, 4))
    starts = problem.starts_at(W)
    assert {name: array.shape for name, array in starts.items()} == dict.fromkeys("KQ", (5, 4, 4))
    np.testing.assert_allclose(problem.matrices(starts), W, atol=1e-12)
    assert problem.geometry.name == "nuclear" and problem.memoryless


def test_a_norm_of_the_user_s_stands_over_that_of_the_optimizer(three_tokens, step):
    found, attractors = judged(three_tokens, step, [[[0.0], [50.0]]], geometry=at.Lp(1))
    assert attractors.found[0].solution.geometry == at.Lp(1)
    assert found.settled[0]


def test_momentum_is_memory(three_tokens, step):
    options = {"loss": "logistic", "parameterization": "p", "geometry": None}
    assert check_problem(*three_tokens, step, **options).memoryless
    assert not check_problem(*three_tokens, at.mirror_descent(0.1), **options).memoryless
    with pytest.raises(InvalidInputError, match="instances"):
        several, heads = at.datasets.unit_tokens(2, 3, 4, seeds=2)
        check_problem(several, heads, step, **options)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "linear", "squared"])
def test_the_pull_of_a_token_is_the_gradient_it_adds(step, loss):
    keys = np.array([[0.3, 1.0], [-1.0, 0.2]])
    values, query, weight = np.array([0.2, 0.7]), 2.0, 3.0
    tokens = at.Tokens(keys[None], np.array([[query]]), np.ones(1), values=values[None, :, None])
    head = at.LinearHead([weight])
    problem = check_problem(tokens, head, step, loss=loss, parameterization="W", geometry=None)
    found = pulls(problem, np.array([[[0]], [[1]]]))
    W = 4 * (keys[0] - keys[1])

    def plain_loss(W):
        attention = jax.nn.softmax(keys @ W * query)
        return get_loss(loss).value(weight * attention @ values, jnp.ones(()))

    with double_precision():
        size = np.log(np.linalg.norm(jax.jit(jax.grad(plain_loss))(W)))
    scores = keys @ W * query
    log_weight = scores[1] - np.logaddexp(*scores)
    assert log_weight < -15
    assert size == pytest.approx(log_weight + found.log_size[0, 0, 0, 1], abs=1e-6)


def test_which_tokens_are_better(step, make):
    data = make([[[0, 1], [1, 0], [1, 1], [0, 0]]], [[1, 0.5, 0.5, 0.1 + 0.2]])
    problem = check_problem(*data, step, loss="logistic", parameterization="p", geometry=None)
    found = pulls(problem, np.array([[[0]], [[1]], [[3]]]))
    assert found.better[:, 0, 0].astype(int).tolist() == [[0] * 4, [1, 0, 0, 0], [1, 1, 1, 0]]
    assert found.tied[:, 0, 0].astype(int).tolist() == [[0] * 4, [0, 0, 1, 0], [0] * 4]
    assert (found.log_size[1, 0, 0, [1, 2]] == -np.inf).all()


def test_losses_too_small_for_floating_point_still_tell_tokens_apart(step, make):
    data = make([[[0, 1], [1, 0]]], [[2000, 1000]])
    problem = check_problem(*data, step, loss="logistic", parameterization="p", geometry=None)
    found = pulls(problem, np.array([[[1]]]))
    assert found.better[0, 0, 0].tolist() == [True, False]
    expected = -1000 + np.log(1000 * np.sqrt(2))
    assert found.log_size[0, 0, 0, 0] == pytest.approx(expected, rel=1e-12)
