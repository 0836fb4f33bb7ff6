"""The trials of a classifier: what each seed starts from, and what it is trained on."""

from __future__ import annotations

import functools

import jax
import numpy as np
from jaxtyping import Int

from attractor.models.building import Config, build_model
from attractor.models.classification_data import ClassificationData
from attractor.models.classifier_training import (
    ClassifierData,
    ClassifierState,
    ClassifierTraining,
    Labeled,
)
from attractor.precision import double_precision
from attractor.randomness import keys

_WEIGHTS = "initial weights"


class ClassifierTrials:
    """Trials of all seeds: gives the initial state and the data of any of them."""

    def __init__(
        self,
        training: ClassifierTraining,
        config: Config,
        data: ClassificationData,
        *,
        learning_rate: float | None = None,
        seed: int,
        same_initial_model: bool,
        dtype: str,
    ) -> None:
        """Keeps what trials have in common; see ``train_classifier``."""
        self.training, self.config = training, config
        self.learning_rate = None if learning_rate is None else np.asarray(learning_rate, dtype)
        self.seed, self.same_initial_model, self.dtype = seed, same_initial_model, dtype
        self.train = Labeled.of(data.train)
        self.held_out = {name: Labeled.of(examples) for name, examples in data.held_out}

    def __call__(self, trials: Int[np.ndarray, "block"]) -> tuple[ClassifierState, ClassifierData]:
        """State and data, with a leading axis of trials on every leaf."""
        seeds = self.seed + np.asarray(trials, np.int64)
        drawn = np.full_like(seeds, self.seed) if self.same_initial_model else seeds
        none = np.zeros_like(seeds)
        with double_precision():
            of_weights = keys(drawn, none, _WEIGHTS)
            state = _started(self.training, self.config, self.dtype, of_weights, self.learning_rate)
            order, dropout = (
                np.asarray(jax.random.key_data(keys(seeds, none, purpose)))
                for purpose in ("order of examples", "dropout")
            )

        def repeated(leaf: np.ndarray) -> np.ndarray:
            return np.broadcast_to(leaf, (len(seeds), *leaf.shape))

        train, held_out = jax.tree.map(repeated, (self.train, self.held_out))
        rate = None if self.learning_rate is None else repeated(self.learning_rate)
        return state, ClassifierData(train, held_out, rate, order, dropout)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))  # one operation by one it takes far longer
def _started(
    training: ClassifierTraining,
    config: Config,
    dtype: str,
    of_weights: jax.Array,
    learning_rate: np.ndarray | None,
) -> ClassifierState:
    """The states that the keys of initial weights start."""

    def started(key: jax.Array) -> ClassifierState:
        return training.start(build_model(config, key=key, dtype=dtype), learning_rate)

    return jax.vmap(started)(of_weights)
