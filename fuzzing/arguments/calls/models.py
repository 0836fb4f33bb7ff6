"""Calls of ``attractor.models``."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np

from attractor import models
from fuzzing.arguments import example_files as given
from fuzzing.arguments.table import Call, Lazy

KEY = Lazy(lambda: jax.random.key(0))


def calls() -> Iterator[Call]:
    """One call of each."""
    inputs, labels = np.array([[1, 2], [2, 3]], dtype=np.int32), np.array([0, 1])
    classes = {"inputs": "array", "labels": "array mask"}
    yield Call(models.Examples, inputs=inputs, labels=labels, takes=classes)
    yield Call(
        models.Examples.of_lengths,
        inputs=inputs,
        labels=labels,
        lengths=np.array([1, 2]),
        blames={"inputs": "lengths"},
        takes=classes,
    )
    yield Call(models.ClassificationData, train=given.EXAMPLES)
    yield Call(models.ClassifierTrajectory.model, self=given.CLASSIFIER, seed=0)
    yield Call(models.ClassifierTrajectory.save, self=given.CLASSIFIER, path="run.nc")
    yield Call(models.ClassifierTrajectory.load, path=given.CLASSIFIER_FILE)
    typed = {"dtype": "text"}
    yield Call(models.TextTransformer, config=given.TEXT_CONFIG, key=KEY, takes=typed)
    yield Call(models.VisionTransformer, config=given.VISION_CONFIG, key=KEY, takes=typed)
    yield Call(models.build_model, config=given.TEXT_CONFIG, key=KEY, takes=typed)
    yield Call(models.TextTransformerConfig, width=8, heads=2)
    yield Call(models.VisionTransformerConfig, width=8, heads=2)
    yield Call(models.TextTransformerConfig.from_json, text=given.TEXT_CONFIG_TEXT)
    yield Call(models.head_matrices, model=given.MODEL)
    yield Call(models.load_model, path=given.MODEL_FILE)
    yield Call(models.save_model, path="model.safetensors", model=given.MODEL)
    yield Call(models.search_learning_rate, score=given.SCORE, guess=0.1, tries=3)
    yield Call(
        models.train_classifier, config=given.TEXT_CONFIG, data=given.CLASSIFICATION,
        optimizer=given.OPTAX, epochs=1, batch=2,
        blames={"learning_rate": "optimizer"},  # which has its own here
    )  # fmt: skip
