import jax
import numpy as np
import pytest

from attractor.attention import (
    AttentionMatrix,
    Joint,
    KeyQuery,
    LinearHead,
    Logistic,
    PromptVector,
    attention_rows,
    get_parameterization,
    mean_loss,
    scaled_gradient,
)
from attractor.attention.scaled import magnitude
from attractor.geometry import Frobenius, Lp, Nuclear, Spectral
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.tokens import Tokens

ALL = (AttentionMatrix(), KeyQuery(1), KeyQuery(2), KeyQuery(), PromptVector())


def tokens_of(rng, d=3, e=4):
    return Tokens(
        rng.normal(size=(3, 5, d)), rng.normal(size=(3, e)), np.where(rng.random(3) < 0.5, -1, 1)
    )


@pytest.mark.parametrize("layer", ALL, ids=str)
def test_scores_are_those_of_the_effective_matrix(rng, layer):
    tokens = layer.prepare(tokens_of(rng))
    with double_precision():
        parameters = layer.initial(jax.random.key(1), 3, tokens.query_dimension)
        found = layer.scores(parameters, attention_rows(tokens))
        W = np.asarray(layer.effective_matrix(parameters))
    np.testing.assert_allclose(found, tokens.scores(W), atol=1e-14)


@pytest.mark.parametrize("layer", ALL, ids=str)
def test_gradients_are_those_of_the_loss(rng, layer):
    tokens, head = layer.prepare(tokens_of(rng)), LinearHead(rng.normal(size=3))
    rows = attention_rows(tokens)
    with double_precision():
        parameters = layer.initial(jax.random.key(2), 3, tokens.query_dimension)

        @jax.jit
        def both(parameters, head):
            def loss(parameters, head):
                return mean_loss(layer, Logistic(), parameters, head, rows)

            ours = scaled_gradient(layer, Logistic(), parameters, head, rows)
            return magnitude(tuple(ours)), jax.grad(loss, argnums=(0, 1))(parameters, head)

        for ours, theirs in zip(*both(parameters, head), strict=True):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-14), ours, theirs)


def test_factor_gradients_are_the_chain_rule_far_past_saturation(rng, oracle):
    tokens, v, W = oracle.equal_gap(1500.0, 3)
    exact, log_norm = oracle.gradient(tokens, v, W)
    layer = KeyQuery()

    @jax.jit
    def gradient(factors, head, rows):
        found = scaled_gradient(layer, Logistic(), factors, head, rows).attention
        return [(array.mantissa, array.log_scale) for array in found]

    with double_precision():
        factors = layer.from_matrix(W)
        found = gradient(factors, LinearHead(v), attention_rows(tokens))
    for (mantissa, log_scale), chained in zip(
        found, (exact @ factors.Q, exact.T @ factors.K), strict=True
    ):
        assert float(log_scale) < -1000
        ours = np.asarray(mantissa) * np.exp(float(log_scale) - log_norm)
        np.testing.assert_allclose(ours, chained, atol=1e-11 * np.abs(chained).max())


def test_balanced_factors_stand_for_the_matrix_or_the_nearest_of_their_rank(rng):
    W = rng.normal(size=(5, 4, 3))
    full = KeyQuery().from_matrix(W)
    np.testing.assert_allclose(KeyQuery().effective_matrix(full), W, atol=1e-13)
    assert full.K.shape == (5, 4, 4) and full.Q.shape == (5, 3, 4)
    np.testing.assert_allclose(
        full.K.mT @ full.K, full.Q.mT @ full.Q, atol=1e-13, err_msg="the factors are not balanced"
    )
    one = KeyQuery(1)
    nearest = one.effective_matrix(one.from_matrix(W))
    values = np.linalg.svd(W, compute_uv=False)
    missing = np.linalg.norm(W - nearest, axis=(-2, -1))
    np.testing.assert_allclose(missing, np.linalg.norm(values[:, 1:], axis=-1), rtol=1e-12)


@pytest.mark.parametrize("layer", (AttentionMatrix(), KeyQuery(2)), ids=str)
def test_arrays_and_parameters_are_the_same(layer):
    with double_precision():
        parameters = layer.initial(jax.random.key(0), 3, 4)
    arrays = layer.to_arrays(parameters)
    assert {name: array.shape for name, array in arrays.items()} == layer.shapes(3, 4)
    again = jax.tree.leaves(layer.from_arrays(arrays))
    for leaf, same in zip(jax.tree.leaves(parameters), again, strict=True):
        np.testing.assert_array_equal(leaf, same)


def test_geometries_are_known_or_said_not_to_be():
    for layer in (AttentionMatrix(), Joint(AttentionMatrix())):
        assert layer.effective_geometry(Lp(3)) == Lp(3)
        assert layer.effective_geometry(None) is None
    assert KeyQuery(2).effective_geometry(Frobenius()) == Nuclear()
    assert KeyQuery().effective_geometry(Lp(3)) is None
    assert PromptVector().effective_geometry(Lp(3)) == Lp(3)
    assert PromptVector().effective_geometry(Spectral()) == Frobenius()


def test_a_prompt_sees_weighted_keys_and_averages_the_tokens(rng):
    keys, labels = rng.normal(size=(2, 3, 4, 5)), np.ones((2, 3))
    weights = rng.normal(size=(5, 2))
    tokens = Tokens(keys, np.ones((2, 3, 7)), labels)
    prepared = PromptVector(weights).prepare(tokens)
    expected = Tokens.prompt_vector(keys, labels, weights)
    for name in ("keys", "queries", "values", "labels", "mask"):
        np.testing.assert_allclose(getattr(prepared, name), getattr(expected, name), atol=1e-15)
    np.testing.assert_array_equal(PromptVector().prepare(tokens).keys, keys)


def test_a_prompt_refuses_what_it_cannot_use(rng):
    several = Tokens(rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 5, 6)), np.ones((3, 5)))
    with pytest.raises(InvalidInputError, match="tokens: each sequence has 5 queries"):
        PromptVector().prepare(several)
    with pytest.raises(InvalidInputError, match=r"weights: the shape is \(5, 5\)"):
        PromptVector(np.eye(5)).prepare(tokens_of(rng))


@pytest.mark.parametrize("width", (0, -1, 2.5, True, "two"))
def test_a_width_is_a_positive_integer(width):
    with pytest.raises(InvalidInputError, match="width"):
        KeyQuery(width)


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("W", AttentionMatrix()),
        ("(K, Q)", KeyQuery()),
        ("KQ", KeyQuery()),
        ("p", PromptVector()),
        ("(v, W)", Joint(AttentionMatrix())),
        ("v,p", Joint(PromptVector())),
        ("(v, K, Q)", Joint(KeyQuery())),
    ],
)
def test_the_names_of_the_papers_are_known(name, layer):
    assert get_parameterization(name) == layer


def test_unknown_names_are_refused():
    with pytest.raises(InvalidInputError, match="Known: 'W', 'v, W', 'KQ'"):
        get_parameterization("low rank")


@pytest.mark.parametrize("layer", (AttentionMatrix(), KeyQuery(2)), ids=str)
def test_initial_numbers_are_those_that_jax_draws(layer, optimized):
    with double_precision():
        keys = jax.random.split(jax.random.key(5), 7)
        found = layer.to_arrays(layer.initial(keys, 3, 4))
        for number, (name, shape) in enumerate(layer.shapes(3, 4).items()):
            own = keys if len(found) == 1 else [jax.random.fold_in(key, number) for key in keys]
            bound = shape[0] ** -0.5
            expected = [
                jax.random.uniform(key, shape, "float64", minval=-bound, maxval=bound)
                for key in own
            ]
            assert np.array_equal(found[name], np.stack(expected))
            assert np.array_equal(
                layer.to_arrays(layer.initial(keys[2], 3, 4))[name], found[name][2]
            )
