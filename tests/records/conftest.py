"""Runs along every axis, each trained once."""

import numpy as np
import pytest

import attractor as at
from attractor.corpora import Corpus, train_two_stages
from attractor.corpora.linear import EmbeddedContexts, linear_regularization_path, train_linear
from attractor.models import TextTransformerConfig, train_classifier
from attractor.models.classification_data import ClassificationData, Examples
from attractor.prompts.regression import RegressionTask, train_in_context

RATE = 0.5


@pytest.fixture(scope="session")
def tokens():
    rng = np.random.default_rng(3)
    keys, labels = rng.standard_normal((2, 3, 4, 3)), np.sign(rng.standard_normal((2, 3)))
    return at.Tokens(keys, rng.standard_normal((2, 3, 3)), labels)


@pytest.fixture(scope="session")
def head():
    return at.LinearHead(np.array([1.0, -0.5, 0.25]))


@pytest.fixture(scope="session", params=["step", "radius", "time", "logarithmic_time"])
def any_run(request, tokens, head):
    """A run of attention along each axis that records may have."""
    if request.param == "step":
        optimizer = at.normalized_gradient_descent(RATE)
        return at.train(tokens, head, optimizer, steps=60, seeds=2, weights="all")
    if request.param == "radius":
        return at.regularization_path(tokens, head, radii=np.geomspace(0.5, 60, 8))
    if request.param == "time":
        return at.gradient_flow(tokens, head, time=300.0, weights="all")
    return at.gradient_flow(tokens, head, log_time=9.0, weights="all")


@pytest.fixture(scope="session")
def any_verdict(any_run):
    return at.verify(any_run)


@pytest.fixture(scope="session")
def linear_runs():
    contexts = EmbeddedContexts(np.eye(3)[None], [[[0.5, 0.5, 0.0], [0, 1.0, 0], [0, 0.25, 0.75]]])
    return {
        "linear trajectory": train_linear(contexts, at.gradient_descent(RATE), steps=9),
        "linear path": linear_regularization_path(contexts, radii=[1.0, 2.0, 4.0]),
    }


@pytest.fixture(scope="session")
def stored_runs(linear_runs):
    """A run of each kind but that of attention."""
    corpora = [
        Corpus.from_sentences([["a", "b"], ["b", "c"], ["c", "a", "b"]]),
        Corpus.from_sentences(
            [["x", "z"], ["z", "y", "x"], ["y", "x"]], counts=[1.0, 2.0, 0.5], context_length=2
        ),
    ]
    texts = Examples(np.arange(12).reshape(4, 3) % 5, [0, 1, 0, 1])
    config = TextTransformerConfig(vocabulary=5, length=3, width=4, blocks=1, heads=2, hidden=4)
    return linear_runs | {
        "two stages": train_two_stages(corpora, steps=(5, 5)),
        "classifiers": train_classifier(
            config, ClassificationData(texts, test=texts), _optax(), epochs=2, batch=2, seeds=2
        ),
        "in context": train_in_context(
            RegressionTask(np.eye(2), label_noise=0.1),
            length=8,
            steps=4,
            batch=4,
            seeds=2,
            held_out=4,
        ),
    }


def _optax():
    import optax

    return optax.adam(1e-2)
