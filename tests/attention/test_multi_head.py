"""Gradients of several attention heads, against mpmath, and parameterizations by name."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.attention import (
    Joint,
    KeyQuery,
    LinearHead,
    MultiHead,
    PredictionHeads,
    ReLUHead,
    attention_rows,
    get_loss,
    get_parameterization,
    mean_loss,
    scaled_gradient,
)
from attractor.attention.excess import log_excess_loss
from attractor.attention.gradients.entrywise import entrywise_gradient
from attractor.attention.gradients.plain import plain_gradient
from attractor.attention.heads import as_head, head_from_arrays
from attractor.attention.scaled import Scaled
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.tokens import Tokens, split_heads
from attractor.tokens.arrangement import arranged

TWO = MultiHead("W", 2)
GRADIENTS = {"by array": scaled_gradient, "by entry": entrywise_gradient}


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


@functools.partial(jax.jit, static_argnums=(0, 1))
def _compiled(gradient, loss, Ws, head, rows):
    parameters = TWO.from_arrays({"W": Ws})
    found = gradient(TWO, get_loss(loss), parameters, head, rows)
    value = mean_loss(TWO, get_loss(loss), parameters, head, rows)
    return jax.tree.map(lambda leaf: (leaf.mantissa, leaf.log_scale), found), value


def gradient_of(gradient, loss, Ws, head, tokens):
    """The gradient of two heads, and the loss."""
    head = jax.tree.map(jnp.asarray, head)
    found, value = _compiled(gradient, loss, Ws, head, attention_rows(tokens))
    return jax.tree.map(lambda both: Scaled(*both), found, is_leaf=_is_pair), value


def _is_pair(node):
    return type(node) is tuple and all(isinstance(part, jax.Array) for part in node)


def data(seed=0, n=3, T=4, d=5, e=3):
    draw = np.random.default_rng(seed)
    tokens = Tokens(
        draw.normal(size=(n, T, d)), draw.normal(size=(n, e)), labels=draw.choice([-1.0, 1.0], n)
    )
    return tokens, draw


def at_gaps(tokens, draw, gaps):
    """A matrix for each head whose largest score gap is the one given."""
    found = []
    for gap in gaps:
        W = draw.normal(size=(tokens.key_dimension, tokens.query_dimension))
        scores = tokens.scores(W)
        found.append(W * gap / np.ptp(scores, axis=-1).max())
    return np.array(found)


def exact(tokens, vs, Ws, loss="logistic"):
    """Gradients in every W_h and v_h, and the loss, with as many digits as gaps need."""
    gap = max(np.ptp(tokens.scores(W), axis=-1).max() for W in Ws)
    with mpmath.workdps(60 + int(gap)):
        number = np.vectorize(mpmath.mpf, otypes=[object])
        keys, queries = number(tokens.keys), number(tokens.queries[:, 0])
        of_W = [np.zeros(W.shape, dtype=object) for W in Ws]
        of_v = [np.zeros(v.shape, dtype=object) for v in vs]
        mean = mpmath.mpf(0)
        for x, z, y in zip(keys, queries, tokens.labels[:, 0], strict=True):
            weights = []
            for W in Ws:
                s = x @ (number(W) @ z)
                p = np.array([mpmath.exp(a - max(s)) for a in s])
                weights.append(p / p.sum())
            f = sum(p @ (x @ number(v)) for p, v in zip(weights, vs, strict=True))
            if loss == "logistic":
                mean += mpmath.log(1 + mpmath.exp(-y * f))
                slope = -y / (1 + mpmath.exp(y * f))
            else:
                mean += (f - y) ** 2 / 2
                slope = f - y
            for h, (p, v) in enumerate(zip(weights, vs, strict=True)):
                gamma = x @ number(v)
                of_W[h] = of_W[h] + np.outer((slope * p * (gamma - p @ gamma)) @ x, z)
                of_v[h] = of_v[h] + slope * (p @ x)
        n = len(keys)
        return [w / n for w in of_W], [v / n for v in of_v], mean / n


def agree(found, expected, tolerance):
    """Whether an array with scales is the exact one, relative to its largest entry."""
    with mpmath.workdps(60):
        largest = max(abs(entry) for entry in expected.ravel())
        scales = np.broadcast_to(found.log_scale, found.mantissa.shape)
        for value, scale, entry in zip(
            np.asarray(found.mantissa).ravel(), scales.ravel(), expected.ravel(), strict=True
        ):
            own = mpmath.mpf(float(value)) * mpmath.exp(mpmath.mpf(float(scale)))
            assert abs(own - entry) < tolerance * largest, float((own - entry) / largest)


@pytest.mark.parametrize("gradient", GRADIENTS.values(), ids=GRADIENTS)
@pytest.mark.parametrize("gaps", [(0.5, 3.0), (30.0, 1000.0), (2000.0, 700.0)])
def test_every_head_has_its_exact_gradient_however_far_apart_they_are(gradient, gaps):
    tokens, draw = data()
    Ws, vs = at_gaps(tokens, draw, gaps), draw.normal(size=(2, 5))
    head = PredictionHeads([LinearHead(v) for v in vs])
    found, _ = gradient_of(gradient, "logistic", Ws, head, tokens)
    of_W, of_v, _ = exact(tokens, vs, Ws)
    for own, expected in zip(found.attention.each, of_W, strict=True):
        agree(own, expected, 1e-13 + 1e-15 * max(gaps))
    for own, expected in zip(found.head.each, of_v, strict=True):
        agree(own.weight, expected, 1e-13)


@pytest.mark.parametrize("gradient", GRADIENTS.values(), ids=GRADIENTS)
def test_heads_that_share_a_prediction_head_add_up_in_it(gradient):
    tokens, draw = data(1)
    Ws, v = at_gaps(tokens, draw, (50.0, 2.0)), draw.normal(size=5)
    found, value = gradient_of(gradient, "logistic", Ws, LinearHead(v), tokens)
    _, of_v, mean = exact(tokens, [v, v], Ws)
    agree(found.head.weight, of_v[0] + of_v[1], 1e-13)
    assert float(value) == pytest.approx(float(mean), rel=1e-14)


def test_a_squared_loss_sees_how_far_the_sum_of_heads_is_from_its_target():
    tokens, draw = data(2)
    Ws, vs = at_gaps(tokens, draw, (300.0, 900.0)), draw.normal(size=(2, 5))
    # Few digits, so that sums are exact and the target is met but for the weights of other tokens.
    vs = [np.round(v * 2**8) / 2**8 for v in vs]
    keys = np.round(tokens.keys * 2**8) / 2**8
    leaders = [tokens.scores(W)[:, 0].argmax(-1) for W in Ws]
    targets = sum(keys[np.arange(3), t] @ v for t, v in zip(leaders, vs, strict=True))
    tokens = Tokens(keys, tokens.queries, labels=targets)
    head = PredictionHeads([LinearHead(v) for v in vs])
    found, _ = gradient_of(scaled_gradient, "squared", Ws, head, tokens)
    of_W, _, _ = exact(tokens, vs, Ws, "squared")
    for own, expected in zip(found.attention.each, of_W, strict=True):
        agree(own, expected, 2e-12)


def test_finite_differences_agree_with_every_kind_of_head_and_loss():
    tokens, draw = data(3)
    Ws = at_gaps(tokens, draw, (2.0, 1.0))
    head = PredictionHeads([ReLUHead(draw.normal(size=(5, 4))), LinearHead(draw.normal(size=5))])
    found, _ = gradient_of(scaled_gradient, "exponential", Ws, head, tokens)
    plain, _ = gradient_of(plain_gradient, "exponential", Ws, head, tokens)
    for h, own in enumerate(found.attention.each):
        slope = np.asarray(own.mantissa * np.exp(own.log_scale))
        step = draw.normal(size=slope.shape)
        moved = np.zeros_like(Ws)
        moved[h] = 1e-5 * step
        ends = [
            gradient_of(scaled_gradient, "exponential", W, head, tokens)[1]
            for W in (Ws + moved, Ws - moved)
        ]
        difference = (ends[0] - ends[1]) / 2e-5
        assert float(difference) == pytest.approx((slope * step).sum(), rel=1e-7)
        assert plain.attention.each[h].mantissa == pytest.approx(slope, rel=1e-12)


def test_the_excess_loss_of_several_heads_is_exact():
    tokens, draw = data(4)
    Ws, vs = at_gaps(tokens, draw, (40.0, 4.0)), draw.normal(size=(2, 5))
    head = PredictionHeads([LinearHead(v) for v in vs])
    rows, loss = attention_rows(tokens), get_loss("logistic")
    excess = jax.jit(lambda W: log_excess_loss(TWO, loss, TWO.from_arrays({"W": W}), head, rows))
    found = float(excess(Ws))
    _, _, mean = exact(tokens, vs, Ws)
    best = sum((tokens.labels * (tokens.keys @ v)).max(-1) for v in vs)
    least = sum(mpmath.log(1 + mpmath.exp(-mpmath.mpf(m))) for m in best) / len(best)
    assert found == pytest.approx(float(mpmath.log(mean - least)), rel=1e-12)


def test_small_predictions_of_several_heads_keep_their_logarithm():
    keys = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    tokens = Tokens(keys, [[1.0]], labels=[1.0], values=[[[1.0], [0.0]]])
    Ws = np.array([[[-800.0], [0.0]], [[-803.0], [0.0]]])
    rows, loss = attention_rows(tokens), get_loss("negative_log")
    of = jax.jit(lambda W: mean_loss(TWO, loss, TWO.from_arrays({"W": W}), LinearHead([1.0]), rows))
    value = of(Ws)
    assert float(value) == pytest.approx(800 - np.log1p(np.exp(-3)), rel=1e-14)


def test_names_say_how_many_heads_there_are():
    for name, expected in {
        "4 x W": MultiHead("W", 4),
        "2x(K, Q)": MultiHead(KeyQuery(), 2),
        "(v, 3 x p)": Joint(MultiHead("p", 3)),
    }.items():
        assert get_parameterization(name) == expected
        assert get_parameterization(expected.name) == expected
    for wrong in ("0 x W", "4 x", "x W", "2 x 2 x W", "4 x v, W"):
        with pytest.raises(InvalidInputError):
            get_parameterization(wrong)
    with pytest.raises(InvalidInputError, match="not one attention head"):
        MultiHead(Joint(KeyQuery()), 2)


def test_arrays_of_heads_come_apart_and_together():
    draw = np.random.default_rng(0)
    for layer in (MultiHead("W", 3), MultiHead(KeyQuery(2), 3), MultiHead("p", 3)):
        arrays = {n: draw.normal(size=(7, *s)) for n, s in layer.shapes(4, 5).items()}
        again = layer.to_arrays(layer.from_arrays(arrays))
        assert all(np.array_equal(again[name], arrays[name]) for name in arrays)
    one, three = MultiHead("W", 1), MultiHead("W", 3)
    key = np.array([[3, 4]], np.uint32)
    first, *rest = three.initial(key, 4, 5).each
    assert np.array_equal(first, one.initial(key, 4, 5).each[0])
    assert all(np.abs(first - other).max() > 0.1 for other in rest)


def test_the_matrices_of_heads_are_arranged_as_documented():
    W = np.arange(2 * 2 * 3).reshape(2, 2, 3)
    assert np.array_equal(arranged(W, "stacked"), np.concatenate(W))
    assert np.array_equal(arranged(W, "side by side"), np.hstack(W))
    blocks = arranged(W, "block diagonal")
    assert np.array_equal(blocks[:2, :3], W[0]) and np.array_equal(blocks[2:, 3:], W[1])
    assert not blocks[:2, 3:].any() and not blocks[2:, :3].any()
    for how in ("stacked", "side by side", "block diagonal"):
        assert np.array_equal(split_heads(arranged(W, how), 2, how), W)
    with pytest.raises(InvalidInputError, match="2 heads that are stacked"):
        split_heads(np.zeros((3, 3)), 2, "stacked")


def test_prediction_heads_are_kept_by_their_name_and_arrays():
    heads = as_head([LinearHead([1, 2]), ReLUHead(np.eye(2))], 2)
    assert isinstance(heads, PredictionHeads)
    again = head_from_arrays(heads.name, heads.arrays())
    x = np.array([[3.0, -5.0]])
    assert again.name == heads.name and np.array_equal(again(x), heads(x))
    with pytest.raises(InvalidInputError, match="vectors of dimension 2 and 1"):
        PredictionHeads([LinearHead([1, 2]), LinearHead([1])])
