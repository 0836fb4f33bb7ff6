"""The gradient through every head and every loss, held against arbitrary precision."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.attention import (
    AttentionMatrix,
    ConcaveHead,
    LinearHead,
    ReLUHead,
    VocabularyHead,
    attention_rows,
    get_loss,
    mean_loss,
    scaled_gradient,
)
from attractor.attention.scaled import direction, log_norm, magnitude
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.tokens import Tokens

W_TRAINED = AttentionMatrix()
CASES = [
    ("linear", "squared"),
    ("relu", "logistic"),
    ("relu", "exponential"),
    ("relu", "linear"),
    ("relu", "squared"),
    ("concave", "logistic"),
    ("concave", "squared"),
    ("value matrix", "logistic"),
    ("value matrix", "squared"),
    ("module", "logistic"),
    ("module", "squared"),
    ("vocabulary", "cross_entropy"),
]


@functools.partial(jax.jit, static_argnums=0)
def _compiled(loss, W, head, rows):
    gradient = scaled_gradient(W_TRAINED, get_loss(loss), W, head, rows).attention
    return direction(gradient), log_norm(gradient)


@jax.jit
def _predictions(head, keys):
    return head(keys)


def predictions(head, keys):
    with double_precision():
        return np.asarray(_predictions(head, keys))


def compute(tokens, head, W, loss):
    with double_precision():
        found, log = _compiled(loss, jnp.asarray(W), head, attention_rows(tokens))
        found = np.asarray(found)
        return found / np.linalg.norm(found), float(log)


def check(oracle, tokens, head, W, loss, tolerance, meets=None):
    found, log = compute(tokens, head, W, loss)
    expected, expected_log = oracle.gradient(tokens, head, W, loss, meets)
    assert np.linalg.norm(found - expected) <= tolerance
    assert abs(log - expected_log) <= 10 * tolerance


def problem(oracle, gap, seed, head, loss, graded=False):
    """Three rows of four tokens; the winner leads by the gap, all losers level or graded."""
    random = np.random.default_rng(seed)
    keys, queries = random.normal(size=(3, 4, 6)), random.normal(size=(3, 6))
    winners = random.integers(4, size=3)
    scores = -np.arange(4) * gap / 3 * graded * np.ones((3, 1))
    scores[np.arange(3), winners] = gap
    W = oracle.matrix(keys, queries, scores)
    labels = {
        "squared": random.normal(size=3),
        "cross_entropy": random.integers(4, size=3),
        "met": predictions(head, keys)[np.arange(3), winners] if loss == "met" else None,
    }.get(loss, np.where(random.random(3) < 0.5, -1.0, 1.0))
    return Tokens(keys, queries, labels), head, W, winners


@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_direction_and_size_are_exact_at_every_gap(oracle, heads, kind, loss):
    for gap, tolerance in [(0, 1e-14), (5, 2e-14), (40, 1e-13), (600, 1e-12), (2000, 5e-12)]:
        for graded in (False, True):
            case = problem(oracle, gap, gap + graded, heads(6)[kind], loss, graded)
            check(oracle, *case[:3], loss, tolerance)


@pytest.mark.parametrize("kind", ["linear", "relu", "concave", "value matrix", "module"])
def test_a_target_that_can_be_met_is_approached_at_every_gap(oracle, heads, kind):
    """The residual falls like the weights of the losers, far below the rounding of the output.

    Targets are rounded values of what the head says of the winner: they count as met.
    """
    for gap, tolerance in [(0, 1e-14), (5, 1e-13), (40, 1e-13), (600, 2e-12), (2000, 5e-12)]:
        for graded in (False, True):
            tokens, head, W, winners = problem(oracle, gap, 7, heads(6, 7)[kind], "met", graded)
            check(oracle, tokens, head, W, "squared", tolerance, meets=winners)


def test_a_met_target_behind_two_copies_of_the_winner(oracle, heads):
    for kind in ("linear", "relu", "concave", "module"):
        tokens, head, _, _ = problem(oracle, 0, 3, heads(6)[kind], "squared")
        keys = tokens.keys.copy()
        keys[:, 1] = keys[:, 0]
        scores = np.array([[0.0, 0.0, -1500.0, -1600.0]] * 3)
        W = oracle.matrix(keys, tokens.queries[:, 0], scores)
        twins = Tokens(keys, tokens.queries, predictions(head, keys)[:, 0])
        check(oracle, twins, head, W, "squared", 1e-11, meets=[0, 0, 0])


def test_an_exactly_met_target_with_nothing_else_to_gain_is_at_rest():
    tokens = Tokens(np.ones((3, 4, 6)), np.ones((3, 6)), [3.0] * 3)
    with double_precision():
        head, rows = LinearHead([1.0, 2.0, 0.0, 0.0, 0.0, 0.0]), attention_rows(tokens)
        mantissa, log = _compiled("squared", np.eye(6), head, rows)
        assert (np.asarray(mantissa) == 0).all() and log == -np.inf


def test_two_copies_of_the_winner_far_above_the_rest(oracle, heads):
    for kind, loss in [("relu", "logistic"), ("concave", "exponential"), ("vocabulary", None)]:
        loss = loss or "cross_entropy"
        tokens, head, _, _ = problem(oracle, 0, 4, heads(6)[kind], loss)
        keys = tokens.keys.copy()
        keys[:, 3] = keys[:, 1]
        scores = np.array([[0.0, 5000.0, 100.0, 5000.0]] * 3)
        W = oracle.matrix(keys, tokens.queries[:, 0], scores)
        check(oracle, Tokens(keys, tokens.queries, tokens.labels), head, W, loss, 5e-12)


def test_scale_of_the_cross_entropy_is_kept_for_each_row(oracle):
    """Score gap plus margin of the logits is the same in every row, so all rows matter alike."""
    random = np.random.default_rng(5)
    gaps = np.array([100.0, 400.0, 700.0])
    keys, queries = random.normal(size=(3, 4, 5)), random.normal(size=(3, 5))
    values = random.normal(size=(3, 4, 2))
    values[:, :, 0] = 1000 - gaps[:, None]
    values[:, 1:, 0] -= random.uniform(0.5, 2, size=(3, 3))
    W = oracle.matrix(keys, queries, gaps[:, None] * np.eye(4)[0])
    tokens = Tokens(keys, queries, np.zeros(3), values=values)
    head = VocabularyHead([[1.0, 0.0], [0.0, 0.5], [0.0, -0.5]])
    check(oracle, tokens, head, W, "cross_entropy", 5e-12)
    found, _ = compute(tokens, head, W, "cross_entropy")
    for row in range(3):
        thrice = [row] * 3  # the mean is that of one, and the shape that of all
        alone = Tokens(keys[thrice], queries[thrice], np.zeros(3), values=values[thrice])
        share = (found * compute(alone, head, W, "cross_entropy")[0]).sum()
        assert abs(share) > 1e-3  # with one scale for all rows, two of them would vanish


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        ("linear", "squared"),
        ("relu", "squared"),
        ("concave", "logistic"),
        ("value matrix", "exponential"),
        ("module", "squared"),
        ("vocabulary", "cross_entropy"),
    ],
)
def test_gradients_agree_with_automatic_differentiation_at_small_gaps(oracle, heads, kind, loss):
    """In W and in every array of the head, and so does the derivative of ``mean_loss``."""
    tokens, head, W, _ = problem(oracle, 2, 11, heads(6)[kind], loss)
    chosen = get_loss(loss)

    def plain(W, head, rows):
        weights = jax.nn.softmax(W_TRAINED.scores(W, rows), axis=-1)
        outputs = jnp.einsum("nkt,ntv->nkv", weights, rows.values)
        return chosen.value(head(outputs), rows.labels).mean()

    @jax.jit
    def all_ways(W, head, rows):
        found = scaled_gradient(W_TRAINED, chosen, W, head, rows)
        expected = jax.value_and_grad(plain, argnums=(0, 1))(W, head, rows)
        mean = jax.value_and_grad(lambda W: mean_loss(W_TRAINED, chosen, W, head, rows))(W)
        return magnitude(tuple(found)), expected, mean

    with double_precision():
        found, (value, expected), (mean, slope) = all_ways(
            jnp.asarray(W), head, attention_rows(tokens)
        )
    leaves = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    for leaf, other in leaves:
        np.testing.assert_allclose(leaf, other, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(mean, value, rtol=1e-12)
    np.testing.assert_allclose(slope, expected[0], rtol=1e-9, atol=1e-13)


def test_the_squared_loss_of_a_met_target_is_known_far_below_rounding(oracle, heads):
    tokens, head, W, winners = problem(oracle, 100, 2, heads(6)["relu"], "met")
    scores = tokens.scores(W)[:, 0]
    with mpmath.workdps(200):
        exact = np.vectorize(mpmath.mpf, otypes=[object])
        total = 0
        for i, winner in enumerate(winners):
            weights = np.array([mpmath.exp(mpmath.mpf(s)) for s in scores[i]])
            o = weights @ exact(tokens.keys[i]) / weights.sum()
            target = oracle.prediction(head, exact(tokens.keys[i, winner]))[0][0]
            total += (oracle.prediction(head, o)[0][0] - target) ** 2 / 2
        expected = float(total / 3)
    assert 1e-95 < expected < 1e-80
    with double_precision():
        loss = functools.partial(mean_loss, W_TRAINED, get_loss("squared"))
        found = jax.jit(loss)(jnp.asarray(W), head, attention_rows(tokens))
        np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_a_module_is_a_head_as_it_stands(oracle, heads, tanh_module):
    tokens, head, W, _ = problem(oracle, 5, 1, heads(6)["module"], "logistic")
    module = tanh_module(6, 0)

    @functools.partial(jax.jit, static_argnums=0)
    def everything(kind, rows):
        loss, parameters = get_loss("logistic"), jnp.asarray(W)
        chosen = module if kind == "as it stands" else head
        gradient = scaled_gradient(W_TRAINED, loss, parameters, chosen, rows)
        return magnitude(tuple(gradient)), mean_loss(W_TRAINED, loss, parameters, chosen, rows)

    with double_precision():
        found = everything("wrapped", attention_rows(tokens))
        as_it_stands = everything("as it stands", attention_rows(tokens))
    for one, other in zip(jax.tree.leaves(as_it_stands), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-18)


def test_a_function_as_loss_gives_the_gradient_of_the_loss_it_equals(oracle, heads):
    tokens, head, W, _ = problem(oracle, 30, 1, heads(6)["relu"], "logistic")
    found, log = compute(tokens, head, W, lambda f, y: jax.nn.softplus(-y * f))
    expected, expected_log = compute(tokens, head, W, "logistic")
    np.testing.assert_allclose(found, expected, atol=1e-13)
    assert abs(log - expected_log) < 1e-12


@pytest.mark.parametrize("kind", ["relu", "concave", "value matrix", "module", "vocabulary"])
def test_under_vmap_every_instance_has_its_own_head(oracle, heads, kind):
    loss = "cross_entropy" if kind == "vocabulary" else "logistic"
    cases = [problem(oracle, gap, gap, heads(6, gap)[kind], loss) for gap in (3, 700)]
    with double_precision():
        rows = jax.tree.map(
            lambda *leaves: jnp.stack(leaves), *[attention_rows(c[0]) for c in cases]
        )
        together = jax.tree.map(lambda *leaves: np.stack(leaves), *[c[1] for c in cases])
        assert together.instances == 2
        W = jnp.stack([c[2] for c in cases])
        found, logs = jax.vmap(functools.partial(_compiled, loss))(W, together, rows)
        found, logs = np.asarray(found), np.asarray(logs)
    for i, (tokens, head, W_alone, _) in enumerate(cases):
        expected, log = compute(tokens, head, W_alone, loss)
        np.testing.assert_allclose(found[i] / np.linalg.norm(found[i]), expected, atol=1e-13)
        assert abs(logs[i] - log) < 1e-11


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_huge_and_tiny_values(oracle, scale):
    tokens, _, W, _ = problem(oracle, 50, 3, LinearHead(np.ones(6)), "logistic")
    values = np.random.default_rng(0).normal(size=(3, 4, 2)) * scale
    scaled = Tokens(tokens.keys, tokens.queries, tokens.labels, values=values)
    check(oracle, scaled, ReLUHead(np.eye(2) / scale), W, "logistic", 1e-13)


def test_a_head_of_the_wrong_dimension_is_refused_by_name(oracle):
    tokens, _, W, _ = problem(oracle, 1, 0, LinearHead(np.ones(6)), "logistic")
    with double_precision(), pytest.raises(InvalidInputError, match=r"head: .*dimension 4.*have 6"):
        scaled_gradient(
            W_TRAINED, get_loss("logistic"), jnp.asarray(W), ConcaveHead(np.ones(4), 1.0),
            attention_rows(tokens),
        )  # fmt: skip
