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

from attractor.attention import scaled_gradient
from attractor.attention.excess import log_excess_loss
from attractor.attention.heads import Head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import AttentionMatrix, Parameterization, Parameters
from attractor.attention.rows import Rows
from attractor.support.errors import TrialStatus
from attractor.training.attention_records import AttentionRecorder, Metric, NormRecorder, head_of
from attractor.training.loop import Objective
from attractor.training.mini_batches import ORDERS, batch_at
from attractor.training.objective import Recorder
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
        return self.optimizer.of_singular_values

    def start(self, attention: PyTree, data: AttentionData) -> AttentionState:
        """The state before the first step."""
        head = data.head if self.parameterization.trains_head else None
        trained: Any = Parameters(attention, head)
        memory = self.optimizer.with_numbers(data.numbers).init(trained)
        optimizer = self.optimizer.at_step(memory)
        timed = optimizer.log_time_step is not None and not optimizer.decays_weights
        log_time = jnp.array(-jnp.inf if timed else jnp.nan)
        return AttentionState(trained, memory, jnp.zeros((), "int64"), log_time)

    def step(self, state: AttentionState, data: AttentionData) -> tuple[AttentionState, Array]:
        """Takes one step; returns the new state and its ``TrialStatus``."""
        rows = self._batch(state, data)
        gradient = self.recorder.gradient(state.parameters, data.head, rows)
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

    @property
    def recorders(self) -> tuple[Recorder, ...]:
        """What measures a trial: one for all optimizers, and one for those of the same norm.

        A subclass with a ``record`` of its own is its own recorder, ``(self,)``.
        """
        return self._recorders

    @functools.cached_property
    def _recorders(self) -> tuple[AttentionRecorder, NormRecorder]:
        return self.recorder, NormRecorder.of(self.parameterization, self.optimizer)

    @functools.cached_property
    def recorder(self) -> AttentionRecorder:
        """What measures all but the norm, and takes gradients."""
        return AttentionRecorder(
            self.parameterization, self.loss, self.kernel, self.optimizer.by_entry, self.metrics
        )

    def record(self, state: AttentionState, data: AttentionData) -> dict[str, Array]:
        """Loss, norm, gradient, what is attended to, parameters, and the user's metrics."""
        parts = [one.record(*one.seen(state, data)) for one in self._recorders]
        return functools.reduce(operator.or_, parts)

    def _further(self, state: AttentionState, data: AttentionData, rows: Rows) -> dict[str, Any]:
        """The further arguments that the optimizer needs beside the gradient."""
        needs, layer = self.optimizer.needs, self.parameterization
        if not needs:
            return {}
        attention, head = state.parameters.attention, head_of(state.parameters, data.head)
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


def _any(facts: Callable[..., tuple[Array, ...]], trees: tuple[PyTree, ...]) -> tuple[Array, ...]:
    """For each of several conditions, whether it holds for any entry of any leaf."""

    def flags(*leaves: Array) -> Array:
        bits = [jnp.where(fact, 1 << place, 0) for place, fact in enumerate(facts(*leaves))]
        return jnp.bitwise_or.reduce(functools.reduce(operator.or_, bits), axis=None)

    found = functools.reduce(operator.or_, jax.tree.leaves(jax.tree.map(flags, *trees)))
    count = len(jax.eval_shape(facts, *(jax.tree.leaves(tree)[0] for tree in trees)))
    return tuple((found & (1 << place)) != 0 for place in range(count))
