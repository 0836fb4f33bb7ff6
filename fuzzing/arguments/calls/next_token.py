"""Calls of ``attractor.corpora`` and of its generators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attractor import corpora as nt
from attractor.corpora import generators
from fuzzing.arguments import example_files as given, examples as ex
from fuzzing.arguments.table import Call

TABLE = "array none"


def calls() -> Iterator[Call]:
    """One call of each."""
    sentences = [["a", "b", "c"], ["b", "c"]]
    names = {
        "vocabulary": "sequence none array texts mask text",
        "sentences": "sequence array nested texts",
    }
    names |= {"contexts": "sequence array nested texts", "labels": "sequence array texts text"}
    held = {"contexts": "labels sentences", "labels": "contexts tokens"}
    held |= {"sentences": "tokens vocabulary", "vocabulary": "sentences"}
    yield Call(
        nt.Corpus,
        tokens=np.array([0, 1, 2, 1, 2]),
        starts=np.array([0, 3, 5]),
        vocabulary=["a", "b", "c"],
        counts=np.array([1, 2]),
        takes={
            "tokens": "array objects",
            "starts": "array objects",
            "vocabulary": "sequence count none array texts objects text",
            "counts": "array none",
            "context_length": "count none",
        },
        blames={"counts": "starts", "vocabulary": "tokens"},
    )
    yield Call(
        nt.Corpus.from_samples, contexts=[["a", "b"], ["b"]], labels=["b", "a"], takes=names,
        blames=held,
    )  # fmt: skip
    yield Call(
        nt.Corpus.from_sentences,
        sentences=sentences,
        takes=names,
        blames=held,
    )
    yield Call(nt.Corpus.context, self=ex.CORPUS, sample=1)
    yield Call(nt.Corpus.words, self=ex.CORPUS, sample=1)
    yield Call(nt.Collocation.explaining, self=ex.COLLOCATION, corpus=ex.CORPUS)
    yield Call(nt.CorpusStructure.assumption, self=ex.STRUCTURE, name="collocation")
    yield Call(nt.CorpusStructure.summary, self=ex.STRUCTURE)
    yield Call(nt.PartialOrders.classes, self=ex.ORDERS, query=1)
    yield Call(nt.QueryGraphs.of, self=ex.GRAPHS, query=1)
    yield Call(
        nt.QueryGraphs.component_of, self=ex.GRAPHS, query=np.array([1, 2]), token=np.array([1, 0])
    )
    yield Call(nt.are_orthonormal, embeddings=ex.EMBEDDINGS)
    yield Call(nt.orthonormality_error, embeddings=ex.EMBEDDINGS)
    yield Call(nt.attention_problem, orders=ex.ORDERS, takes={"embeddings": TABLE})
    yield Call(nt.feed_forward_problem, collocation=ex.COLLOCATION, takes={"embeddings": TABLE})
    yield Call(nt.attention_solutions, run=ex.TWO_STAGES)
    yield Call(nt.feed_forward_solutions, run=ex.TWO_STAGES)
    yield Call(nt.measure_two_stages, run=ex.TWO_STAGES)
    yield Call(nt.attention_tokens, samples=ex.SAMPLES, embeddings=ex.EMBEDDINGS)
    yield Call(nt.collocation, corpus=ex.CORPUS)
    yield Call(nt.complete_orders_solution, orders=ex.ORDERS)
    yield Call(nt.corpus_structure, corpus=ex.CORPUS)
    yield Call(nt.TwoStageTrajectory.save, self=ex.TWO_STAGES, path="run.nc")
    yield Call(nt.TwoStageTrajectory.load, path=given.TWO_STAGE_FILE)
    yield Call(nt.direction_distance, W=ex.W, solution=ex.W)
    yield Call(nt.distinct_samples, corpus=ex.CORPUS)
    yield Call(nt.gaussian, size=3, dimension=4)
    yield Call(nt.one_hot, size=3)
    yield Call(nt.partial_orders, corpus=ex.CORPUS, collocation=ex.COLLOCATION)
    yield Call(nt.realizable_part, corpus=ex.CORPUS)
    yield Call(nt.token_priority_graphs, corpus=ex.CORPUS)
    trained = {
        "embeddings": TABLE, "initial_scales": "sequence array", "record": "sequence array none",
    }  # fmt: skip
    yield Call(nt.train_two_stages, corpora=ex.CORPUS, steps=(2, 2), takes=trained)
    yield Call(generators.order_first_corpus, vocabulary=8)
    yield Call(generators.rolled_out_corpus, vocabulary=5)
