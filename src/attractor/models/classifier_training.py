"""Training of a classifier, as the loop sees it: a step is a batch, a record ends an epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt32

from attractor.models.classification_data import Examples
from attractor.models.transformers import Model, named_weights
from attractor.support.errors import TrialStatus
from attractor.training.loop import Objective
from attractor.training.optimizers import Optimizer

BEST, LAST = "best ", "last "
"""Prefixes of the names of weights in the records."""

Transformation = Optimizer | optax.GradientTransformation
Augment = Callable[[jax.Array, Array], Array]
Prepare = Callable[[Array], Array]


class Labeled(NamedTuple):
    """Examples on the device.

    Attributes:
        inputs: The inputs.
        labels: Their classes.
        mask: Where they are real tokens, or None.
    """

    inputs: Any
    labels: Int[Any, "example"]
    mask: Bool[Any, "example token"] | None

    @classmethod
    def of(cls, examples: Examples) -> Labeled:
        """The arrays of examples."""
        return cls(examples.inputs, examples.labels, examples.mask)

    def at(self, places: Int[Array, "batch"]) -> Labeled:
        """The examples at some places."""
        return jax.tree.map(lambda leaf: leaf[places], self)


class ClassifierState(NamedTuple):
    """The state of a trial.

    Attributes:
        model: The model.
        memory: The optimizer's state.
        step: Number of batches done.
        loss: Sum of the losses of this epoch so far, each measured before the step of its batch.
        correct: Number of its examples classified correctly then.
        best_model: The model at the end of the best epoch so far.
        best_accuracy: Its accuracy on the validation examples.
        best_epoch: Its number; 0 before the first whole epoch.
    """

    model: Any
    memory: PyTree
    step: Int[Array, ""]
    loss: Float[Array, ""]
    correct: Int[Array, ""]
    best_model: Any
    best_accuracy: Float[Array, ""]
    best_epoch: Int[Array, ""]


class ClassifierData(NamedTuple):
    """The constants of a trial.

    Attributes:
        train: The examples trained on.
        held_out: Validation and test examples, by name.
        learning_rate: Where the optimizer is made from one, so that all rates share a program.
        order: Raw data of the key of the orders of epochs.
        dropout: Raw data of the key of dropout and augmentation.
    """

    train: Labeled
    held_out: dict[str, Labeled]
    learning_rate: Float[Any, ""] | None
    order: UInt32[Any, "2"]
    dropout: UInt32[Any, "2"]


@dataclass(frozen=True)
class EarlyStop:
    """A stopping criterion.

    Attributes:
        patience: Epochs without a new best accuracy on the validation examples; None for ever.
        target: Accuracy on the examples trained on; None for none.
    """

    patience: int | None
    target: float | None

    def __call__(self, record: dict[str, Array]) -> Array:
        """Whether the criterion is met."""
        enough = jnp.array(False)
        if self.patience is not None:
            enough = enough | (record["epoch"] - record["best_epoch"] >= self.patience)
        if self.target is not None:
            enough = enough | (record["train_accuracy"] >= self.target)
        return enough


@dataclass(frozen=True)
class ClassifierTraining(Objective):
    """Descends the cross-entropy of the classes, by batches of an order drawn anew every epoch.

    Attributes:
        optimizer: Any optax transformation, or a function that makes one from a learning rate.
        examples: Number of examples trained on.
        batch: Examples of a step; the last of an epoch may have fewer.
        reduction: ``"sum"`` or ``"mean"`` of the losses of a batch.
        evaluation_batch: Examples that are evaluated together.
        augment: Changes the inputs of a step, given a key; in place of ``prepare``.
        prepare: Transforms inputs before the model.
    """

    defining: ClassVar[tuple[str, ...]] = ("train_loss",)
    largest_block: ClassVar[int | None] = 1  # a batch fills the processor; trials run side by side

    optimizer: Transformation | Callable[[Any], Transformation]
    examples: int
    batch: int
    reduction: str
    evaluation_batch: int
    augment: Augment | None = None
    prepare: Prepare | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch."""
        return -(-self.examples // self.batch)

    def start(self, model: Model, learning_rate: Any = None) -> ClassifierState:
        """The state before the first step."""
        weights: Any = model
        memory = self._made(learning_rate).init(weights)
        none = jnp.zeros((), jnp.int64)
        return ClassifierState(
            model=model,
            memory=memory,
            step=none,
            loss=jnp.zeros((), jnp.float64),
            correct=none,
            best_model=model,
            best_accuracy=jnp.array(-jnp.inf, jnp.float64),
            best_epoch=none,
        )

    def step(self, state: ClassifierState, data: ClassifierData) -> tuple[ClassifierState, Array]:
        """Takes one step on the next batch; the status is ``DIVERGED`` if it is not finite."""
        places, counted = self.places(state.step, data.order)
        key = jax.random.fold_in(jax.random.wrap_key_data(data.dropout), state.step)
        batch = data.train.at(places)

        def loss(model: Any) -> tuple[Array, tuple[Array, Array]]:
            logits = self.logits(model, batch, key)
            losses = jnp.where(counted, cross_entropy(logits, batch.labels), 0)
            right = (classes(logits) == batch.labels) & counted
            total = losses.sum()
            descended = (
                total / counted.sum(dtype=total.dtype) if self.reduction == "mean" else total
            )
            return descended, (total, right.sum())

        gradient, (total, right) = jax.grad(loss, has_aux=True)(state.model)
        model, memory = self._update(gradient, state, self._made(data.learning_rate))
        finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(model)]
        diverged = ~jnp.stack(finite).all()
        first = state.step % self.steps_per_epoch == 0
        moved = state._replace(
            model=model,
            memory=memory,
            step=state.step + 1,
            loss=jnp.where(first, 0, state.loss) + total,
            correct=jnp.where(first, 0, state.correct) + right,
        )
        kept = jax.tree.map(lambda new, old: jnp.where(diverged, old, new), moved, state)
        return kept, jnp.where(diverged, TrialStatus.DIVERGED, TrialStatus.TRAINED)

    def record(self, state: ClassifierState, data: ClassifierData) -> dict[str, Array]:
        """Losses and accuracies of an epoch, and the weights of the best and the last."""
        measured = {
            "epoch": state.step // self.steps_per_epoch,
            "train_loss": state.loss / self.examples,
            "train_accuracy": state.correct / self.examples,
        }
        for name, examples in data.held_out.items():
            loss, accuracy = self._judged(state.model, examples)
            measured |= {f"{name}_loss": loss, f"{name}_accuracy": accuracy}
        state = self.recorded(state, measured)
        measured |= {"best_accuracy": state.best_accuracy, "best_epoch": state.best_epoch}
        for prefix, model in ((BEST, state.best_model), (LAST, state.model)):
            measured |= {prefix + name: leaf for name, leaf in named_weights(model).items()}
        return measured

    def recorded(self, state: ClassifierState, measured: dict[str, Array]) -> ClassifierState:
        """Keeps the model if it is the best at the end of an epoch so far."""
        # Without validation examples the last epoch counts as the best.
        accuracy = measured.get("validation_accuracy", measured["epoch"].astype(jnp.float64))
        whole = (state.step > 0) & (state.step % self.steps_per_epoch == 0)
        better = whole & (accuracy > state.best_accuracy)

        def chosen(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(better, a, b), new, old)

        return state._replace(
            best_model=chosen(state.model, state.best_model),
            best_accuracy=chosen(accuracy, state.best_accuracy),
            best_epoch=chosen(measured["epoch"], state.best_epoch),
        )

    def logits(self, model: Any, examples: Labeled, key: jax.Array | None = None) -> Array:
        """The logits of examples; with a key, in training."""
        if key is None or self.augment is None:
            inputs = examples.inputs if self.prepare is None else self.prepare(examples.inputs)
        else:
            inputs = self.augment(jax.random.fold_in(key, 0), examples.inputs)
        of_model = None if key is None else jax.random.fold_in(key, 1)
        return model(inputs, examples.mask, key=of_model)

    def places(
        self, step: Int[Array, ""], order: UInt32[Array, "2"]
    ) -> tuple[Int[Array, "batch"], Bool[Array, "batch"]]:
        """The examples of a step, and a mask: the last batch of an epoch is padded."""
        epoch, number = step // self.steps_per_epoch, step % self.steps_per_epoch
        key = jax.random.fold_in(jax.random.wrap_key_data(order), epoch)
        # One pass of sorting: two equal words out of 2^32 are left in the order they had.
        shuffled = jnp.argsort(jax.random.bits(key, (self.examples,), jnp.uint32))
        missing = self.steps_per_epoch * self.batch - self.examples
        filled = jnp.concatenate([shuffled, shuffled[:missing]])
        begin = number * self.batch
        places = jax.lax.dynamic_slice_in_dim(filled, begin, self.batch)
        return places, begin + jnp.arange(self.batch) < self.examples

    def _made(self, learning_rate: Any) -> Transformation:
        """The optimizer, made from the learning rate where it needs one."""
        if isinstance(self.optimizer, optax.GradientTransformation):
            return self.optimizer
        return self.optimizer(learning_rate)

    def _update(
        self, gradient: Any, state: ClassifierState, optimizer: Transformation
    ) -> tuple[Any, PyTree]:
        """Model and optimizer state after a step, in their precision."""
        parameters: Any = state.model
        updates, memory = optimizer.update(gradient, state.memory, parameters)
        retract = getattr(optimizer, "retract", None)
        if retract is None:
            model = optax.apply_updates(parameters, updates)
        else:
            model = retract(parameters, memory)
        return jax.tree.map(
            lambda new, old: new.astype(old.dtype), (model, memory), (parameters, state.memory)
        )

    def _judged(self, model: Any, examples: Labeled) -> tuple[Array, Array]:
        """Mean loss and accuracy on examples, a batch at a time."""
        count = len(examples.labels)
        size = min(self.evaluation_batch, count)

        def of_batch(begin: Array) -> tuple[Array, Array]:
            start = jnp.minimum(begin, count - size)  # the last batch overlaps the one before
            counted = start + jnp.arange(size) >= begin
            batch = examples.at(start + jnp.arange(size))
            logits = self.logits(model, batch)
            losses = jnp.where(counted, cross_entropy(logits, batch.labels), 0)
            right = (classes(logits) == batch.labels) & counted
            return losses.sum(dtype=jnp.float64), right.sum()

        losses, right = jax.lax.map(of_batch, jnp.arange(0, count, size))
        return losses.sum() / count, right.sum() / count


def cross_entropy(logits: Float[Array, "..."], labels: Int[Array, "n"]) -> Float[Array, "n"]:
    """``-log`` of the probability of the class; one logit is that of class 1 among two."""
    if logits.ndim == 1:
        return jax.nn.softplus(jnp.where(labels == 1, -logits, logits))
    chosen = jnp.take_along_axis(logits, labels[:, None], -1)[:, 0]
    return jax.nn.logsumexp(logits, axis=-1) - chosen


def classes(logits: Float[Array, "..."]) -> Int[Array, "n"]:
    """The most probable class of each example."""
    return (logits > 0).astype(jnp.int32) if logits.ndim == 1 else logits.argmax(-1)
