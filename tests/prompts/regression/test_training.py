"""Gradients of a step against those of a plain program, by complex steps in high precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.prompts.regression.batches import PromptLaw, derived_key, draw_prompts, token_normals
from attractor.prompts.regression.task import RegressionTask
from attractor.prompts.regression.training import (
    AllBlocks,
    Factors,
    InContextTraining,
    KeyQueryAndLabel,
)
from attractor.support.precision import double_precision
from attractor.training.optimizers import gradient_descent

D, LENGTH, BATCH, STEP = 3, 5, 6, 4
COVARIANCE = np.array([[1.0, 0.3, 0.0], [0.3, 0.8, -0.2], [0.0, -0.2, 1.5]])
QUERIES = np.diag([1.0, 2.0, 0.0])  # one input never varies in queries
KEY = np.array([3, 9], np.uint32)


def training(model, attention="softmax", **changes):
    settings = {
        "model": model, "attention": attention, "draw": "tokens", "length": LENGTH, "batch": BATCH,
        "half": False, "optimizer": gradient_descent(1e-3), "dtype": "float64",
    }  # fmt: skip
    return InContextTraining(**(settings | changes))


def law(noise=0.2):
    task = RegressionTask(COVARIANCE, QUERIES, weight_variance=0.7, label_noise=noise,
                          query_noise=0.1)  # fmt: skip
    return PromptLaw.of(task)


@jax.jit
def draws(law, key):
    """Queries of the step, and normal numbers for its tokens."""
    key = derived_key(key, STEP)
    normals = token_normals(derived_key(key, 1), jnp.arange(BATCH), 2, LENGTH)
    return draw_prompts(law, derived_key(key, 0), BATCH), normals


def drawn(noise):
    """The tokens, queries and labels of the step, in extended precision."""
    with double_precision():
        prompts, normals = draws(law(), jnp.asarray(KEY))
    normals = np.swapaxes(np.asarray(normals, np.float64), 1, 2)
    inputs = normals[..., :D] @ np.linalg.cholesky(COVARIANCE).T
    labels = np.einsum("pld,pd->pl", inputs, np.asarray(prompts.weights))
    labels = labels + np.sqrt(noise) * normals[..., D]
    tokens = np.concatenate([inputs, labels[..., None]], -1)
    queries = np.concatenate([np.asarray(prompts.queries), np.zeros((BATCH, 1))], -1)
    return [a.astype(np.longdouble) for a in (tokens, queries, np.asarray(prompts.labels))]


def plain_loss(parameters, tokens, queries, labels, attention):
    """The loss of four linear layers a head, as a program without blocks would write it."""
    prediction = 0
    for h in range(len(parameters["keys"])):
        keys = tokens @ parameters["keys"][h].T
        values = tokens @ parameters["values"][h].T
        scores = np.einsum("pla,pa->pl", keys, queries @ parameters["queries"][h].T)
        scores = scores / np.sqrt(np.longdouble(D + 1))
        if attention == "softmax":
            weights = np.exp(scores - scores.real.max(-1, keepdims=True))
            weights = weights / weights.sum(-1, keepdims=True)
        else:
            weights = scores / LENGTH
        mixed = np.einsum("pl,pla->pa", weights, values)
        prediction = prediction + mixed @ parameters["output"][h]
    return ((prediction - labels) ** 2).mean()


compiled = jax.jit(InContextTraining.gradient, static_argnums=0)


def gradient(objective, parameters, noise=0.2, step=STEP):
    with double_precision():
        found = compiled(objective, parameters, law(noise), jnp.asarray(KEY), step)
    return jax.tree.map(np.asarray, found)


def layers(seed, scale=2):
    parameters = Factors(D, 2).default(np.random.default_rng(seed))
    return {name: scale * array for name, array in parameters.items()}


CASES = {"softmax": (0.2, {}), "linear": (0.0, {"attention": "linear", "half": True})}


@pytest.mark.parametrize(("noise", "changes"), CASES.values(), ids=CASES)
def test_gradient_of_layers_is_that_of_the_plain_program(noise, changes):
    objective, parameters = training(Factors(D, 2), **changes), layers(0)
    found, data = gradient(objective, parameters, noise), drawn(noise)
    factor = 0.5 if objective.half else 1
    high = {name: array.astype(np.clongdouble) for name, array in parameters.items()}
    h = np.longdouble(1e-25)  # the loss is analytic: no difference is taken, and nothing cancels
    for name, array in parameters.items():
        for place in np.ndindex(array.shape):
            moved = high[name].copy()
            moved[place] += 1j * h
            slope = plain_loss(high | {name: moved}, *data, objective.attention).imag / h
            assert found[name][place] == pytest.approx(float(factor * slope), rel=0, abs=1e-13)


def test_blocks_descend_as_the_layers_that_have_them():
    objective, parameters = training(Factors(D, 2)), layers(3)
    with double_precision():
        blocks = jax.tree.map(np.asarray, jax.jit(objective.model.blocks)(parameters))
        every = gradient(training(AllBlocks(D, 2)), blocks._asdict())
        pulled = jax.jit(objective.model.gradient)(parameters, blocks._replace(**every))
    found = gradient(objective, parameters)
    for name in parameters:
        np.testing.assert_allclose(found[name], pulled[name], atol=1e-14)
    zero = np.zeros((2, D))
    two = blocks._replace(label_row=zero, value_inputs=zero)._asdict()
    of_two = {name: two[name] for name in ("key_query", "value_label")}
    same = gradient(training(AllBlocks(D, 2)), two)
    for name, found in gradient(training(KeyQueryAndLabel(D, 2)), of_two).items():
        np.testing.assert_allclose(found, same[name], atol=1e-14)


@pytest.mark.slow
def test_single_precision_within_prompts_is_close():
    parameters = layers(4, scale=1)
    exact = gradient(training(Factors(D, 2)), parameters)
    single = gradient(training(Factors(D, 2), dtype="float32"), parameters)
    for name in parameters:
        np.testing.assert_allclose(single[name], exact[name], atol=1e-6)
        assert (single[name] != exact[name]).any()


def test_every_step_has_prompts_of_its_own():
    found = [gradient(training(Factors(D, 2)), layers(5), step=step)["keys"] for step in (0, 1)]
    assert (found[0] != found[1]).all()
