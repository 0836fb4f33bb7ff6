"""``train``: tokens and a head in, the trajectory of training out."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from attractor.attention import Head, Loss, Parameterization, attention_rows
from attractor.attention import get_loss as loss_named
from attractor.attention import get_parameterization as parameterization_named
from attractor.errors import PrecisionWarning
from attractor.precision import double_precision
from attractor.progress import progress_bar
from attractor.randomness import check_seed, keys
from attractor.tokens import Tokens
from attractor.training import loop, validation
from attractor.training.attention_training import AttentionData, AttentionState, AttentionTraining
from attractor.training.optimizers import Optimizer
from attractor.training.recording import record_steps
from attractor.training.trajectory import Trajectory, trajectory_data

_WEIGHTS_BYTES = 10**9
_PURPOSE = "initial weights"


def train(
    tokens: Tokens,
    head: Head,
    optimizer: Optimizer,
    *,
    steps: int,
    seeds: int = 1,
    seed: int = 0,
    initial: Float[Any, "*trials d e"] | None = None,
    loss: str | Loss = "logistic",
    parameterization: str | Parameterization = "W",
    weights: str = "auto",
    dtype: str = "float64",
    record: Any = None,
    progress: bool = False,
) -> Trajectory:
    """Trains the attention matrix on every instance, from every seed.

    Minimizes ``L(W) = mean_ik loss(h(sum_t softmax(x_t^T W z)_t v_t), y_ik)`` by the optimizer's
    steps, with gradients that are exact at any magnitude. Rows with one token to attend to count
    in the mean and have no gradient. A trial is one (instance, seed) pair; its numbers do not
    depend on which other trials run beside it.

    Args:
        tokens: Data sets with labels.
        head: The fixed head.
        optimizer: The step; see ``normalized_gradient_descent`` and ``declare``.
        steps: Number of steps.
        seeds: Number of initial matrices per instance: seeds ``seed`` to ``seed + seeds - 1``.
        seed: The first seed.
        initial: Initial matrices instead of random ones, ``(d, e)``, ``(instances, d, e)`` or
            ``(instances, seeds, d, e)``. Default: uniform on [-1/sqrt(d), 1/sqrt(d)].
        loss: ``"logistic"``, ``"exponential"``, ``"linear"``, or a ``Loss``.
        parameterization: What is trained; ``"W"`` is the matrix itself.
        weights: ``"all"`` keeps the matrices of every recorded step, ``"last"`` those of the last
            one; ``"auto"`` keeps all as long as they fit in 1 GB.
        dtype: ``"float64"``, or ``"float32"`` at the price of a warning.
        record: Steps to record; default: about 60, evenly spread over the logarithm of the step.
        progress: Whether to show a progress bar.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been computed then.
    """
    loss = loss_named(loss)
    validation.check_tokens(tokens, loss)
    validation.check_head(head, tokens)
    validation.check_optimizer(optimizer)
    steps = validation.check_count("steps", steps)
    seeds = validation.check_count("seeds", seeds)
    seed = check_seed("seed", seed)
    check_seed("seed", seed + seeds - 1)
    matrices = validation.check_initial(initial, tokens, seeds)
    validation.check_choice("weights", weights, ("auto", "all", "last"))
    validation.check_choice("dtype", dtype, ("float64", "float32"))
    recorded = record_steps(steps, record)
    if dtype == "float32":
        warnings.warn(
            "training in float32: directions carry about 5 digits at score gaps of 80",
            PrecisionWarning,
            stacklevel=2,
        )

    training = AttentionTraining(parameterization_named(parameterization), loss, optimizer)
    instances = tokens.instances or 1
    kept = _weights_kept(weights, tokens, instances * seeds * len(recorded))
    gather = _Gather(training, tokens, head, matrices, seeds, seed, np.dtype(dtype))
    with progress_bar("training", instances * seeds * steps, enabled=progress) as advance:
        records = loop.run(
            training,
            gather,
            instances * seeds,
            recorded,
            last_only=frozenset() if kept == "all" else frozenset({"W"}),
            advance=advance,
        )
    seed_numbers = np.arange(seed, seed + seeds)
    geometry = training.parameterization.effective_geometry(optimizer.geometry)
    return Trajectory(
        data=trajectory_data(records, tokens.instance_numbers, seed_numbers, recorded),
        tokens=tokens,
        head=head,
        optimizer_name=optimizer.name,
        geometry="not known" if geometry is None else geometry.name,
        settings={
            "loss": loss.name,
            "parameterization": training.parameterization.name,
            "steps": steps,
            "seeds": seeds,
            "seed": seed,
            "initial": "random" if matrices is None else "given",
            "dtype": dtype,
            "weights": kept,
            "optimizer": dict(optimizer.settings),
        },
    )


class _Gather:
    """Gives the initial state and the data of some trials, a trial at a time."""

    def __init__(
        self,
        training: AttentionTraining,
        tokens: Tokens,
        head: Head,
        initial: Float[np.ndarray, "instances seeds d e"] | None,
        seeds: int,
        seed: int,
        dtype: np.dtype,
    ) -> None:
        self.training, self.initial, self.seeds, self.seed = training, initial, seeds, seed
        self.dtype = dtype
        rows = attention_rows(tokens, dtype)
        self.rows = rows if tokens.instances is not None else jax.tree.map(lambda a: a[None], rows)
        self.head = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), head)
        self.numbers = tokens.instance_numbers
        self.shape = (tokens.key_dimension, tokens.query_dimension)

    def __call__(self, trials: Int[np.ndarray, "block"]) -> tuple[AttentionState, AttentionData]:
        """State and data, with a leading axis of trials on every leaf."""
        instance, repeat = np.divmod(trials, self.seeds)
        if self.initial is None:
            W = initial_matrices(self.seed + repeat, self.numbers[instance], self.shape)
        else:
            W = self.initial[instance, repeat]
        with double_precision():
            parameters = self.training.parameterization.from_matrix(W.astype(self.dtype))
            state = jax.vmap(self.training.start)(parameters)
        rows = jax.tree.map(lambda leaf: leaf[instance], self.rows)
        return state, AttentionData(rows, self.head.for_instances(instance))


def initial_matrices(
    seeds: Int[np.ndarray, "trial"], instances: Int[np.ndarray, "trial"], shape: tuple[int, int]
) -> Float[np.ndarray, "trial d e"]:
    """Initial matrices of trials: independent entries, uniform on [-1/sqrt(d), 1/sqrt(d)]."""
    with double_precision():
        bound = shape[0] ** -0.5
        draw = functools.partial(
            jax.random.uniform, shape=shape, dtype="float64", minval=-bound, maxval=bound
        )
        return np.asarray(jax.vmap(draw)(keys(seeds, instances, _PURPOSE)))


def _weights_kept(weights: str, tokens: Tokens, matrices: int) -> str:
    """Whether all matrices are kept or the last ones only."""
    size = matrices * tokens.key_dimension * tokens.query_dimension * 8
    if weights == "auto":
        return "all" if size <= _WEIGHTS_BYTES else "last"
    return weights
