"""Training of an attention layer with a fixed head, as the loop sees it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PyTree

from attractor.attention.heads import Head
from attractor.attention.losses import Loss
from attractor.attention.parameterization import Parameterization
from attractor.attention.rows import Rows
from attractor.attention.scaled import log_norm
from attractor.attention.scaled_gradient import mean_loss, scaled_gradient
from attractor.attention.softmax import softmax_row
from attractor.errors import TrialStatus
from attractor.geometry import Frobenius
from attractor.training.loop import Objective
from attractor.training.optimizers import Optimizer


class AttentionState(NamedTuple):
    """What changes in training: the attention parameters and the optimizer's memory."""

    parameters: PyTree
    memory: PyTree


class AttentionData(NamedTuple):
    """What stays: the rows of one data set and its head."""

    rows: Rows
    head: Head


@dataclass(frozen=True)
class AttentionTraining(Objective):
    """Descends ``mean_ik loss(h(sum_t softmax(s_ik)_t v_it), y_ik)`` in attention parameters."""

    parameterization: Parameterization
    loss: Loss
    optimizer: Optimizer

    def start(self, parameters: PyTree) -> AttentionState:
        """The state before the first step."""
        return AttentionState(parameters, self.optimizer.init(parameters))

    def step(self, state: AttentionState, data: AttentionData) -> tuple[AttentionState, Array]:
        """Takes one step, and says whether it moved and where to."""
        gradient = scaled_gradient(
            self.parameterization, self.loss, state.parameters, data.head, data.rows
        ).attention
        updates, memory = self.optimizer.update(
            self.optimizer.read(gradient), state.memory, state.parameters
        )
        moved = AttentionState(optax.apply_updates(state.parameters, updates), memory)
        # One pass over the parameters finds all three facts: passes cost more than arithmetic.
        slopes = jax.tree.map(lambda leaf: leaf.mantissa, gradient)
        diverged, changed, sloped = _any(
            lambda new, old, slope: (~jnp.isfinite(new), new != old, slope != 0),
            (moved.parameters, state.parameters, slopes),
        )
        if jax.tree.leaves(memory):
            (remembered,) = _any(lambda new, old: (new != old,), (memory, state.memory))
            changed = changed | remembered
        resting = jnp.where(sloped, TrialStatus.BELOW_ROUNDING, TrialStatus.STATIONARY)
        status = jnp.where(changed, TrialStatus.TRAINED, resting)
        # A step to infinity is not taken: the trial keeps the last place it could be at.
        kept = jax.tree.map(lambda new, old: jnp.where(diverged, old, new), moved, state)
        return kept, jnp.where(diverged, TrialStatus.DIVERGED, status)

    def record(self, state: AttentionState, data: AttentionData) -> dict[str, Array]:
        """Loss, norm, gradient, what is attended to, and the effective matrix."""
        rows, parameterization = data.rows, self.parameterization
        gradient = scaled_gradient(
            parameterization, self.loss, state.parameters, data.head, rows
        ).attention
        weights = softmax_row(
            parameterization.scores(state.parameters, rows), rows.mask
        ).probabilities
        W = parameterization.effective_matrix(state.parameters)
        geometry = parameterization.effective_geometry(self.optimizer.geometry) or Frobenius()
        return {
            "loss": mean_loss(parameterization, self.loss, state.parameters, data.head, rows),
            "norm": geometry.norm(W),
            "log_gradient_norm": log_norm(gradient),
            "attended": weights.argmax(-1).astype(jnp.int32),
            "attended_probability": weights.max(-1),
            "W": W,
        }


def _any(facts: Callable[..., tuple[Array, ...]], trees: tuple[PyTree, ...]) -> tuple[Array, ...]:
    """Whether each of several facts holds for any entry of any leaf."""

    def flags(*leaves: Array) -> Array:
        bits = [jnp.where(fact, 1 << place, 0) for place, fact in enumerate(facts(*leaves))]
        return jnp.bitwise_or.reduce(functools.reduce(operator.or_, bits), axis=None)

    found = functools.reduce(operator.or_, jax.tree.leaves(jax.tree.map(flags, *trees)))
    count = len(jax.eval_shape(facts, *(jax.tree.leaves(tree)[0] for tree in trees)))
    return tuple((found & (1 << place)) != 0 for place in range(count))
