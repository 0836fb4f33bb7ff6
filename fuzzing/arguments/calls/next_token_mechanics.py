"""Calls of ``attractor.corpora.mechanics``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attractor.corpora import mechanics
from fuzzing.arguments import examples as ex
from fuzzing.arguments.table import Call


def calls() -> Iterator[Call]:
    """One call of each."""
    corpora = {"corpora": ex.CONFLICTING_CORPUS, "embeddings": ex.CONFLICTING_EMBEDDINGS}
    table = {"embeddings": "array none"}
    matrix = np.eye(5)
    # Dependent embeddings may leave no direction.
    yield Call(mechanics.attention_limits, **corpora, takes=table, nan=True)
    yield Call(
        mechanics.ball_path, limits=ex.LIMITS, radii=[1.0, 2.0],
        takes={"radii": "array sequence none"},
    )  # fmt: skip
    yield Call(
        mechanics.chord_test, tokens=ex.MASS_TOKENS, head=ex.MASS_HEAD, chords=3,
        takes={"along": "none sequence"},
    )  # fmt: skip
    yield Call(
        mechanics.conflicting_corpora, instances=1, vocabulary=4, dimension=5, length=3, samples=3
    )
    yield Call(
        mechanics.cyclic_subspace, graphs=ex.CONFLICTING_GRAPHS,
        embeddings=ex.CONFLICTING_EMBEDDINGS,
    )  # fmt: skip
    yield Call(
        mechanics.graph_problem, graphs=ex.CONFLICTING_GRAPHS,
        embeddings=ex.CONFLICTING_EMBEDDINGS, takes=table,
    )  # fmt: skip
    yield Call(mechanics.label_mass_tokens, **corpora, takes=table)
    yield Call(mechanics.vocabulary_tokens, **corpora, takes=table)
    probabilities = {"probabilities": ex.ATTENDED}
    cuts = {"probabilities": "selected", "negligible": "selected"}
    takes = {**table, "probabilities": "array"}
    yield Call(mechanics.local_limits, **corpora, **probabilities, takes=takes, blames=cuts)
    yield Call(
        mechanics.local_priority_graphs,
        corpus=ex.CONFLICTING_CORPUS,
        **probabilities,
        takes=takes,
        blames=cuts,
    )
    yield Call(mechanics.measure_limits, trajectory=ex.MASS_RUN, limits=ex.LIMITS)
    yield Call(mechanics.CyclicSubspace.project, self=ex.SUBSPACE, W=matrix)
    yield Call(mechanics.CyclicSubspace.coordinates, self=ex.SUBSPACE, W=matrix)
    yield Call(
        mechanics.CyclicSubspace.embed, self=ex.SUBSPACE,
        coordinates=np.zeros(1),
    )  # fmt: skip
    yield Call(mechanics.LocalLimits.correlation, nan=True, self=ex.LOCAL_LIMITS, W=matrix)
    yield Call(mechanics.LocalLimits.correlation_outside, nan=True, self=ex.LOCAL_LIMITS, W=matrix)
