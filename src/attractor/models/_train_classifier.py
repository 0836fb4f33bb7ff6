"""``train_classifier``: a config and data in, models and accuracies out; their learning rates."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import optax
from jaxtyping import Float, Int

from attractor.models.classification_data import ClassificationData
from attractor.models.classifier_training import (
    BEST,
    LAST,
    Augment,
    ClassifierData,
    ClassifierState,
    ClassifierTraining,
    EarlyStop,
    Labeled,
    Prepare,
    Transformation,
)
from attractor.models.classifier_trajectory import ClassifierTrajectory, classifier_data
from attractor.models.configuration import TextTransformerConfig
from attractor.models.transformers import Config, build_model, model_shapes, named_weights
from attractor.support.checks import (
    MOST_STEPS,
    as_number,
    check_choice,
    check_count,
    check_flags,
    check_function,
    check_kind,
    check_kinds,
    check_number,
)
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory, require_memory_for
from attractor.support.precision import double_precision
from attractor.support.progress import progress_bar
from attractor.support.randomness import check_seed, keys, seeded
from attractor.training import loop, validation
from attractor.training.optimizers.checks import check_learning_rate
from attractor.training.programs.footprint import size_of
from attractor.training.stored.checkpoint import Checkpoint

_EVALUATION_BATCH = 250

_EPOCH = 128
"""Bytes that an epoch is recorded in, of one seed."""
_WEIGHTS = "initial weights"


def train_classifier(
    config: Config,
    data: ClassificationData,
    optimizer: Transformation | Callable[[Any], Transformation],
    *,
    learning_rate: float | None = None,
    epochs: int,
    batch: int = 100,
    seeds: int = 1,
    seed: int = 0,
    reduction: str = "mean",
    patience: int | None = None,
    target_train_accuracy: float | None = None,
    same_initial_model: bool = False,
    augment: Augment | None = None,
    prepare: Prepare | None = None,
    dtype: str = "float32",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    progress: bool | Callable[[float], None] = False,
) -> ClassifierTrajectory:
    """Trains a transformer as a classifier, from several seeds side by side.

    Descends the cross-entropy of batches with all weights, embeddings and norms among them. Each
    epoch goes once through all examples, in an order that the seed and the epoch determine; if
    the batch does not divide their number, the last batch of an epoch is smaller. The best epoch
    is chosen by the validation examples, never by the test examples.

    Args:
        config: The configuration of the models.
        data: The examples.
        optimizer: Any optax transformation, such as ``mirror_descent(1e-3, p=1.1,
            normalize=False)`` or ``optax.adam(1e-3)``; or, with ``learning_rate``, a function that
            makes one from it, such as ``optax.adam``.
        learning_rate: The rate to make the optimizer from. Calls that differ in it alone share
            one compiled program, so that a search over rates compiles once.
        epochs: Most epochs.
        batch: Examples of a step.
        seeds: Number of runs: seeds ``seed`` to ``seed + seeds - 1``.
        seed: The first seed. Determines the initial model, the order of examples and dropout.
        reduction: ``"mean"`` or ``"sum"`` of the losses of a batch. A sum makes the gradient, and
            with it the step of gradient and mirror descent, as many times longer as the batch has
            examples; the published sentiment runs use it.
        patience: Ends a run after so many epochs without a new best validation accuracy.
        target_train_accuracy: Ends a run at this accuracy on the examples trained on; published
            is 0.995.
        same_initial_model: Whether all runs start from the model of the first seed, as the
            published ones do; they then differ by the order of examples and dropout alone.
        augment: ``augment(key, inputs)``, traced by JAX, gives what the model reads of the inputs
            of a training batch; it takes the place of ``prepare`` there.
        prepare: ``prepare(inputs)``, traced by JAX, gives what the model reads of inputs.
        dtype: ``"float32"`` or ``"float64"``.
        checkpoint: A folder to write to every now and then. The same call resumes from there
            after a crash, and gives the very numbers of a run that was never interrupted.
        checkpoint_every: Seconds between two writes to it.
        progress: Whether to show a progress bar over batches; or a callback that is called with the
            number of batches just done, or restored from the checkpoint.

    Returns:
        Curves, accuracies and models of every seed. A diverged seed has the status ``DIVERGED``
        and keeps its last finite model.

    Raises:
        InvalidInputError: If an argument cannot be used, or the checkpoint is of another run;
            nothing has been trained then.
        FileFormatError: If the checkpoint is damaged.

    Source:
        Julistiono, Tarzanagh, Azizan, "Optimizing Attention with Mirror Descent"
        (arXiv 2410.14581), sentiment of film reviews and images of ten classes.
    """
    check_flags(same_initial_model=same_initial_model)
    check_kinds(config=(config, Config))
    wanted = "Give ClassificationData(train=Examples(...), ...)"
    check_kind("data", data, ClassificationData, wanted)
    _check_optimizer(optimizer, learning_rate)
    for argument, function in (("augment", augment), ("prepare", prepare)):
        if function is not None:
            check_function(argument, function, "Give one, or None")
    batch = check_count("batch", batch)
    seeds = check_count("seeds", seeds)
    check_seed("seed", check_seed("seed", seed) + seeds - 1)
    if batch > len(data.train):
        raise InvalidInputError(
            "batch", f"{batch} is more than all {len(data.train)} examples", "Give fewer"
        )
    per_epoch = -(-len(data.train) // batch)
    epochs = check_count("epochs", epochs, most=MOST_STEPS // per_epoch)
    require_memory_for("epochs", epochs, "epochs", each=_EPOCH, otherwise="Give fewer")
    parameters = size_of(model_shapes(config))
    require_memory(
        "config",
        f"training {parameters / 4:,.0f} parameters",
        needed=ClassifierTraining.copies * parameters,
        remedy=lambda _: "Give a smaller width, fewer blocks or a smaller vocabulary",
    )
    training = ClassifierTraining(
        optimizer=optimizer,
        examples=len(data.train),
        batch=batch,
        reduction=check_choice("reduction", reduction, ("mean", "sum")),
        evaluation_batch=_EVALUATION_BATCH,
        augment=augment,
        prepare=prepare,
    )
    dtype = check_choice("dtype", dtype, ("float32", "float64"))
    validation.check_checkpoint(checkpoint, checkpoint_every)
    stop = _early_stop(patience, target_train_accuracy, data)
    _check_data(config, data, training)
    same = bool(same_initial_model)
    trials = ClassifierTrials(
        training,
        config,
        data,
        learning_rate=learning_rate,
        seed=seed,
        same_initial_model=same,
        dtype=dtype,
    )
    name, chosen = _named_with_settings(optimizer, learning_rate)
    settings = {
        "epochs": epochs,
        "batch": batch,
        "seeds": seeds,
        "seed": seed,
        "reduction": reduction,
        "patience": patience,
        "target_train_accuracy": target_train_accuracy,
        "same_initial_model": same,
        "augment": getattr(augment, "__qualname__", repr(augment)),
        "prepare": getattr(prepare, "__qualname__", repr(prepare)),
        "dtype": dtype,
        "optimizer": chosen,
        "data": dict(data.settings),
    }
    saved = None
    if checkpoint is not None:
        recognized = {"config": config.to_json(), "optimizer name": name, **settings}
        saved = Checkpoint(checkpoint, recognized, data.arrays, checkpoint_every)
    weights = named_weights(model_shapes(config))
    run = functools.partial(
        loop.run,
        training,
        trials,
        seeds,
        training.steps_per_epoch * np.arange(1, epochs + 1),
        last_only=frozenset(prefix + weight for prefix in (BEST, LAST) for weight in weights),
        stop=stop,
        checkpoint=saved,
    )
    if callable(progress):
        records = run(advance=progress, skip=progress)
    else:
        total = seeds * epochs * training.steps_per_epoch
        with progress_bar("training", total, enabled=progress) as advance:
            records = run(advance=advance, skip=advance.skip)
    numbers = np.arange(seed, seed + seeds)
    found, arrays = classifier_data(records, numbers, epochs, training.steps_per_epoch)
    return ClassifierTrajectory(found, config, name, settings, arrays)


def _check_optimizer(optimizer: Any, learning_rate: Any) -> None:
    if learning_rate is not None:
        check_learning_rate(learning_rate)
        if isinstance(optimizer, optax.GradientTransformation) or not callable(optimizer):
            raise InvalidInputError(
                "optimizer",
                f"a {type(optimizer).__name__} has its learning rate already",
                "Give a function that makes one from it, such as optax.adam, or no learning_rate",
            )
        optimizer = optimizer(learning_rate)
    if not isinstance(optimizer, optax.GradientTransformation):
        raise InvalidInputError(
            "optimizer",
            f"{type(optimizer).__name__} is no optax transformation",
            "Give one, such as mirror_descent(1e-3, p=1.1) or optax.adam(1e-3); or a function "
            "that makes one, with learning_rate",
        )
    if getattr(optimizer, "needs", ()):
        raise InvalidInputError(
            "optimizer",
            "it needs more than the gradient of a batch",
            "Give one that does not, such as mirror_descent(1e-3, p=1.1) or optax.adam(1e-3)",
        )


def _named_with_settings(optimizer: Any, learning_rate: float | None) -> tuple[str, dict[str, Any]]:
    """The name of an optimizer and its settings."""
    if learning_rate is None:
        name = getattr(optimizer, "name", "optax transformation")
        return name, dict(getattr(optimizer, "settings", {}))
    made = optimizer(learning_rate)
    name = getattr(made, "name", getattr(optimizer, "__name__", "optax transformation"))
    settings = dict(getattr(made, "settings", {}))
    return name, settings | {"learning_rate": float(learning_rate)}


def _early_stop(patience: Any, target: Any, data: ClassificationData) -> EarlyStop | None:
    if patience is not None:
        patience = check_count("patience", patience)
        if data.validation is None:
            raise InvalidInputError(
                "patience", "there are no validation examples to wait for", "Give some in data"
            )
    if target is not None and not 0 < as_number(target) <= 1:
        raise InvalidInputError(
            "target_train_accuracy", f"{target!r} is no accuracy", "Give one above 0, up to 1"
        )
    return None if patience is None and target is None else EarlyStop(patience, target)


def _check_data(config: Config, data: ClassificationData, training: ClassifierTraining) -> None:
    """Checks that the data have the shapes and classes of the model."""
    for name, examples in (("train", data.train), *data.held_out):
        if (highest := int(examples.labels.max())) >= config.classes:
            raise InvalidInputError(
                name,
                f"a label is {highest}, but the model has {config.classes} classes",
                f"Give labels from 0 to {config.classes - 1}, or a config with more classes",
            )
        prepared = training.prepare is not None or training.augment is not None
        if isinstance(config, TextTransformerConfig) and not prepared:
            _check_ids(name, examples.inputs, config.vocabulary)
    model = model_shapes(config)
    some = jax.tree.map(lambda array: array[:1], Labeled.of(data.train))
    with double_precision():
        jax.eval_shape(training.logits, model, some)
        if training.augment is not None:
            jax.eval_shape(training.logits, model, some, jax.random.key(0))


def _check_ids(name: str, ids: np.ndarray, vocabulary: int) -> None:
    if ids.dtype.kind not in "iu" or ids.ndim != 2:
        raise InvalidInputError(
            name, f"inputs are {ids.dtype} of {ids.ndim} axes", "Give integers (text, token)"
        )
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise InvalidInputError(
            name,
            f"numbers of tokens go from {ids.min()} to {ids.max()}",
            f"Give numbers from 0 to {vocabulary - 1}, or a config with a larger vocabulary",
        )


class ClassifierTrials:
    """Trials of all seeds: returns the initial state and the data of any of them."""

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
        """Stores what trials have in common; see ``train_classifier``."""
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
    """The initial states, one for each key of initial weights."""

    def started(key: jax.Array) -> ClassifierState:
        return training.start(build_model(config, key=key, dtype=dtype), learning_rate)

    return jax.vmap(started)(of_weights)


_FEWEST = 3


@dataclass(frozen=True, eq=False)
class LearningRateSearch:
    """Learning rates that were tried, and their scores.

    Attributes:
        rates: The rates, increasing.
        scores: The score of each, larger is better; NaN where training diverged.
    """

    rates: Float[np.ndarray, "tries"]
    scores: Float[np.ndarray, "tries"]

    @property
    def best(self) -> float:
        """The rate of the highest score; of equal ones the smallest.

        Raises:
            InvalidInputError: If training diverged at every rate.
        """
        return float(self.rates[self._place])

    @property
    def at_edge(self) -> bool:
        """Whether the best rate is the smallest or the largest tried, so that more might be had."""
        return self._place in (0, len(self.rates) - 1)

    @property
    def _place(self) -> int:
        if np.isnan(self.scores).all():
            raise InvalidInputError(
                "guess", "training diverged at every rate tried", "Give a smaller one"
            )
        return int(np.nanargmax(self.scores))


def search_learning_rate(
    score: Callable[[float], float],
    guess: float,
    *,
    tries: int = 6,
    factor: float = math.sqrt(10),
) -> LearningRateSearch:
    """Searches for a learning rate with a fixed number of tries.

    It tries the guess and the rates on both sides of it. While the best rate is at the edge of
    those tried, it goes on beyond that edge; else it halves, on a logarithmic scale, the wider of
    the two gaps beside the best rate.

    Args:
        score: The score of a learning rate, such as accuracy on a validation split; NaN if
            training diverges.
        guess: The first rate tried, positive.
        tries: Number of calls of ``score``, 3 at least.
        factor: The ratio of neighboring rates at first, above 1.

    Raises:
        InvalidInputError: If an argument is out of its range.
    """
    check_function("score", score, "Give a function from a learning rate to a score")
    guess = check_number("guess", guess, above=0.0, example=0.01)
    factor = check_number("factor", factor, above=1.0, example=3.0)
    tries = check_count("tries", tries, _FEWEST)
    score = seeded(purpose="scores of learning rates", alone=False)(score)
    found = {rate: float(score(rate)) for rate in (guess, guess * factor, guess / factor)}
    while len(found) < tries:
        rate = _next(found, factor)
        found[rate] = float(score(rate))
    rates = np.array(sorted(found))
    return LearningRateSearch(rates, np.array([found[rate] for rate in rates]))


def _next(found: dict[float, float], factor: float) -> float:
    rates = sorted(found)
    scores = [-math.inf if math.isnan(found[rate]) else found[rate] for rate in rates]
    best = scores.index(max(scores))
    if best == 0:  # where all diverged, too
        return rates[0] / factor
    if best == len(rates) - 1:
        return rates[-1] * factor
    below, here, above = rates[best - 1 : best + 2]
    wider = below if here / below >= above / here else above
    return math.sqrt(wider * here)
