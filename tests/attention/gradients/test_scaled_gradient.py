import functools

import jax
import numpy as np
import pytest

from attractor.attention import (
    AttentionMatrix,
    LinearHead,
    attention_rows,
    get_loss,
    mean_loss,
    scaled_gradient,
)
from attractor.attention.scaled import direction, log_norm, magnitude
from attractor.support.precision import double_precision
from attractor.tokens import Tokens

W_TRAINED = AttentionMatrix()


@functools.partial(jax.jit, static_argnums=0)
def _compiled(loss, W, head, rows):
    gradient = scaled_gradient(W_TRAINED, get_loss(loss), W, head, rows).attention
    return direction(gradient), magnitude(gradient), log_norm(gradient)


@jax.jit
def _loss(W, head, rows):
    return mean_loss(W_TRAINED, get_loss("logistic"), W, head, rows)


def compute(tokens, v, W, loss="logistic", dtype=np.float64):
    """Unit direction, true gradient and log norm, in the precision asked for."""
    with double_precision():
        head = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), LinearHead(v))
        rows = attention_rows(tokens, dtype)
        mantissa, true, log = _compiled(loss, np.asarray(W, dtype), head, rows)
        assert mantissa.dtype == dtype
        mantissa = np.asarray(mantissa, dtype=np.float64)
        norm = np.linalg.norm(mantissa)
        return mantissa / (norm or 1.0), np.asarray(true), float(log)


def check(oracle, tokens, v, W, tolerance, loss="logistic", dtype=np.float64):
    found, _, log = compute(tokens, v, W, loss, dtype)
    expected, expected_log = oracle.gradient(tokens, v, W, loss)
    assert np.linalg.norm(found - expected) <= tolerance
    assert abs(log - expected_log) <= tolerance * 10


@pytest.mark.parametrize("loss", ["logistic", "exponential", "linear"])
@pytest.mark.parametrize("gap", [0, 1, 16, 36, 100, 300, 600])
def test_direction_is_exact_when_every_loser_has_the_same_gap(oracle, gap, loss):
    for seed in range(3):
        check(oracle, *oracle.equal_gap(gap, seed), 1e-12, loss)


@pytest.mark.parametrize("gap", [0, 16, 40, 80])
def test_single_precision_direction(oracle, gap):
    for seed in range(4):
        problem = oracle.equal_gap(gap, seed, dtype=np.float32)
        found, _, _ = compute(*problem, dtype=np.float32)
        assert np.linalg.norm(found - oracle.gradient(*problem)[0]) <= 1e-5


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 5e-12), (np.float32, 1e-3)])
@pytest.mark.parametrize("gap", [2000, 5000])
def test_direction_and_scale_where_floating_point_has_ended(oracle, gap, dtype, tolerance):
    problem = oracle.equal_gap(gap, 0, dtype=dtype)
    found, true, log = compute(*problem, dtype=dtype)
    expected, expected_log = oracle.gradient(*problem)
    assert np.linalg.norm(found - expected) <= tolerance
    assert abs(log - expected_log) <= max(10 * tolerance, 5e-7 * gap * (dtype == np.float32))
    assert (true == 0).all()


def test_two_winners_tied_in_attention_far_above_the_rest(oracle):
    tokens, _, _ = oracle.equal_gap(0, 3)
    keys = tokens.keys.copy()
    keys[:, 1, 0] = keys[:, 0, 0]  # the head reads the first entry: equal token scores
    scores = np.array([[5000.0, 5000.0, 0.0, 0.0, 0.0]] * 3)
    W = oracle.matrix(keys, tokens.queries[:, 0], scores)
    tied = Tokens(keys, tokens.queries, tokens.labels)
    check(oracle, tied, np.eye(6)[0], W, 5e-12)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_scale_of_the_loss_is_kept_for_each_row(oracle, loss):
    """Gap plus margin is the same in every row, so all rows matter alike."""
    random = np.random.default_rng(5)
    gaps = np.array([100.0, 400.0, 700.0])
    keys, queries = random.normal(size=(3, 4, 5)), random.normal(size=(3, 5))
    values = random.normal(size=(3, 4, 2))
    values[:, :, 0] = 1000 - gaps[:, None]
    values[:, 1:, 0] -= random.uniform(0.5, 2, size=(3, 3))
    W = oracle.matrix(keys, queries, gaps[:, None] * np.eye(4)[0])
    tokens = Tokens(keys, queries, np.ones(3), values=values)
    check(oracle, tokens, np.array([1.0, 0.0]), W, 5e-12, loss)


def test_token_scores_tied_up_to_rounding_count_as_tied(oracle):
    v = np.ones(3)
    keys = np.array([[[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [1.0, -1.0, 0.5]]])
    first, second = (sum(row.tolist()) for row in keys[0, :2])  # a product may add in another order
    assert 0 < abs(first - second) < 1e-15
    W = oracle.matrix(keys, np.ones((1, 1)), np.array([[200.0, 195.0, 0.0]]))
    tokens = Tokens(keys, np.ones((1, 1)), [1.0])
    # With the two exactly equal, what remains is the exchange with the third, at exp(-200).
    exactly_tied = Tokens(keys, np.ones((1, 1)), [1.0], values=[[[0.6], [0.6], [0.5]]])
    found, _, log = compute(tokens, v, W)
    expected, expected_log = oracle.gradient(exactly_tied, np.ones(1), W)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert abs(log - expected_log) < 1e-12


def test_gradient_agrees_with_differences_of_the_loss(oracle):
    tokens, v, W = oracle.equal_gap(2, 1)
    with double_precision():
        rows, head = attention_rows(tokens), LinearHead(v)
        gradient = compute(tokens, v, W)[1]
        for place in [(0, 0), (2, 3), (5, 1)]:
            moved = np.zeros_like(W)
            moved[place] = 1e-5
            up, down = (_loss(W + s * moved, head, rows) for s in (1, -1))
            assert abs((up - down) / 2e-5 - gradient[place]) < 1e-9


def test_head_gradient_agrees_with_automatic_differentiation(oracle):
    tokens, v, W = oracle.equal_gap(2, 1)
    with double_precision():
        rows, head = attention_rows(tokens), LinearHead(v)

        @jax.jit
        def both(head):
            found = scaled_gradient(W_TRAINED, get_loss("logistic"), W, head, rows).head
            return magnitude(found), jax.grad(lambda head: _loss(W, head, rows))(head)

        found, expected = both(head)
        np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-13)


def test_a_row_with_one_token_has_no_gradient_but_counts_in_the_mean(oracle):
    tokens, v, W = oracle.equal_gap(3, 2)
    mask = np.ones((3, 5), dtype=bool)
    mask[1, 1:] = False
    masked = Tokens(tokens.keys, tokens.queries, tokens.labels, mask)
    check(oracle, masked, v, W, 1e-12)
    without = Tokens(tokens.keys[[0, 2]], tokens.queries[[0, 2]], tokens.labels[[0, 2]])
    np.testing.assert_allclose(
        compute(masked, v, W)[1] * 3, compute(without, v, W)[1] * 2, rtol=1e-13
    )


def test_a_gradient_that_is_exactly_zero_is_zero():
    keys = np.ones((3, 5, 6))
    tokens = Tokens(keys, np.ones((3, 6)), [1.0, -1.0, 1.0])
    found, true, log = compute(tokens, np.ones(6), np.eye(6))
    assert (found == 0).all() and (true == 0).all() and log == -np.inf


def test_masked_padding_changes_nothing(oracle):
    tokens, v, W = oracle.equal_gap(30, 4)
    padding = np.full((3, 2, 6), 1e6)
    keys = np.concatenate([tokens.keys, padding], axis=1)
    mask = np.arange(7) < np.full((3, 1), 5)
    padded = Tokens(keys, tokens.queries, tokens.labels, mask)
    np.testing.assert_allclose(compute(padded, v, W)[0], compute(tokens, v, W)[0], atol=1e-13)


def test_under_vmap_every_instance_gets_its_own_gradient(oracle):
    problems = [oracle.equal_gap(gap, 7) for gap in (3, 700, 40)]
    with double_precision():
        stack = [attention_rows(tokens) for tokens, _, _ in problems]
        rows = jax.tree.map(lambda *leaves: np.stack(leaves), *stack)
        heads = LinearHead(np.stack([v for _, v, _ in problems]))
        W = np.stack([W for _, _, W in problems])
        together = jax.vmap(functools.partial(_compiled, "logistic"))(W, heads, rows)
    for i, problem in enumerate(problems):
        found = np.asarray(together[0][i])
        np.testing.assert_allclose(found / np.linalg.norm(found), compute(*problem)[0], atol=1e-13)
        assert abs(float(together[2][i]) - compute(*problem)[2]) < 1e-11


@pytest.mark.parametrize("case", ["every token a support vector", "equal losing scores"])
def test_descent_always_gains_along_the_optimal_direction(case):
    """-<grad L(W), W_mm> > 0 for every W, so there is no finite stationary point.

    *Transformers as Support Vector Machines*, the two sufficient conditions.
    """
    random = np.random.default_rng(0)
    n, length, d = 3, 3, 60
    v, clear = np.eye(d)[0], []
    for _ in range(20):
        keys = random.normal(size=(n, length, d)) / np.sqrt(d)
        queries = random.normal(size=(n, d)) / np.sqrt(d)
        labels = np.where(random.random(n) < 0.5, -1.0, 1.0)
        if case == "equal losing scores":
            keys[:, :, 0] = -labels[:, None]
            keys[:, 1, 0] += labels
        best = (labels[:, None] * keys[:, :, 0]).argmax(1)
        u = np.concatenate([x[b] - np.delete(x, b, 0) for x, b in zip(keys, best, strict=True)])
        z = np.repeat(queries, length - 1, axis=0)
        multipliers = np.linalg.solve((u @ u.T) * (z @ z.T), np.ones(len(u)))
        if multipliers.min() <= 0:
            continue  # not every token is a support vector of this one
        W_mm = (u * multipliers[:, None]).T @ z
        W = random.normal(size=(d, d)) * 10 ** random.uniform(-1, 2)
        direction_found = compute(Tokens(keys, queries, labels), v, W)[0]
        gains = -direction_found * W_mm
        # Where attention saturates all that is left of them can be the rounding of their sum.
        assert gains.sum() > -1e-15 * np.abs(gains).sum()
        clear.append(gains.sum() > 1e-6 * np.abs(gains).sum())
    assert np.mean(clear) > 0.8
