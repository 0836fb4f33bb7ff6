"""Gradients of a step against automatic differentiation and differences in high precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.precision import double_precision
from attractor.prompt.regression.batches import draw_prompts
from attractor.prompt.regression.drawing import derived_key, token_normals
from attractor.prompt.regression.models import AllBlocks, Factors, KeyQueryAndLabel
from attractor.prompt.regression.task import RegressionTask
from attractor.prompt.regression.training import InContextTraining
from attractor.training.optimizers import gradient_descent

D, LENGTH, BATCH, STEP = 3, 5, 6, 4
COVARIANCE = np.array([[1.0, 0.3, 0.0], [0.3, 0.8, -0.2], [0.0, -0.2, 1.5]])
QUERIES = np.diag([1.0, 2.0, 0.0])  # one input never varies in queries
KEY = np.array([3, 9], np.uint32)


def training(model, attention="softmax", noise=0.2, **changes):
    task = RegressionTask(COVARIANCE, QUERIES, weight_variance=0.7, label_noise=noise,
                          query_noise=0.1)  # fmt: skip
    settings = {
        "task_digest": repr((noise,)), "model": model, "attention": attention, "draw": "tokens",
        "length": LENGTH, "batch": BATCH, "half": False, "optimizer": gradient_descent(1e-3),
        "dtype": "float64",
    }  # fmt: skip
    return InContextTraining(task=task, **(settings | changes))


def drawn(training):
    """The tokens, queries and labels of the step, in double precision."""
    task, step_key = training.task, derived_key(jnp.asarray(KEY), STEP)
    prompts = draw_prompts(task, derived_key(step_key, 0), BATCH)
    normals = token_normals(derived_key(step_key, 1), jnp.arange(BATCH), 2, LENGTH)
    normals = np.swapaxes(np.asarray(normals, np.float64), 1, 2)
    inputs = normals[..., :D] @ np.linalg.cholesky(COVARIANCE).T
    weights = np.asarray(prompts.weights)
    labels = np.einsum("pld,pd->pl", inputs, weights)
    labels = labels + np.sqrt(task.label_noise) * normals[..., D]
    tokens = np.concatenate([inputs, labels[..., None]], -1)
    queries = np.concatenate([np.asarray(prompts.queries), np.zeros((BATCH, 1))], -1)
    return tokens, queries, np.asarray(prompts.labels)


def plain_loss(xp, parameters, tokens, queries, labels, attention):
    """The loss of four linear layers a head, as a program without blocks would write it."""
    prediction = 0
    for h in range(len(parameters["keys"])):
        keys = tokens @ parameters["keys"][h].T
        values = tokens @ parameters["values"][h].T
        scores = xp.einsum("pla,pa->pl", keys, queries @ parameters["queries"][h].T)
        scores = scores / xp.sqrt(xp.asarray(D + 1, dtype=scores.dtype))
        if attention == "softmax":
            weights = xp.exp(scores - scores.max(-1, keepdims=True))
            weights = weights / weights.sum(-1, keepdims=True)
        else:
            weights = scores / LENGTH
        mixed = xp.einsum("pl,pla->pa", weights, values)
        prediction = prediction + mixed @ parameters["output"][h]
    return ((prediction - labels) ** 2).mean()


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_gradient_of_layers_is_that_of_the_plain_program(attention):
    objective = training(Factors(D, 2), attention)
    parameters = objective.model.default(np.random.default_rng(0))
    parameters = {name: 2 * array for name, array in parameters.items()}
    with double_precision():
        found = objective.gradient(parameters, jnp.asarray(KEY), STEP)
        data = drawn(objective)
        expected = jax.grad(lambda p: plain_loss(jnp, p, *data, attention))(parameters)
    exact = [array.astype(np.longdouble) for array in data]
    rng = np.random.default_rng(1)
    for name, array in parameters.items():
        np.testing.assert_allclose(found[name], expected[name], atol=1e-14, rtol=1e-12)
        direction = rng.standard_normal(array.shape)
        h = np.longdouble(1e-6)
        high = {key: value.astype(np.longdouble) for key, value in parameters.items()}
        ends = [
            plain_loss(np, high | {name: high[name] + sign * h * direction}, *exact, attention)
            for sign in (1, -1)
        ]
        difference = float((ends[0] - ends[1]) / (2 * h))
        along = float((np.asarray(found[name]) * direction).sum())
        assert along == pytest.approx(difference, rel=1e-9, abs=1e-11)


def test_gradient_without_label_noise_and_with_the_half():
    objective = training(Factors(D, 1), noise=0.0, half=True)
    parameters = objective.model.default(np.random.default_rng(2))
    with double_precision():
        found = objective.gradient(parameters, jnp.asarray(KEY), STEP)
        data = drawn(objective)
        expected = jax.grad(lambda p: plain_loss(jnp, p, *data, "softmax") / 2)(parameters)
    for name in parameters:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-14, rtol=1e-12)


def test_blocks_descend_as_the_layers_that_have_them():
    rng = np.random.default_rng(3)
    layers = training(Factors(D, 1))
    parameters = layers.model.default(rng)
    with double_precision():
        blocks = layers.model.blocks(parameters)
        every = training(AllBlocks(D, 1)).gradient(blocks._asdict(), jnp.asarray(KEY), STEP)
        pulled = layers.model.gradient(parameters, type(blocks)(**every))
        found = layers.gradient(parameters, jnp.asarray(KEY), STEP)
        two = blocks._replace(label_row=jnp.zeros((1, D)), value_inputs=jnp.zeros((1, D)))
        of_two = training(KeyQueryAndLabel(D, 1)).gradient(
            {"key_query": two.key_query, "value_label": two.value_label}, jnp.asarray(KEY), STEP
        )
        same = training(AllBlocks(D, 1)).gradient(two._asdict(), jnp.asarray(KEY), STEP)
    for name in parameters:
        np.testing.assert_allclose(found[name], pulled[name], atol=1e-15)
    for name in of_two:
        np.testing.assert_allclose(of_two[name], same[name], atol=1e-15)


def test_single_precision_within_prompts_is_close():
    parameters = Factors(D, 1).default(np.random.default_rng(4))
    with double_precision():
        exact, single = (
            training(Factors(D, 1), dtype=dtype).gradient(parameters, jnp.asarray(KEY), STEP)
            for dtype in ("float64", "float32")
        )
    for name in parameters:
        np.testing.assert_allclose(single[name], exact[name], atol=1e-6)
        assert (np.asarray(single[name]) != np.asarray(exact[name])).any()


def test_every_step_has_prompts_of_its_own():
    objective = training(Factors(D, 1))
    parameters = objective.model.default(np.random.default_rng(5))
    with double_precision():
        found = [objective.gradient(parameters, jnp.asarray(KEY), step)["keys"] for step in (0, 1)]
    assert (np.asarray(found[0]) != np.asarray(found[1])).all()
