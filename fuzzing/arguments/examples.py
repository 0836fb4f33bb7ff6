"""What valid calls are made of, each made when first needed: as small as it can be."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

import attractor as at
from attractor.datasets import unit_tokens
from attractor.next_token import (
    Corpus,
    collocation,
    corpus_structure,
    distinct_samples,
    mechanics,
    partial_orders,
    token_priority_graphs,
    train_two_stages,
)
from attractor.next_token import linear as decoders
from fuzzing.arguments.table import Fresh, Lazy

STEP = Lazy(lambda: at.normalized_gradient_descent(0.1))
W = np.random.default_rng(0).normal(size=(3, 3))

DRAWN = Lazy(lambda: unit_tokens(2, 3, 3, seeds=[0]))
TOKENS = Lazy(lambda: DRAWN.value[0][0])
HEAD = Lazy(lambda: at.LinearHead(DRAWN.value[1].weight[0]))
SELECTION = Lazy(lambda: at.optimal_tokens(TOKENS.value, HEAD.value))
PROBLEM = Lazy(lambda: at.MarginProblem.from_selection(TOKENS.value, SELECTION.value))
SOLUTION = Lazy(lambda: at.solve(PROBLEM.value))
RUN = Lazy(lambda: at.train(TOKENS.value, HEAD.value, STEP.value, steps=4, seeds=2))
VERDICT = Lazy(lambda: at.verify(RUN.value, SOLUTION.value))

CORPUS = Lazy(lambda: Corpus.from_sentences([list("SVOP"), list("VOP"), list("OPP"), list("PSV")]))
COLLOCATION = Lazy(lambda: collocation(CORPUS.value))
ORDERS = Lazy(lambda: partial_orders(CORPUS.value, COLLOCATION.value))
GRAPHS = Lazy(lambda: token_priority_graphs(CORPUS.value))
STRUCTURE = Lazy(lambda: corpus_structure(CORPUS.value))
SAMPLES = Lazy(lambda: distinct_samples(CORPUS.value))
TWO_STAGES = Lazy(lambda: train_two_stages(CORPUS.value, steps=(2, 2)))
EMBEDDINGS = np.eye(4)

CONTEXTS = Lazy(
    lambda: decoders.random_contexts(contexts=3, dimension=4, classes=3, support=2, seed=1)
)
DECODER = Lazy(lambda: decoders.train_linear(CONTEXTS.value, at.gradient_descent(0.1), steps=3))
SUPPORT_SPACE = Lazy(lambda: decoders.support_space(CONTEXTS.value))

CONFLICTING = Lazy(
    lambda: mechanics.conflicting_corpora(1, vocabulary=4, dimension=5, length=3, samples=3)
)
CONFLICTING_CORPUS = Lazy(lambda: CONFLICTING.value.corpora[0])
CONFLICTING_EMBEDDINGS = Lazy(lambda: CONFLICTING.value.embeddings[0])
LIMITS = Lazy(
    lambda: mechanics.attention_limits(CONFLICTING_CORPUS.value, CONFLICTING_EMBEDDINGS.value)
)
CONFLICTING_GRAPHS = Lazy(lambda: token_priority_graphs(CONFLICTING_CORPUS.value))
SUBSPACE = Lazy(
    lambda: mechanics.cyclic_subspace(CONFLICTING_GRAPHS.value, CONFLICTING_EMBEDDINGS.value)
)
MASS = Lazy(
    lambda: mechanics.label_mass_tokens(CONFLICTING_CORPUS.value, CONFLICTING_EMBEDDINGS.value)
)
MASS_TOKENS = Lazy(lambda: MASS.value[0])
MASS_HEAD = Lazy(lambda: MASS.value[1])
MASS_RUN = Lazy(
    lambda: at.train(MASS_TOKENS.value, MASS_HEAD.value, STEP.value, steps=2, loss="negative_log")
)
ATTENDED = Lazy(lambda: np.full((len(CONFLICTING_CORPUS.value.labels), 3), 1 / 3))
LOCAL_LIMITS = Lazy(
    lambda: mechanics.local_limits(
        CONFLICTING_CORPUS.value, CONFLICTING_EMBEDDINGS.value, ATTENDED.value
    )
)
CONSOLE = Fresh(lambda: Console(file=io.StringIO()))
