import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from attractor.attention import (
    AttentionMatrix,
    LinearHead,
    ValueMatrix,
    attention_rows,
    get_loss,
    mean_loss,
    scaled_gradient,
)
from attractor.attention.gradients.plain import plain_gradient
from attractor.attention.losses import NegativeLog
from attractor.attention.scaled import direction, log_norm
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.tokens import Tokens

LAYER, LOSS = AttentionMatrix(), NegativeLog()


@jax.jit
def compute(head, W, rows):
    found = scaled_gradient(LAYER, LOSS, W, head, rows).attention
    found_direction = direction(found)
    unit = found_direction / jnp.linalg.norm(found_direction)
    return unit, log_norm(found), mean_loss(LAYER, LOSS, W, head, rows)


def mass_problem(oracle, gap, seed, behind=False):
    """Rows of four tokens, two of them with the label; one wins by the gap, or all others do."""
    random = np.random.default_rng(seed)
    keys, queries = random.normal(size=(3, 4, 6)), random.normal(size=(3, 6))
    values = np.zeros((3, 4, 1))
    values[:, :2] = 1
    scores = random.normal(size=(3, 4))
    scores[:, 2:] += gap if behind else -gap
    W = oracle.matrix(keys, queries, scores)
    return Tokens(keys, queries, np.ones(3), values=values), LinearHead([1.0]), W


def exact_loss(tokens, W):
    with mpmath.workdps(60 + int(np.ptp(tokens.scores(W)))):
        total = mpmath.mpf(0)
        keys, queries, matrix = (
            np.vectorize(mpmath.mpf, otypes=[object])(a) for a in (tokens.keys, tokens.queries, W)
        )
        for i in range(3):
            weights = [mpmath.exp(s) for s in keys[i] @ (matrix @ queries[i, 0])]
            total -= mpmath.log1p(-sum(weights[2:]) / sum(weights)) / 3
        return total


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("gap", [0, 5, 40, 600, 2000])
def test_loss_and_gradient_are_exact_at_both_ends(oracle, gap, behind):
    tokens, head, W = mass_problem(oracle, gap, gap + 1, behind)
    with double_precision():
        found, log, loss = map(np.asarray, compute(head, W, attention_rows(tokens)))
    expected, expected_log = oracle.gradient(tokens, head, W, "negative_log")
    tolerance = 1e-14 + 5e-15 * gap
    assert np.linalg.norm(found - expected) <= tolerance
    assert abs(log - expected_log) <= 10 * tolerance
    exact = exact_loss(tokens, W)
    assert float(abs(loss - exact)) <= 1e-11 * float(exact) + 1e-320


def test_an_identity_value_matrix_changes_nothing(oracle):
    tokens, head, W = mass_problem(oracle, 900, 3, behind=True)
    with double_precision():
        rows = attention_rows(tokens)
        plain, behind = (
            [np.asarray(array) for array in compute(one, W, rows)]
            for one in (head, ValueMatrix([[1.0]], head))
        )
    np.testing.assert_allclose(behind[0], plain[0], rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(behind[1:], plain[1:], rtol=1e-14)


@pytest.mark.parametrize("behind", [False, True])
def test_automatic_differentiation_agrees_where_it_can(oracle, behind):
    tokens, head, W = mass_problem(oracle, 4, 5, behind)
    with double_precision():
        rows = attention_rows(tokens)
        plain = jax.jit(lambda W: plain_gradient(LAYER, LOSS, W, head, rows).attention.mantissa)(W)
        unit, log, _ = compute(head, W, rows)
        np.testing.assert_allclose(plain, unit * jnp.exp(log), rtol=1e-11, atol=1e-14)


def test_the_loss_of_a_number_is_its_negative_logarithm():
    assert get_loss("negative_log") == LOSS
    with double_precision():
        prediction, one = jnp.array([0.25, 1.0]), jnp.ones(2)
        np.testing.assert_allclose(LOSS.value(prediction, one), [np.log(4), 0])
        mantissa, log = LOSS.cotangent(prediction, one)
        np.testing.assert_allclose(mantissa * np.exp(log), [-4, -1])


def test_labels_that_would_not_be_read_are_refused():
    LOSS.validate(np.ones((3, 1)))
    with pytest.raises(InvalidInputError, match=r"labels: the label at \(1, 0\) is -1.*one"):
        LOSS.validate(np.array([[1.0], [-1.0]]))
    with pytest.raises(InvalidInputError, match="head: it gives 3 logits"):
        LOSS.check_classes(3)
