"""One run of each kind, which tests share that need some run and no certain one.

Each is made when a test first asks for it, in the usual size, from seed 1. Nobody may change it:
its arrays cannot be written to; ``dataclasses.replace`` and ``data.copy(deep=True)`` make another.
All of it is in functions, so that a test depends on no more of the library than the run it names.
"""

from functools import cache

import numpy as np
import optax
from sizes import USUAL, drawn

import attractor as at

STEP = at.normalized_gradient_descent(0.3)


def fixed(run):
    """The run, whose arrays can no longer be written to."""
    for array in run.data.data_vars.values():
        array.values.setflags(write=False)
    return run


@cache
def trajectory():
    """Two data sets by two seeds, of which one ends at tokens that are not the best."""
    return fixed(at.train(*drawn(USUAL), STEP, steps=300, seeds=2, seed=1, weights="all"))


@cache
def path():
    """The regularization path of the same data sets."""
    return fixed(at.regularization_path(*drawn(USUAL), radii=np.geomspace(0.5, 60, 8)))


@cache
def flow():
    """Their gradient flow."""
    return fixed(at.gradient_flow(*drawn(USUAL), time=300.0, weights="all"))


@cache
def logarithmic_flow():
    """Their gradient flow, recorded over the logarithm of time."""
    return fixed(at.gradient_flow(*drawn(USUAL), log_time=9.0, weights="all"))


@cache
def verdict(run):
    """The verdict on one of the runs above, by its function."""
    return fixed(at.verify(run()))


EIGHT = USUAL._replace(instances=8)


@cache
def bias_methods():
    """Three optimizers and what they train."""
    per_factor = at.normalized_gradient_descent(0.3, per_factor=True)
    return (
        at.maps.bias.Method("normalized GD", STEP),
        at.maps.bias.Method("keys and queries", per_factor, "KQ"),
        at.maps.bias.Method("signs", at.sign_descent(0.1), steps=3200),
    )


@cache
def bias_matrix():
    """Which of them maximizes which margin, on eight data sets."""
    return fixed(at.maps.bias.bias_matrix(*drawn(EIGHT), methods=bias_methods(), steps=400))


LINEAR = {"steps": 7, "initial_scale": 0.4, "record": [0, 7]}


@cache
def embedded_contexts():
    """Three data sets of embedded contexts."""
    sizes = {"contexts": 5, "dimension": 6, "classes": 4, "support": 2}
    return at.corpora.linear.random_contexts(3, **sizes, seed=1)


@cache
def linear_trajectory():
    """Linear decoders of them, from three seeds each."""
    data, rule = embedded_contexts(), at.normalized_gradient_descent(0.1)
    return fixed(at.corpora.linear.train_linear(data, rule, seeds=3, seed=1, **LINEAR))


@cache
def linear_path():
    """The regularization path of the same decoders."""
    find = at.corpora.linear.linear_regularization_path
    return fixed(find(embedded_contexts(), radii=[0.01, 1, 10]))


@cache
def two_stages():
    """Two corpora of other vocabularies, counts and contexts."""
    corpora = [
        at.corpora.Corpus.from_sentences([["a", "b"], ["b", "c"], ["c", "a", "b"]]),
        at.corpora.Corpus.from_sentences(
            [["x", "z"], ["z", "y", "x"], ["y", "x"]], counts=[1.0, 2.0, 0.5], context_length=2
        ),
    ]
    run = at.corpora.train_two_stages(corpora, steps=(20, 20))
    fixed(run.feed_forward), fixed(run.attention)
    return run


ADAM = optax.adam(1e-2)  # equal arguments share one compiled step
CLASSIFIER = {"epochs": 6, "batch": 20, "seeds": 2, "seed": 3}


@cache
def text_config():
    """A small transformer."""
    return at.models.TextTransformerConfig(
        vocabulary=12, length=5, width=8, blocks=1, heads=2, hidden=16, dropout=0.1
    )


@cache
def classified_texts():
    """Texts of the class that their only word below four tells."""
    rng = np.random.default_rng(0)

    def some(count):
        ids = rng.integers(4, 12, (count, 5))
        labels = rng.integers(0, 2, count)
        ids[np.arange(count), rng.integers(1, 4, count)] = 2 * labels + rng.integers(0, 2, count)
        return at.models.Examples.of_lengths(ids, labels, rng.integers(4, 6, count))

    return at.models.ClassificationData(some(110), some(100), some(100), {"source": "made up"})


@cache
def text_classifiers():
    """Classifiers of those texts, from two seeds."""
    return fixed(at.models.train_classifier(text_config(), classified_texts(), ADAM, **CLASSIFIER))


IN_CONTEXT = {"length": 8, "batch": 4, "seeds": 2, "held_out": 4}


@cache
def in_context():
    """In-context regression, from two seeds."""
    task = at.prompts.regression.RegressionTask(np.eye(2), label_noise=0.1)
    return fixed(at.prompts.regression.train_in_context(task, steps=4, **IN_CONTEXT))
