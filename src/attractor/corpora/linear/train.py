"""``train_linear``: contexts in, the trajectory of a linear decoder out.

The loss of a context splits into a part within its support and one from outside. With ``s`` the
softmax restricted to the support S and q the probability that the decoder gives to tokens outside,

    KL(p || softmax) = KL(p || s) - log(1 - q),
    softmax - p      = (s - p) + q (t - s),

with ``t`` the softmax restricted to the outside. The first part vanishes at a finite matrix, the
second only at infinity, where q may be e^-5000: it carries a log scale of its own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from attractor.attention.gradients.levels import sum_by_levels
from attractor.attention.scaled import Scaled, common_log_scale, log_norm, relative
from attractor.corpora.linear.contexts import EmbeddedContexts
from attractor.corpora.linear.trajectory import CONTEXT_ARRAYS, LinearTrajectory, linear_data
from attractor.geometry import Frobenius
from attractor.support.checks import (
    check_choice,
    check_count,
    check_kind,
    check_number,
    check_steps,
)
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.support.memory import require_memory_for
from attractor.support.precision import LARGEST, as_float64, double_precision
from attractor.support.progress import progress_bar
from attractor.support.randomness import check_seed, keys
from attractor.training import loop, validation
from attractor.training.loop import Objective
from attractor.training.optimizers import Optimizer
from attractor.training.recording import record_steps
from attractor.training.stored.checkpoint import Checkpoint

_TIE_ROUNDINGS = 4
"""Roundings of the terms of two logits below which their difference is none."""
_SERIES = 0.3
"""Size below which ``exp(x) - 1 - x`` is summed up as a series, of this many terms."""
_TERMS = 13
_LARGEST = 700.0
"""Logarithm of about the largest number."""
_EXACT = -36.0
"""Logarithm below which ``log(1 + exp(x))`` is ``exp(x)`` to rounding."""


class Targets(NamedTuple):
    """Contexts as arrays of the loss.

    Attributes:
        embeddings: The embeddings.
        probabilities: Of the tokens that follow each context.
        log_probabilities: Their logarithms; zero outside the support.
        support: Where they are positive.
        log_frequencies: Logarithms of the frequencies.
    """

    embeddings: Float[Any, "*instances m d"]
    probabilities: Float[Any, "*instances m V"]
    log_probabilities: Float[Any, "*instances m V"]
    support: Bool[Any, "*instances m V"]
    log_frequencies: Float[Any, "*instances m"]


class Rows(NamedTuple):
    """The contribution of each context to loss and gradient.

    Attributes:
        within: ``s - p``, zero outside the support.
        beyond: ``t - s`` in units of ``exp(log_beyond) / q``.
        log_terms: Logarithms of the sizes of the entries of ``beyond``, in these units.
        log_beyond: Logarithm of the probability of the likeliest token outside the support; minus
            infinity where there is none.
        log_excess: Logarithm of ``KL(p || softmax)``.
    """

    within: Float[Array, "m V"]
    beyond: Float[Array, "m V"]
    log_terms: Float[Array, "m V"]
    log_beyond: Float[Array, "m"]
    log_excess: Float[Array, "m"]


def targets_of(contexts: EmbeddedContexts) -> Targets:
    """Contexts as arrays of the loss, with their axis of instances if they have one."""
    support = contexts.support
    return Targets(
        contexts.embeddings,
        contexts.probabilities,
        np.log(np.where(support, contexts.probabilities, 1.0)),
        support,
        np.log(contexts.frequencies),
    )


def rows_of(W: Float[Array, "V d"], targets: Targets) -> Rows:
    """The contribution of each context to the loss and to its gradient."""
    inside, p = targets.support, targets.probabilities
    logits = targets.embeddings @ W.T
    ratio, deviation = _ratios(W, logits, targets)
    weights, change = p * jnp.exp(deviation), jnp.expm1(deviation)
    total = weights.sum(-1, keepdims=True)
    shift = (p * change).sum(-1, keepdims=True)
    near = total > 0.5
    s = weights / total
    # Near p the difference softmax - p would cancel: it is formed from the changes instead.
    within = jnp.where(near, p * (change - shift) / jnp.where(near, total, 1), s - p)
    log_total = jnp.where(near, jnp.log1p(shift), jnp.log(total))
    delta = jnp.where(inside, deviation - log_total, 0)  # log s - log p
    rest = p * _exponential_rest(jnp.minimum(delta, 1))
    excess = jnp.where(delta > 1, s - p - p * delta, rest).sum(-1)

    log_inside = ratio + log_total[..., 0]
    outside = jnp.where(inside, -jnp.inf, logits)
    top = outside.max(-1)
    bare = jnp.isneginf(top)  # no token is outside
    gap = outside - jnp.where(bare, 0, top)[..., None]
    others = jnp.exp(gap)
    log_mass = jnp.log(jnp.where(bare, 1, others.sum(-1)))
    odds = jnp.where(bare, -jnp.inf, top + log_mass - log_inside)
    log_s = jnp.where(inside, delta + targets.log_probabilities, 0)
    return Rows(
        within,
        jnp.where(inside, -s * others.sum(-1, keepdims=True), others),
        jnp.where(inside, log_s + log_mass[..., None], gap),
        jnp.where(bare, -jnp.inf, top - jnp.logaddexp(log_inside, top + log_mass)),
        jnp.logaddexp(jnp.log(excess), _log_softplus(odds)),
    )


def log_excess_of(rows: Rows, targets: Targets) -> Float[Array, ""]:
    """Logarithm of ``CE(W) - H``, minus infinity for zero."""
    return jax.nn.logsumexp(rows.log_excess + targets.log_frequencies)


def scaled_gradient_of(rows: Rows, targets: Targets) -> Scaled:
    """``sum_j pi_j (softmax(W h_j) - p_j) h_j^T`` with one scale for all entries.

    Each context is measured in its own largest entry, and only where they are added up are all
    brought to the largest.
    """
    log_within = jnp.log(jnp.abs(rows.within).max(-1))
    log_rows = jnp.maximum(log_within, rows.log_beyond)
    # Beyond that bound ``within`` is zero.
    mantissa = rows.within * jnp.exp(jnp.minimum(-_finite(log_rows), _LARGEST))[..., None]
    mantissa += rows.beyond * relative(rows.log_beyond, _finite(log_rows))[..., None]
    log_rows += targets.log_frequencies
    common = common_log_scale(log_rows)
    return Scaled((mantissa * relative(log_rows, common)[..., None]).T @ targets.embeddings, common)


def entrywise_gradient_of(rows: Rows, targets: Targets) -> Scaled:
    """The same with a scale for every entry.

    A token that is improbable after every context has tiny entries beside those of others, and
    with one-hot embeddings so has every context of its own.
    """
    log_within = jnp.log(jnp.abs(rows.within))
    log_beyond = rows.log_terms + rows.log_beyond[..., None]
    log_terms = jnp.maximum(log_within, log_beyond)
    unit = _finite(log_terms)
    mantissa = jnp.sign(rows.within) * relative(log_within, unit)
    mantissa += jnp.where(targets.support, -1, 1) * relative(log_beyond, unit)
    log_terms = jnp.where(mantissa != 0, log_terms, -jnp.inf) + targets.log_frequencies[..., None]
    largest = common_log_scale(log_terms)

    def pull(share: Array) -> Array:
        return (mantissa * share).T @ targets.embeddings

    def first(floor: Array) -> Array:
        return pull(jnp.where(log_terms >= floor, relative(log_terms, largest), 0))

    return sum_by_levels(first, pull, log_terms, largest)


def _ratios(W: Array, logits: Array, targets: Targets) -> tuple[Array, Array]:
    """The largest ``logit - log p`` of each support, and by how much those of its tokens are less.

    Logits that give the tokens their probabilities differ from them by rounding, which a
    normalized step would follow where nothing else is left: such differences count as none.
    """
    log_p = targets.log_probabilities
    ratio = jnp.where(targets.support, logits - log_p, -jnp.inf)
    top = ratio.max(-1, keepdims=True)
    lengths = jnp.linalg.norm(targets.embeddings, axis=-1)[:, None] * jnp.linalg.norm(W, axis=-1)
    reach = lengths + jnp.abs(log_p)
    most = jnp.where(targets.support, reach, 0).max(-1, keepdims=True)
    tie = _TIE_ROUNDINGS * jnp.finfo(W.dtype).eps * (reach + most)
    difference = ratio - top
    return top[..., 0], jnp.where(targets.support & (difference < -tie), difference, 0)


def _exponential_rest(x: Array) -> Array:
    """``exp(x) - 1 - x``, which is positive, without cancellation."""
    small = jnp.abs(x) < _SERIES
    near = jnp.where(small, x, 0)
    series = jnp.ones_like(x)
    for term in range(_TERMS, 2, -1):
        series = 1 + near / term * series
    return jnp.where(small, near**2 / 2 * series, jnp.expm1(x) - x)


def _log_softplus(x: Array) -> Array:
    """``log log(1 + exp(x))``."""
    tiny = x < _EXACT
    return jnp.where(tiny, x, jnp.log(jax.nn.softplus(jnp.where(tiny, 0, x))))


def _finite(logs: Array) -> Array:
    return jnp.where(jnp.isneginf(logs), 0, logs)


_WEIGHTS_BYTES = 10**9
_ENTRY_BYTES = 8
_INITIAL = "initial decoder"


def train_linear(
    contexts: EmbeddedContexts,
    optimizer: Optimizer,
    *,
    steps: int,
    seeds: int = 1,
    seed: int = 0,
    initial: Any = None,
    initial_scale: float = 0.0,
    record: Any = None,
    weights: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    progress: bool = False,
) -> LinearTrajectory:
    """Trains a linear decoder to predict the next token, on every instance, from every seed.

    Minimizes ``CE(W) = - sum_j pi_j sum_z p_jz log softmax_z(W h_j)`` by the optimizer's steps,
    with gradients that are exact at any magnitude. A trial is one (instance, seed) pair; its
    numbers do not depend on which other trials run beside it.

    Args:
        contexts: The data sets.
        optimizer: The step, such as ``gradient_descent(0.5)``.
        steps: Number of steps.
        seeds: Number of initial decoders per instance: seeds ``seed`` to ``seed + seeds - 1``.
        seed: The first seed.
        initial: Initial decoders instead of random ones: ``(V, d)`` for all trials,
            ``(instances, V, d)``, or ``(instances, seeds, V, d)``.
        initial_scale: Standard deviation of the entries of random ones, which are Gaussian: 0
            starts at zero, ``d ** -0.5`` is LeCun's initialization.
        record: Steps to record; default: about 60, evenly spread over the logarithm of the step.
        weights: ``"all"`` keeps the decoders of every recorded step, ``"last"`` those of the last
            one; ``"auto"`` keeps all as long as they fit in 1 GB.
        checkpoint: A folder to write to every now and then. The same call resumes from there
            after a crash, and gives the very numbers of a run that was never interrupted.
        checkpoint_every: Seconds between two writes to it.
        progress: Whether to show a progress bar.

    Raises:
        InvalidInputError: If an argument cannot be used, or the checkpoint is of another run;
            nothing has been computed then.
        FileFormatError: If the checkpoint is damaged.

    Source: *Implicit Optimization Bias of Next-token Prediction in Linear Models* (arXiv
    2402.18551), gradient descent.
    """
    check_contexts(contexts)
    validation.check_optimizer(optimizer)
    steps = check_steps("steps", steps)
    seeds = check_count("seeds", seeds)
    seed = check_seed("seed", seed)
    check_seed("seed", seed + seeds - 1)
    given = _check_initial(initial, contexts, seeds)
    scale = _check_scale(initial_scale, given is not None)
    check_choice("weights", weights, ("auto", "all", "last"))
    recorded = record_steps(steps, record)
    validation.check_checkpoint(checkpoint, checkpoint_every)

    V, d = contexts.classes, contexts.dimension
    require_memory_for(
        "contexts", d, f"dimensions of a decoder of {V:,} tokens", each=24.0 * V,
        otherwise="Give fewer tokens",
    )  # fmt: skip
    training = LinearTraining(optimizer.example)
    trials = LinearTrials(training, optimizer, contexts, given, scale=scale, seeds=seeds, seed=seed)
    count = (contexts.instances or 1) * seeds
    size = count * len(recorded) * contexts.classes * contexts.dimension * _ENTRY_BYTES
    everything = weights == "all" or (weights == "auto" and size <= _WEIGHTS_BYTES)
    last_only = frozenset() if everything else frozenset({"W"})
    settings = {
        "steps": steps,
        "seeds": seeds,
        "seed": seed,
        "initial": "random" if given is None else "given",
        "initial_scale": scale,
        "weights": "all" if everything else "last",
        "optimizer": dict(optimizer.settings),
    }
    saved = None
    if checkpoint is not None:
        named = {**settings, "optimizer": {"name": optimizer.name, **optimizer.settings}}
        arrays = {f"contexts.{name}": getattr(contexts, name) for name in CONTEXT_ARRAYS}
        arrays["initial"] = given
        saved = Checkpoint(checkpoint, named, arrays, checkpoint_every)
    with progress_bar("training", count * steps, enabled=progress) as advance:
        records = loop.run(
            training,
            trials,
            count,
            recorded,
            instances=contexts.instances or 1,
            last_only=last_only,
            checkpoint=saved,
            advance=advance,
            skip=advance.skip,
        )
    numbers, seed_numbers = contexts.instance_numbers, np.arange(seed, seed + seeds)
    return LinearTrajectory(
        data=linear_data(records, numbers, seed_numbers, recorded, last_only=last_only),
        contexts=contexts,
        optimizer_name=optimizer.name,
        geometry="not known" if optimizer.geometry is None else optimizer.geometry.name,
        settings=settings,
    )


def check_contexts(contexts: Any) -> None:
    """Checks that an argument is ``EmbeddedContexts``.

    Raises:
        InvalidInputError: If it is not.
    """
    check_kind(
        "contexts", contexts, EmbeddedContexts, "Give EmbeddedContexts(embeddings, probabilities)"
    )


def _check_initial(
    initial: Any, contexts: EmbeddedContexts, seeds: int
) -> Float[np.ndarray, "instances seeds V d"] | None:
    """The user's decoders with axes of instances and seeds, not copied."""
    if initial is None:
        return None
    array = as_float64("initial", initial)
    one, instances = (contexts.classes, contexts.dimension), contexts.instances or 1
    shapes = [one, (instances, *one), (instances, seeds, *one)]
    if array.shape not in shapes:
        raise InvalidInputError(
            "initial",
            f"the shape is {array.shape}",
            f"Give {shapes[0]}, {shapes[1]} for each instance, or {shapes[2]} for each instance "
            "and seed",
        )
    per_trial = array[:, None] if array.ndim == 3 else array
    return np.broadcast_to(per_trial, shapes[-1])


def _check_scale(scale: Any, given: bool) -> float:
    scale = check_number("initial_scale", scale, least=0, most=LARGEST, example=0.1)
    if scale and given:
        raise InvalidInputError(
            "initial_scale",
            "decoders to start from are given, so that none are drawn",
            "Leave out one of initial and initial_scale",
        )
    return scale


class LinearState(NamedTuple):
    """The state of a trial.

    Attributes:
        W: The decoder.
        memory: The optimizer's state.
        log_time: Logarithm of the time that the same algorithm would have taken unnormalized.
    """

    W: Float[Array, "V d"]
    memory: PyTree
    log_time: Float[Array, ""]


class LinearData(NamedTuple):
    """The constants of a trial.

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
        optimizer: The step, with placeholders for hyperparameters.
    """

    copies: ClassVar[int] = 8  # gradients have scales

    optimizer: Optimizer

    def start(self, W: Float[Any, "V d"], data: LinearData) -> LinearState:
        """The state before the first step."""
        memory = self.optimizer.with_numbers(data.numbers).init(W)
        return LinearState(W, memory, jnp.array(-jnp.inf))

    def step(self, state: LinearState, data: LinearData) -> tuple[LinearState, Array]:
        """Takes one step; the status says whether the state changed and stayed finite."""
        rows = rows_of(state.W, data.targets)
        exact = entrywise_gradient_of if self.optimizer.by_entry else scaled_gradient_of
        gradient = exact(rows, data.targets)
        needed = "log_excess" in self.optimizer.needs
        further = {"log_excess": log_excess_of(rows, data.targets)} if needed else {}
        optimizer = self.optimizer.with_numbers(data.numbers)
        W, memory = optimizer.step(gradient, state.memory, state.W, **further)
        log_time, timed = state.log_time, optimizer.at_step(state.memory).log_time_step
        if timed is not None:
            log_time = jnp.logaddexp(log_time, timed(gradient, **further))
        changed = (W != state.W).any() | ~optimizer.at_rest(memory, state.memory)
        diverged = ~jnp.isfinite(W).all()
        # A step to infinity is not taken: the trial keeps its last finite state.
        kept = jax.tree.map(
            lambda new, old: jnp.where(diverged | ~changed, old, new),
            LinearState(W, memory, log_time),
            state,
        )
        sloped = (gradient.mantissa != 0).any()
        unchanged = jnp.where(sloped, TrialStatus.BELOW_ROUNDING, TrialStatus.STATIONARY)
        status = jnp.where(changed, TrialStatus.TRAINED, unchanged)
        return kept, jnp.where(diverged, TrialStatus.DIVERGED, status)

    def record(self, state: LinearState, data: LinearData) -> dict[str, Array]:
        """Loss, what it is above its infimum, norm, gradient and the decoder."""
        rows = rows_of(state.W, data.targets)
        log_excess = log_excess_of(rows, data.targets)
        excess = jnp.exp(log_excess)
        optimizer = self.optimizer.at_step(state.memory)
        timed = optimizer.log_time_step is not None and not optimizer.decays_weights
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


class LinearTrials:
    """Trials of all instances and seeds: returns the initial state and the data of any of them.

    Those of a trial depend on the numbers of its instance and its seed alone.
    """

    def __init__(
        self,
        training: LinearTraining,
        optimizer: Optimizer,
        contexts: EmbeddedContexts,
        initial: Float[np.ndarray, "instances seeds V d"] | None,
        *,
        scale: float,
        seeds: int,
        seed: int,
    ) -> None:
        """Prepares the data once.

        Args:
            training: The objective.
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
