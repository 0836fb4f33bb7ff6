"""Training of a linear decoder, as the loop sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from attractor.attention.scaled import Scaled, log_norm
from attractor.errors import TrialStatus
from attractor.geometry import Frobenius
from attractor.next_token.linear.contexts import Contexts
from attractor.next_token.linear.cross_entropy import (
    Rows,
    Targets,
    entrywise_gradient_of,
    log_excess_of,
    rows_of,
    scaled_gradient_of,
    targets_of,
)
from attractor.precision import double_precision
from attractor.randomness import keys
from attractor.training.loop import Objective
from attractor.training.optimizers import Optimizer

_INITIAL = "initial decoder"


class LinearState(NamedTuple):
    """What changes in training.

    Attributes:
        W: The decoder.
        memory: The optimizer's memory.
        log_time: Logarithm of the time that the same algorithm would have taken unnormalized.
    """

    W: Float[Array, "V d"]
    memory: PyTree
    log_time: Float[Array, ""]


class LinearData(NamedTuple):
    """What stays.

    Attributes:
        targets: The contexts.
        entropy: Their entropy.
        numbers: The optimizer's hyperparameters.
    """

    targets: Targets
    entropy: Float[Any, ""]
    numbers: dict[str, Float[Any, ""]]


@dataclass(frozen=True)
class LinearTraining(Objective):
    """Descends ``CE(W) = - sum_j pi_j sum_z p_jz log softmax_z(W h_j)``.

    Attributes:
        optimizer: The step, with hyperparameters that stand for any.
    """

    copies: ClassVar[int] = 8  # gradients have scales

    optimizer: Optimizer

    def start(self, W: Float[Any, "V d"], data: LinearData) -> LinearState:
        """The state before the first step."""
        memory = self.optimizer.with_numbers(data.numbers).init(W)
        return LinearState(W, memory, jnp.array(-jnp.inf))

    def step(self, state: LinearState, data: LinearData) -> tuple[LinearState, Array]:
        """Takes one step, and says whether it moved and where to."""
        rows = rows_of(state.W, data.targets)
        gradient = self._gradient(rows, data.targets)
        further = self._further(rows, data.targets)
        optimizer = self.optimizer.with_numbers(data.numbers)
        W, memory = optimizer.step(gradient, state.memory, state.W, **further)
        log_time = state.log_time
        if optimizer.log_time_step is not None:
            log_time = jnp.logaddexp(log_time, optimizer.log_time_step(gradient, **further))
        changed = (W != state.W).any()
        for new, old in zip(jax.tree.leaves(memory), jax.tree.leaves(state.memory), strict=True):
            changed = changed | (new != old).any()
        diverged = ~jnp.isfinite(W).all()
        # A step to infinity is not taken: the trial keeps the last place it could be at.
        kept = jax.tree.map(
            lambda new, old: jnp.where(diverged | ~changed, old, new),
            LinearState(W, memory, log_time),
            state,
        )
        sloped = (gradient.mantissa != 0).any()
        resting = jnp.where(sloped, TrialStatus.BELOW_ROUNDING, TrialStatus.STATIONARY)
        status = jnp.where(changed, TrialStatus.TRAINED, resting)
        return kept, jnp.where(diverged, TrialStatus.DIVERGED, status)

    def record(self, state: LinearState, data: LinearData) -> dict[str, Array]:
        """Loss, what it is above its infimum, norm, gradient and the decoder."""
        rows = rows_of(state.W, data.targets)
        log_excess = log_excess_of(rows, data.targets)
        excess = jnp.exp(log_excess)
        timed = self.optimizer.log_time_step is not None and not self.optimizer.decays_weights
        geometry = self.optimizer.geometry or Frobenius()
        return {
            "loss": data.entropy + excess,
            "excess_loss": excess,
            "log_excess_loss": log_excess,
            "norm": geometry.norm(state.W),
            "log_gradient_norm": log_norm(scaled_gradient_of(rows, data.targets)),
            "log_time": state.log_time if timed else jnp.full_like(state.log_time, jnp.nan),
            "W": state.W,
        }

    def _gradient(self, rows: Rows, targets: Targets) -> Scaled:
        exact = entrywise_gradient_of if self.optimizer.by_entry else scaled_gradient_of
        return exact(rows, targets)

    def _further(self, rows: Rows, targets: Targets) -> dict[str, Array]:
        """What the optimizer wants to know beside the gradient."""
        wanted = "log_excess" in self.optimizer.needs
        return {"log_excess": log_excess_of(rows, targets)} if wanted else {}


class LinearTrials:
    """Trials of all instances and seeds: gives the initial state and the data of any of them.

    What it gives for a trial depends on the numbers of its instance and its seed alone.
    """

    def __init__(
        self,
        training: LinearTraining,
        optimizer: Optimizer,
        contexts: Contexts,
        initial: Float[np.ndarray, "instances seeds V d"] | None,
        *,
        scale: float,
        seeds: int,
        seed: int,
    ) -> None:
        """Prepares the data once.

        Args:
            training: What is trained.
            optimizer: The optimizer.
            contexts: The data sets.
            initial: Initial decoders; None for random ones.
            scale: Standard deviation of the entries of random ones.
            seeds: Number of seeds.
            seed: The first of them.
        """
        whole = contexts.batched()
        self.training, self.optimizer = training, optimizer
        self.initial, self.scale = initial, scale
        self.seeds, self.seed = seeds, seed
        self.numbers = whole.instance_numbers
        self.shape = (whole.classes, whole.dimension)
        self.data = targets_of(whole), whole.entropy

    def __call__(self, trials: Int[np.ndarray, "block"]) -> tuple[LinearState, LinearData]:
        """State and data, with a leading axis of trials on every leaf."""
        instance, repeat = np.divmod(trials, self.seeds)
        numbers = self.optimizer.numbers(np.zeros_like(trials), np.float64)
        targets, entropy = jax.tree.map(lambda leaf: leaf[instance], self.data)
        data = LinearData(targets, entropy, numbers)
        with double_precision():
            return jax.vmap(self.training.start)(self._decoders(instance, repeat), data), data

    def _decoders(
        self, instance: Int[np.ndarray, "block"], repeat: Int[np.ndarray, "block"]
    ) -> Float[np.ndarray, "block V d"]:
        if self.initial is not None:
            return self.initial[instance, repeat]
        if self.scale == 0:
            return np.zeros((len(instance), *self.shape))
        drawn = keys(self.seed + repeat, self.numbers[instance], _INITIAL)
        normal = jax.vmap(lambda key: jax.random.normal(key, self.shape))(drawn)
        return self.scale * np.asarray(normal)
