"""Calls of ``attractor.corpora.linear``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attractor.corpora import linear
from fuzzing.arguments import example_files as given, examples as ex
from fuzzing.arguments.table import Call

DECODER = np.ones((1, 3, 4))


def calls() -> Iterator[Call]:
    """One call of each."""
    contexts = {"contexts": ex.CONTEXTS}
    yield Call(
        linear.EmbeddedContexts,
        embeddings=np.eye(3),
        probabilities=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
        frequencies=np.ones(3),
        takes={
            "embeddings": "array",
            "probabilities": "array",
            "frequencies": "array none",
            "instance_numbers": "array none",
        },
    )
    yield Call(
        linear.EmbeddedContexts.one_hot,
        embeddings=np.eye(3), labels=np.array([0, 1, 1]), classes=2,
        takes={"embeddings": "array", "labels": "array", "frequencies": "array none"},
        blames={"labels": "classes", "classes": "labels", "embeddings": "labels"},
    )  # fmt: skip
    yield Call(linear.LinearTrajectory.W, self=ex.DECODER)
    yield Call(linear.LinearTrajectory.save, self=ex.DECODER, path="run.nc")
    yield Call(linear.LinearTrajectory.load, path=given.DECODER_FILE)
    yield Call(linear.SupportSpace.project, self=ex.SUPPORT_SPACE, W=DECODER)
    yield Call(linear.compatibility, **contexts)
    yield Call(linear.decoder_problem, **contexts)
    yield Call(linear.finite_part, **contexts)
    yield Call(
        linear.linear_regularization_path, **contexts, radii=[1.0, 2.0],
        takes={"radii": "array sequence none"},
    )  # fmt: skip
    yield Call(
        linear.measure_linear, trajectory=ex.DECODER, solution=DECODER + 1.0,
        takes={"solution": "array nan", "finite": "array nan none"},
    )  # fmt: skip
    yield Call(linear.random_contexts, contexts=4, dimension=5, classes=3, support=2)
    yield Call(linear.separability, **contexts)
    yield Call(linear.support_projection, **contexts, W=DECODER)
    yield Call(linear.support_space, **contexts)
    yield Call(
        linear.train_linear, **contexts, optimizer=ex.STEP, steps=2,
        takes={"initial": "array none", "record": "array sequence none"},
    )  # fmt: skip
