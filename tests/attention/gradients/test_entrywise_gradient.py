import functools

import jax
import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.attention import AttentionMatrix, LinearHead, attention_rows, get_loss
from attractor.attention.gradients.entrywise import entrywise_gradient
from attractor.attention.gradients.scaled_gradient import scaled_gradient
from attractor.attention.parameterization import KeyQuery, KeyQueryFactors, PromptVector
from attractor.support.precision import double_precision
from attractor.tokens import Tokens

W_TRAINED = AttentionMatrix()


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _compiled(gradient, parameterization, loss, parameters, head, rows):
    found = gradient(parameterization, get_loss(loss), parameters, head, rows)
    return [(leaf.mantissa, leaf.log_scale) for leaf in jax.tree.leaves(found)]


def compute(
    tokens, v, parameters, loss="logistic", of=W_TRAINED, gradient=entrywise_gradient, dtype=float
):
    """Mantissa and log scale of every array: those of attention, then the vector of the head."""
    rows = attention_rows(tokens, dtype)
    cast = functools.partial(np.asarray, dtype=dtype)
    arrays, head = jax.tree.map(cast, parameters), jax.tree.map(cast, LinearHead(v))
    return jax.tree.map(np.asarray, _compiled(gradient, of, loss, arrays, head, rows))


def sign_and_log(number):
    mantissa, log_scale = number
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(mantissa == 0, -np.inf, np.log(np.abs(mantissa)) + log_scale)
    return np.sign(mantissa), log


def exact(tokens, v, W, loss="logistic"):
    """Gradients in W and in v entry by entry, by sums over pairs of tokens; nothing cancels.

    ``p_t p_s (g_t - g_s) (x_t - x_s) z^T`` for every pair, so that an entry is zero where it
    should be. Each comes as (sign, log of its size, log of the sum of sizes of its terms).
    """
    with mpmath.workdps(60):
        number = np.vectorize(mpmath.mpf, otypes=[object])
        x, u, z = number(tokens.keys), number(tokens.values), number(tokens.queries)
        W, v = number(np.asarray(W)), number(np.asarray(v))
        sums = [np.zeros(W.shape, dtype=object), np.zeros(v.shape, dtype=object)]
        sizes = [np.zeros(W.shape, dtype=object), np.zeros(v.shape, dtype=object)]
        for i, k in np.ndindex(tokens.mask.shape[:2]):
            kept = np.flatnonzero(tokens.mask[i, k])
            scores = x[i][kept] @ (W @ z[i, k])
            p = np.array([mpmath.exp(s - max(scores)) for s in scores])
            p = p / p.sum()
            g = u[i][kept] @ v
            f, y = p @ g, mpmath.mpf(tokens.labels[i, k])
            slope = {
                "logistic": lambda f=f, y=y: -y / (1 + mpmath.exp(y * f)),
                "exponential": lambda f=f, y=y: -y * mpmath.exp(-y * f),
            }[loss]()
            for a, s in enumerate(kept):
                for b, t in list(enumerate(kept))[:a]:
                    effect = slope * p[a] * p[b] * (g[a] - g[b])
                    term = effect * np.outer(x[i, s] - x[i, t], z[i, k])
                    sums[0], sizes[0] = sums[0] + term, sizes[0] + abs(term)
                term = slope * p[a] * u[i, s]
                sums[1], sizes[1] = sums[1] + term, sizes[1] + abs(term)
        rows = tokens.labels.size
        logs = np.vectorize(lambda m: float(mpmath.log(m / rows)) if m else -np.inf, otypes=[float])
        return [
            (np.vectorize(mpmath.sign)(total).astype(float), logs(abs(total)), logs(size))
            for total, size in zip(sums, sizes, strict=True)
        ]


def check(tokens, v, W, tolerance, loss="logistic"):
    found = compute(tokens, v, W, loss)
    for number, (sign, log, log_size) in zip(found, exact(tokens, v, W, loss), strict=True):
        found_sign, found_log = sign_and_log(number)
        smooth = log > log_size - 5  # elsewhere large terms cancel
        np.testing.assert_array_equal(found_sign[smooth], sign[smooth])
        np.testing.assert_allclose(found_log[smooth], log[smooth], rtol=0, atol=tolerance)
        assert (found_sign[np.isneginf(log_size)] == 0).all()
        assert (found_log[~smooth] <= log_size[~smooth] - 5 + 1e-6).all()


def one_hot_problem(gaps):
    """Row i has three tokens of its own; the two losers are ``gaps[i]`` below the leader."""
    n = len(gaps)
    keys = np.eye(3 * n).reshape(n, 3, 3 * n)
    W = np.repeat(gaps, 3)[:, None] * np.tile([1.0, 0, 0.0], n)[:, None]
    return Tokens(keys, np.ones((n, 1)), np.tile([1.0, -1.0], n)[:n]), W


def test_one_hot_rows_with_very_different_gaps():
    """Two rows, gaps 5 and 1,000: one scale for the array would lose the second row."""
    tokens, W = one_hot_problem([5.0, 1000.0])
    v = np.array([1.0, 2.0, -3.0, 0.5, 1.5, 0.25])
    check(tokens, v, W, 5e-13)  # logarithms of 1,000 have roundings of 1e-13
    (together, *_), (apart, *_) = (
        compute(tokens, v, W, gradient=gradient)
        for gradient in (scaled_gradient, entrywise_gradient)
    )
    assert (together[0][3:] == 0).all()
    assert (apart[0] != 0).all()


@pytest.mark.parametrize("gaps", [[0.0, 0.0], [300.0, 700.0, 1100.0, 1500.0], [5000.0, 0.0]])
def test_one_hot_rows_at_many_scales(gaps):
    tokens, W = one_hot_problem(gaps)
    check(tokens, np.arange(1.0, 3 * len(gaps) + 1), W, 1e-12)


def test_tokens_of_one_row_at_many_scales():
    keys = np.eye(6)[None]
    W = np.array([[2000.0], [1999.0], [1400.0], [700.0], [3.0], [0.0]])
    for v in ([1.0, 2, 3, 4, 5, 6], [1.0, 1, 1, 1, 5, 6], [2.0, 2, 2, 2, 2, 3]):  # the last two tie
        check(Tokens(keys, np.ones((1, 1)), [1.0]), np.array(v), W, 1e-12)


def test_gap_and_margin_that_trade_off_leave_all_rows_at_one_scale():
    gaps = np.array([0.0, 400.0, 800.0])
    tokens, W = one_hot_problem(gaps)
    values = np.zeros((3, 3, 2))
    values[:, :, 0] = (1000 - gaps)[:, None] * tokens.labels - [0.0, 1.0, 2.0]
    tokens = Tokens(tokens.keys, tokens.queries, tokens.labels, values=values)
    for loss in ("logistic", "exponential"):
        check(tokens, np.array([1.0, 0.0]), W, 1e-12, loss)


def test_a_feature_shared_by_leader_and_losers_takes_its_gradient_from_others():
    """Above all a constant feature: its entry is exactly zero, not a rounding of larger ones."""
    random = np.random.default_rng(0)
    keys = random.integers(-4, 5, size=(2, 4, 5)) / 4.0
    keys[:, :, 0] = 1.0
    keys[0, :3, 1] = 0.5  # only the last token of the first row, far below, differs here
    keys[1, :, 1] = -0.25
    queries = np.ones((2, 2, 3)) * [1.0, 0.0, 0.0]
    W = np.zeros((5, 3))
    tokens = Tokens(keys, queries, [[1.0, 1.0], [-1.0, -1.0]])
    (gradient, _) = compute(tokens, random.normal(size=5), W)
    assert (gradient[0][0] == 0).all() and np.isneginf(gradient[1][0]).all()
    assert (gradient[0][1:, 0] != 0).all()
    W[1, 0] = 800.0 * np.sign(keys[0, 0, 1] - keys[0, 3, 1])
    check(tokens, np.array([0.0, 1.0, 2.0, 3.0, 4.0]), W, 1e-12)


@given(seed=st.integers(0, 10**6), spread=st.sampled_from([1, 100, 1000]))
def test_sparse_data_entry_by_entry(seed, spread):
    """Multi-hot tokens that share features, several queries, a mask; all scores exact."""
    random = np.random.default_rng(seed)
    keys = (random.random((2, 4, 5)) < 0.4) * random.integers(1, 4, size=(2, 4, 5)) / 2.0
    queries = (random.random((2, 2, 3)) < 0.6) * random.integers(-2, 3, size=(2, 2, 3)) / 2.0
    mask = random.random((2, 2, 4)) < 0.7
    mask[..., 0] = True
    labels = np.where(random.random((2, 2)) < 0.5, -1.0, 1.0)
    W = np.round(spread * random.normal(size=(5, 3)))
    check(Tokens(keys, queries, labels, mask), random.integers(-3, 4, size=5) / 4.0, W, 1e-11)


@pytest.mark.parametrize("gap", [0, 20, 300])
def test_dense_data_give_what_one_scale_gives(oracle, gap):
    tokens, v, W = oracle.equal_gap(gap, 0)
    factors = KeyQueryFactors(*np.split(np.random.default_rng(1).normal(size=(12, 4)), 2))
    for of, parameters in ((W_TRAINED, W), (KeyQuery(4), factors), (PromptVector(), W[:, 0])):
        one = compute(tokens, v, parameters, of=of, gradient=scaled_gradient)
        each = compute(tokens, v, parameters, of=of)
        for (mantissa, log_scale), (entries, log_scales) in zip(one, each, strict=True):
            assert log_scales.shape == entries.shape
            found = entries * np.exp(log_scales - log_scale)
            np.testing.assert_allclose(found, mantissa, atol=1e-13 * np.abs(mantissa).max())


def test_key_and_query_factors_of_one_hot_tokens():
    tokens, W = one_hot_problem([5.0, 1000.0])
    v = np.arange(1.0, 7)
    K, Q = np.stack([W[:, 0], np.zeros(6)], axis=1), np.array([[1.0, 0.5]])
    (K_found, Q_found, _) = compute(tokens, v, KeyQueryFactors(K, Q), of=KeyQuery(2))
    sign, log, _ = exact(tokens, v, W)[0]  # dK = dW Q, and W = K Q^T
    for column, factor in enumerate(Q[0]):
        found = sign_and_log(K_found)
        np.testing.assert_array_equal(found[0][:, column], sign[:, 0])
        np.testing.assert_allclose(found[1][:, column], log[:, 0] + np.log(factor), atol=1e-12)
    gradient = sign[:, 0] * np.exp(log[:, 0])
    found = sign_and_log(Q_found)
    np.testing.assert_allclose(found[0] * np.exp(found[1]), [gradient @ K], rtol=1e-12)


def test_one_precision_lower():
    tokens, W = one_hot_problem([5.0, 60.0, 200.0])
    v = np.arange(1.0, 10)
    found = compute(tokens, v, W, dtype=np.float32)
    for number, (sign, log, _) in zip(found, exact(tokens, v, W), strict=True):
        assert number[0].dtype == np.float32
        np.testing.assert_array_equal(sign_and_log(number)[0], sign)
        np.testing.assert_allclose(sign_and_log(number)[1], log, atol=5e-5)


def test_no_gradient_at_all():
    tokens = Tokens(np.ones((2, 3, 6)), np.ones((2, 1)), [1.0, -1.0])
    mantissa, log_scale = compute(tokens, np.ones(6), np.ones((6, 1)))[0]
    assert (mantissa == 0).all() and np.isneginf(log_scale).all()


def test_instances_beside_each_other_do_not_change_each_other():
    """One instance needs several levels, the other one: each gives the same bits as alone."""
    problems = [one_hot_problem(gaps) for gaps in ([5.0, 1000.0], [3.0, 4.0])]
    v = np.arange(1.0, 7)
    rows = [attention_rows(tokens) for tokens, _ in problems]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
    run = functools.partial(_compiled, entrywise_gradient, W_TRAINED, "logistic")
    together = jax.vmap(run, in_axes=(0, None, 0))(
        np.stack([W for _, W in problems]), LinearHead(v), stacked
    )
    for place, (tokens, W) in enumerate(problems):
        for (mantissa, log_scale), number in zip(compute(tokens, v, W), together, strict=True):
            np.testing.assert_allclose(number[0][place], mantissa, rtol=1e-14)
            np.testing.assert_array_equal(number[1][place], log_scale)
