"""The Lipschitz constant of the gradient: published values, and pairs of points."""

import functools

import jax
import numpy as np
import prompt_examples as examples
import pytest

from attractor.analysis import smoothness_constant
from attractor.attention import LinearHead, PromptVector, ReLUHead
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens

PLANE = PromptVector(np.diag([1.0, 1, 0]))


@pytest.mark.parametrize(
    ("keys", "scores", "published"),
    (
        (examples.ONE_SEQUENCE, examples.EQUAL_SCORES, 0.144),
        (examples.ONE_SEQUENCE, examples.UNEQUAL_SCORES, 0.161),
        (examples.THREE_SEQUENCES, examples.THREE_SCORES, 0.0176),
    ),
)
def test_published_step_sizes(keys, scores, published):
    # The third coordinate carries the score; keys are the other two.
    tokens = Tokens(np.dstack([keys, scores]), np.ones((len(keys), 1)), np.ones(len(keys)))
    constant = smoothness_constant(tokens, LinearHead([0, 0, 1]), parameterization=PLANE)
    np.testing.assert_allclose(1 / constant, published, rtol=4e-3)


@functools.partial(jax.jit, static_argnums=0)
@functools.partial(jax.grad, argnums=1)
def slope(loss, W, keys, queries, mask, labels, scores):
    logits = jax.numpy.einsum("ntd,de,nke->nkt", keys, W, queries)
    weights = jax.nn.softmax(jax.numpy.where(mask, logits, -np.inf))
    return loss(labels * (weights @ scores[..., None])[..., 0]).mean()


def gradient(loss, W, tokens, head):
    """Of one data set, by automatic differentiation, which is exact for scores of this size."""
    arrays = tokens.keys, tokens.queries, tokens.mask, tokens.labels, tokens.values @ head.weight
    with jax.enable_x64(True):
        return np.asarray(slope(loss, W, *arrays))


@pytest.mark.parametrize(
    ("name", "loss"),
    (
        ("logistic", lambda u: jax.nn.softplus(-u)),
        ("linear", lambda u: -u),
        ("exponential", lambda u: jax.numpy.exp(-u)),
    ),
)
def test_gradients_of_two_points_differ_by_no_more(name, loss, rng):
    keys, queries = rng.normal(size=(2, 3, 3, 2)), rng.normal(size=(2, 3, 2, 2))
    mask = np.ones((2, 3, 2, 3), bool)
    mask[:, 0, 0, 1] = False
    labels = rng.choice([-1.0, 1], size=(2, 3, 2))
    tokens, head = Tokens(keys, queries, labels, mask), LinearHead(rng.normal(size=(2, 2)))
    constants = smoothness_constant(tokens, head, loss=name)
    for instance, constant in enumerate(constants):
        one, reader = tokens[instance], LinearHead(head.weight[instance])
        np.testing.assert_allclose(smoothness_constant(one, reader, loss=name), constant)
        largest = 0.0
        for size in (0.1, 1, 1, 3):
            W = size * rng.normal(size=(2, 2))
            step = rng.normal(size=(2, 2)) * rng.choice([1e-4, 0.3, 2])
            difference = gradient(loss, W + step, one, reader) - gradient(loss, W, one, reader)
            largest = max(largest, np.linalg.norm(difference) / np.linalg.norm(step))
        assert 0 < largest <= constant


def test_the_constant_has_the_scale_of_its_formula(rng):
    # One row, one token of norm one: spectral norms are those of vectors.
    x, z = np.array([0.6, 0.8]), np.array([2.0])
    tokens = Tokens([[x, 0 * x]], [z], [1])
    np.testing.assert_allclose(
        smoothness_constant(tokens, LinearHead([3, 4])), 4 * (0.25 * 25 + 3 * 5)
    )
    exponential = smoothness_constant(tokens, LinearHead([-3, -4]), loss="exponential")
    np.testing.assert_allclose(exponential, np.exp(5.0) * 4 * (25 + 3 * 5))


def test_what_has_no_constant_is_refused(rng):
    tokens, head = examples.joint(examples.TIGHT)
    for changed, message in (
        ({"parameterization": "KQ"}, "parameterization: no constant bounds"),
        ({"parameterization": "(v, p)"}, "parameterization: no constant bounds"),
        ({"loss": "squared"}, "loss: bounds of the derivatives"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            smoothness_constant(tokens, head, **changed)
    with pytest.raises(InvalidInputError, match="head: the constant is not known"):
        smoothness_constant(tokens, ReLUHead(np.eye(2)))
