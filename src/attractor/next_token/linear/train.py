"""``train_linear``: contexts in, the trajectory of a linear decoder out."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.checks import check_choice, check_count, check_number, check_steps
from attractor.errors import InvalidInputError
from attractor.memory import require_memory_for
from attractor.next_token.linear.contexts import Contexts
from attractor.next_token.linear.training import LinearTraining, LinearTrials
from attractor.next_token.linear.trajectory import LinearTrajectory, linear_data
from attractor.precision import LARGEST, as_float64
from attractor.progress import progress_bar
from attractor.randomness import check_seed
from attractor.training import loop, validation
from attractor.training.checkpoint import Checkpoint
from attractor.training.optimizers import Optimizer
from attractor.training.recording import record_steps

_WEIGHTS_BYTES = 10**9
_ENTRY_BYTES = 8


def train_linear(
    contexts: Contexts,
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
        checkpoint: A folder to write to every now and then. The same call goes on from there
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
        arrays = {
            "contexts.embeddings": contexts.embeddings,
            "contexts.probabilities": contexts.probabilities,
            "contexts.frequencies": contexts.frequencies,
            "contexts.instance_numbers": contexts.instance_numbers,
            "initial": given,
        }
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
    """Checks that an argument is ``Contexts``.

    Raises:
        InvalidInputError: If it is not.
    """
    if not isinstance(contexts, Contexts):
        raise InvalidInputError(
            "contexts",
            f"{type(contexts).__name__} is not Contexts",
            "Give Contexts(embeddings, probabilities)",
        )


def _check_initial(
    initial: Any, contexts: Contexts, seeds: int
) -> Float[np.ndarray, "instances seeds V d"] | None:
    """Gives the user's decoders their axes of instances and seeds, without copying."""
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
