"""Training through every head and every loss."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.analysis import verify
from attractor.attention import (
    ConcaveHead,
    LinearHead,
    ModuleHead,
    ReLUHead,
    ValueMatrix,
    VocabularyHead,
)
from attractor.margin.selection import optimal_tokens
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens
from attractor.training import normalized_gradient_descent, train, validation

STEP = normalized_gradient_descent(0.1)


def data(labels=None):
    random = np.random.default_rng(3)
    keys = random.normal(size=(2, 3, 4, 5)) / np.sqrt(5)
    signs = np.where(random.random((2, 3)) < 0.5, -1.0, 1.0)
    return Tokens(keys, random.normal(size=(2, 3, 5)), signs if labels is None else labels)


def network():
    return ModuleHead(eqx.nn.MLP(5, "scalar", 4, 1, jnp.tanh, key=jax.random.key(0)), 5)


def huber(prediction, target):
    error = jnp.abs(prediction - target)
    return jnp.where(error < 1, error**2 / 2, error - 0.5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("head", "loss", "labels"),
    [
        (ReLUHead(np.random.default_rng(0).normal(size=(2, 5, 6))), "logistic", None),
        (ConcaveHead(np.eye(5)[0], [0.1, 0.2]), "exponential", None),
        (ValueMatrix(np.eye(5)[:, :2], LinearHead([1.0, -1.0])), "linear", None),
        (network(), "logistic", None),
        (VocabularyHead(np.eye(5)[:3]), "cross_entropy", [[0, 1, 2], [2, 2, 0]]),
        (LinearHead(np.eye(5)[0]), "squared", [[0.1, 0.2, -0.1], [0.3, 0.0, 0.1]]),
        (LinearHead(np.eye(5)[0]), huber, [[0.1, 0.2, -0.1], [0.3, 0.0, 0.1]]),
    ],
    ids=["relu", "concave", "value matrix", "module", "cross entropy", "squared", "function"],
)
def test_training_lowers_the_loss_and_can_be_verified(head, loss, labels):
    tokens = data(labels)
    run = train(tokens, head, STEP, steps=60, seeds=2, loss=loss)
    start, end = (run.data["loss"].isel(step=place).to_numpy() for place in (0, -1))
    assert (end < start).all()
    own = head if head.instances is None else head.for_instances(np.array([1]))
    alone = train(tokens[1:], own, STEP, steps=60, seeds=2, loss=loss)
    np.testing.assert_array_equal(alone.W()[0], run.W()[1])
    verdict = verify(run)
    assert np.isfinite(verdict.data["selected_probability"]).all()
    # Tokens have a score only where the loss falls with the margin of one prediction.
    has_scores = loss in ("logistic", "exponential", "linear")
    assert ("predicted" in verdict.data) == has_scores
    assert str(verdict)


def test_a_concave_head_keeps_the_mixture_that_solves_its_problem():
    """With orthonormal tokens, the best weights are ``gamma / (2 lambda)`` put on the simplex.

    *Transformers as Support Vector Machines*, several tokens under a concave head.
    """
    gamma, penalty = np.array([1.0, 0.8, 0.1, -0.5]), 0.5
    tokens = Tokens(np.eye(4)[None], np.ones((1, 1)), [1.0])
    start = np.zeros((4, 1))
    head = ConcaveHead(gamma, penalty)
    run = train(
        tokens, head, normalized_gradient_descent(0.01), steps=4000, initial=start, loss="linear"
    )
    scores = run.W()[0, 0, :, 0]
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    # The projection of gamma / (2 lambda) = gamma on the simplex: (0.6, 0.4, 0, 0).
    np.testing.assert_allclose(weights, [0.6, 0.4, 0.0, 0.0], atol=0.01)


def test_a_squared_loss_reaches_a_target_that_one_token_meets():
    random = np.random.default_rng(1)
    keys, queries = random.normal(size=(3, 4, 5)), random.normal(size=(3, 5))
    v = random.normal(size=5)
    highest = (keys @ v).argmax(-1)
    tokens = Tokens(keys, queries, (keys @ v).max(-1))
    run = train(tokens, LinearHead(v), STEP, steps=2000, seeds=2, loss="squared")
    assert (run.data["attended"].isel(step=-1).to_numpy()[0, :, :, 0] == highest).all()
    assert (run.data["loss"].isel(step=-1) < 1e-40).all()  # rounding of the output ends at 1e-32
    scores = tokens.scores(run.W()[0, 0])[:, 0]
    assert (np.partition(scores, -2)[:, -1] - np.partition(scores, -2)[:, -2]).min() > 50


@pytest.mark.parametrize(
    ("head", "loss", "labels", "words"),
    [
        (VocabularyHead(np.eye(5)), "logistic", None, "head: it gives 5 logits"),
        (LinearHead(np.ones(5)), "cross_entropy", [[0, 1, 2]] * 2, "head: it gives one number"),
        (VocabularyHead(np.eye(5)[:2]), "cross_entropy", [[0, 1, 2]] * 2, "labels: .*from 0 to 1"),
        (LinearHead(np.ones(5)), lambda f, y: f * jnp.ones(2), None, "loss: .*of shape"),
    ],
)
def test_heads_losses_and_labels_that_do_not_fit(head, loss, labels, words):
    from attractor.attention import get_loss

    tokens = data(labels)
    head = validation.check_head(head, tokens)
    with pytest.raises(InvalidInputError, match=words):
        validation.check_targets(head, tokens, get_loss(loss))


def test_a_module_becomes_a_head():
    module = eqx.nn.MLP(5, "scalar", 4, 1, key=jax.random.key(0))
    head = validation.check_head(module, data())
    assert isinstance(head, ModuleHead) and head.classes is None
    assert optimal_tokens(data(), module) == optimal_tokens(data(), head)
    with pytest.raises(InvalidInputError, match="vector of dimension 5"):
        validation.check_head(eqx.nn.MLP(4, "scalar", 4, 1, key=jax.random.key(0)), data())
    with pytest.raises(InvalidInputError, match="list is not a head"):
        validation.check_head([1.0], data())
