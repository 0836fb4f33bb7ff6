"""Training of an attention layer, and of its head if requested, as an objective of the loop."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree, UInt32

from attractor.attention._scaled_gradient import mean_loss, scaled_gradient
from attractor.attention.entrywise_gradient import entrywise_gradient
from attractor.attention.excess import log_excess_loss
from attractor.attention.heads import Head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import (
    AttentionMatrix,
    Parameterization,
    Parameters,
)
from attractor.attention.plain_gradient import plain_gradient
from attractor.attention.rows import Rows
from attractor.attention.scaled import Scaled, log_norm
from attractor.attention.softmax import softmax_row
from attractor.errors import InvalidInputError, TrialStatus
from attractor.geometry import Schatten
from attractor.training.loop import Objective
from attractor.training.mini_batches import ORDERS, batch_at
from attractor.training.optimizers import Optimizer


class AttentionState(NamedTuple):
    """The state of a trial.

    Attributes:
        parameters: What is trained.
        memory: The optimizer's memory.
        step: Number of steps taken.
        log_time: Logarithm of the time that the same steps take without normalization.
    """

    parameters: Parameters
    memory: PyTree
    step: Int[Array, ""]
    log_time: Float[Array, ""]


class AttentionData(NamedTuple):
    """The constants of a trial.

    Attributes:
        rows: The rows of one data set.
        head: The head; where it is trained, the one training began with.
        key: Raw data of the key from which mini-batches are drawn.
        numbers: The optimizer's hyperparameters.
    """

    rows: Rows
    head: Head
    key: UInt32[Any, "2"]
    numbers: dict[str, Float[Any, ""]]


class Snapshot(NamedTuple):
    """One trial at a recorded step, the argument of metrics.

    With several attention heads ``W`` and ``probabilities`` have a leading axis of them.

    Attributes:
        W: The effective attention matrix.
        parameters: The attention parameters.
        head: The head.
        rows: The data set.
        probabilities: Attention weights.
        loss: The training loss over the whole data set.
        log_gradient_norm: Logarithm of the Euclidean norm of its gradient.
    """

    W: Float[Array, "*attention_head d e"]
    parameters: PyTree
    head: Head
    rows: Rows
    probabilities: Float[Array, "*attention_head sequence query token"]
    loss: Float[Array, ""]
    log_gradient_norm: Float[Array, ""]


Metric = Callable[[Snapshot], Array]


@dataclass(frozen=True)
class AttentionTraining(Objective):
    """Descends ``mean_ik loss(h(sum_t softmax(s_ik)_t v_it), y_ik)``.

    Attributes:
        parameterization: What the attention parameters are, and whether the head is trained.
        loss: The loss.
        optimizer: The step; its hyperparameters are placeholders for those of the data.
        batch_size: Sequences in a step; None for all.
        metrics: What is recorded besides, with its name.
        kernel: ``"exact"``, or ``"plain"`` for gradients that cancel as published code's do.
        batch_order: In which order sequences come.
    """

    copies: ClassVar[int] = 8  # gradients have scales, and three facts are found of every entry

    parameterization: Parameterization
    loss: Loss
    optimizer: Optimizer
    batch_size: int | None = None
    metrics: tuple[tuple[str, Metric], ...] = ()
    kernel: str = "exact"
    batch_order: str = ORDERS[0]

    @property
    def side_by_side(self) -> bool:
        """Powers of singular values are, and they take longer than all else."""
        return self.optimizer.geometry == Schatten(1.5)

    def start(self, attention: PyTree, data: AttentionData) -> AttentionState:
        """The state before the first step."""
        head = data.head if self.parameterization.trains_head else None
        trained: Any = Parameters(attention, head)
        memory = self.optimizer.with_numbers(data.numbers).init(trained)
        return AttentionState(trained, memory, jnp.zeros((), "int64"), jnp.array(-jnp.inf))

    def step(self, state: AttentionState, data: AttentionData) -> tuple[AttentionState, Array]:
        """Takes one step; returns the new state and its ``TrialStatus``."""
        rows = self._batch(state, data)
        gradient = self.gradient(state.parameters, data.head, rows)
        further = self._further(state, data, rows)
        optimizer = self.optimizer.with_numbers(data.numbers)
        parameters, memory = optimizer.step(gradient, state.memory, state.parameters, **further)
        log_time, timed = state.log_time, optimizer.at_step(state.memory).log_time_step
        if timed is not None:
            log_time = jnp.logaddexp(log_time, timed(gradient, **further))
        moved = AttentionState(parameters, memory, state.step + 1, log_time)
        # One pass over the parameters finds all three facts: passes cost more than arithmetic.
        slopes = jax.tree.map(lambda leaf: leaf.mantissa, gradient)
        diverged, changed, sloped = _any(
            lambda new, old, slope: (~jnp.isfinite(new), new != old, slope != 0),
            (parameters, state.parameters, slopes),
        )
        changed = changed | ~optimizer.at_rest(memory, state.memory)
        if self.batch_size is not None:
            changed = jnp.array(True)  # another batch may move what this one leaves
        unmoved = jnp.where(sloped, TrialStatus.BELOW_ROUNDING, TrialStatus.STATIONARY)
        status = jnp.where(changed, TrialStatus.TRAINED, unmoved)
        # A step to infinity is not taken: the trial keeps its last finite state.
        terminated = diverged | ~changed
        kept = jax.tree.map(lambda new, old: jnp.where(terminated, old, new), moved, state)
        return kept, jnp.where(diverged, TrialStatus.DIVERGED, status)

    def record(self, state: AttentionState, data: AttentionData) -> dict[str, Array]:
        """Loss, norm, gradient, what is attended to, parameters, and the user's metrics."""
        attention, head = state.parameters.attention, self._head(state.parameters, data.head)
        layer, rows = self.parameterization, data.rows
        gradient = self.gradient(state.parameters, data.head, rows)
        probabilities = _probabilities(layer, attention, rows)
        W = layer.effective_matrix(attention)
        loss = mean_loss(layer, self.loss, attention, head, rows)
        size = log_norm(gradient)
        seen = Snapshot(W, attention, head, rows, probabilities, loss, size)
        optimizer = self.optimizer.at_step(state.memory)
        timed = optimizer.log_time_step is not None and not optimizer.decays_weights
        return {
            "loss": loss,
            "norm": layer.descended_norm(W, self.optimizer),
            "log_gradient_norm": size,
            "log_time": state.log_time if timed else jnp.full_like(state.log_time, jnp.nan),
            "attended": probabilities.argmax(-1).astype(jnp.int32),
            "attended_probability": probabilities.max(-1),
            **self.weights(state.parameters),
            **{name: _measured(name, metric, seen) for name, metric in self.metrics},
        }

    def weights(self, parameters: Parameters) -> dict[str, Any]:
        """Effective matrix, attention parameters and trained head, as named arrays."""
        arrays = dict(self.parameterization.to_arrays(parameters.attention))
        arrays["W"] = self.parameterization.effective_matrix(parameters.attention)
        if parameters.head is not None:
            arrays |= {f"head_{name}": leaf for name, leaf in _named_leaves(parameters.head)}
        return arrays

    def _head(self, parameters: Parameters, fixed: Head) -> Head:
        return fixed if parameters.head is None else parameters.head

    def gradient(self, parameters: Parameters, fixed: Head, rows: Rows) -> PyTree[Scaled]:
        """The gradient of the loss in all that is trained, with scales by array or by entry.

        Args:
            parameters: What is trained.
            fixed: The head where it is not among them.
            rows: The data set, or a batch of it.
        """
        exact = entrywise_gradient if self.optimizer.by_entry else scaled_gradient
        function = plain_gradient if self.kernel == "plain" else exact
        head = self._head(parameters, fixed)
        arguments = parameters.attention, head, rows
        parts = _gradient_parts(function, self.parameterization, self.loss, *arguments)
        found = jax.tree.map(Scaled, *parts)
        return Parameters(found.attention, None if parameters.head is None else found.head)

    def _further(self, state: AttentionState, data: AttentionData, rows: Rows) -> dict[str, Any]:
        """The further arguments that the optimizer needs beside the gradient."""
        needs, layer = self.optimizer.needs, self.parameterization
        if not needs:
            return {}
        attention, head = state.parameters.attention, self._head(state.parameters, data.head)
        found = {}
        if "log_excess" in needs:
            found["log_excess"] = log_excess_loss(layer, self.loss, attention, head, rows)
        if "matrix_gradient" in needs:
            W = layer.effective_matrix(attention)
            gradient = scaled_gradient(AttentionMatrix(), self.loss, W, head, rows)
            found["matrix_gradient"] = gradient.attention
        return found

    def _batch(self, state: AttentionState, data: AttentionData) -> Rows:
        """The rows of this step."""
        if self.batch_size is None:
            return data.rows
        sequences = len(data.rows.keys)
        chosen = batch_at(state.step, data.key, sequences, self.batch_size, self.batch_order)
        return jax.tree.map(lambda leaf: leaf[chosen], data.rows)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _gradient_parts(
    function: Callable[..., Any], layer: Parameterization, loss: Loss, *arguments: PyTree
) -> tuple[PyTree, PyTree]:
    """Mantissas and log scales of the gradient.

    Steps and records both take it, and tracing is most of compiling: a function of its own is
    traced once for both.
    """
    found = function(layer, loss, *arguments)
    mantissas = jax.tree.map(lambda leaf: leaf.mantissa, found)
    return mantissas, jax.tree.map(lambda leaf: leaf.log_scale, found)


def _probabilities(layer: Parameterization, parameters: PyTree, rows: Rows) -> Array:
    """Attention weights, with a leading axis of attention heads where parameters have one."""
    found = [
        softmax_row(one.scores(own, rows), rows.mask).probabilities
        for one, own in layer.by_head(parameters)
    ]
    return found[0] if layer.attention_heads is None else jnp.stack(found)


def _measured(name: str, metric: Metric, seen: Snapshot) -> Array:
    """The value of a user's metric for a snapshot."""
    try:
        return jnp.asarray(metric(seen))
    except Exception as error:
        raise InvalidInputError(
            "metrics",
            f"{name!r} fails: {type(error).__name__}: {error}",
            "Return one array of numbers, by functions of jax.numpy",
        ) from error


def _named_leaves(tree: PyTree) -> list[tuple[str, Array]]:
    """Leaves with their paths, such as ``layers_0_weight``."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="_"), leaf) for path, leaf in leaves]


def _any(facts: Callable[..., tuple[Array, ...]], trees: tuple[PyTree, ...]) -> tuple[Array, ...]:
    """For each of several conditions, whether it holds for any entry of any leaf."""

    def flags(*leaves: Array) -> Array:
        bits = [jnp.where(fact, 1 << place, 0) for place, fact in enumerate(facts(*leaves))]
        return jnp.bitwise_or.reduce(functools.reduce(operator.or_, bits), axis=None)

    found = functools.reduce(operator.or_, jax.tree.leaves(jax.tree.map(flags, *trees)))
    count = len(jax.eval_shape(facts, *(jax.tree.leaves(tree)[0] for tree in trees)))
    return tuple((found & (1 << place)) != 0 for place in range(count))
