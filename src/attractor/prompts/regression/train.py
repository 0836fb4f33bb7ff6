"""``train_in_context``: a task in, the trajectory of trained attention out."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import optax

from attractor.prompts.regression.attended import DRAWS
from attractor.prompts.regression.blocks import Blocks, balanced_initialization
from attractor.prompts.regression.flows._trained_limit import initial_scale_bounds
from attractor.prompts.regression.task import RegressionTask
from attractor.prompts.regression.training import (
    PARAMETERIZATIONS,
    InContextTraining,
    InContextTrials,
    Model,
)
from attractor.prompts.regression.trajectory import InContextTrajectory, in_context_data
from attractor.support.checks import (
    check_choice,
    check_count,
    check_flags,
    check_kind,
    check_steps,
    shown,
)
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory_for
from attractor.support.progress import progress_bar
from attractor.support.randomness import check_seed
from attractor.training import loop, validation
from attractor.training.optimizers import Optimizer, declare, gradient_descent
from attractor.training.recording import record_steps
from attractor.training.stored.checkpoint import Checkpoint

HELD_OUT = 2048
"""Prompts that the risk of softmax attention is measured on."""
_LONGEST = 2**31


def train_in_context(
    task: RegressionTask,
    *,
    length: float,
    steps: int,
    attention: str = "softmax",
    heads: int = 1,
    parameterization: str = "factors",
    initialization: str | Blocks = "default",
    scale: float | None = None,
    learning_rate: float = 1e-3,
    optimizer: Optimizer | optax.GradientTransformation | None = None,
    half: bool = False,
    batch: int = 128,
    seeds: int = 1,
    seed: int = 0,
    draw: str = "auto",
    held_out: int = HELD_OUT,
    dtype: str = "float32",
    record: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    progress: bool | Callable[[float], None] = False,
) -> InContextTrajectory:
    """Trains attention to predict the label of a query from a prompt, on new prompts every step.

    Minimizes ``E (prediction - label)^2``, or half of it, where tokens ``(x, y)`` are attended to
    by the query ``(x_q, 0)`` and the last output of all heads is the prediction. Gradients are
    exact for the prompts drawn. What a step draws depends on the seed and the number of the step
    alone.

    Args:
        task: The law of prompts and queries.
        length: Number of tokens of a prompt. ``math.inf`` puts their covariance in place of the
            tokens; weights and queries are drawn as before.
        steps: Number of steps.
        attention: ``"softmax"``, or ``"linear"``: scores over the length, without a softmax.
        heads: Number of heads, whose predictions add up.
        parameterization: ``"factors"``: bias-free linear layers for keys, queries, values and the
            output, scores divided by ``sqrt(d + 1)``; ``"blocks"``: ``A`` and ``b`` themselves,
            with ``c = v = 0``; ``"all_blocks"``: ``A``, ``c``, ``v`` and ``b``.
        initialization: ``"default"``: layers as PyTorch starts them; ``"balanced"``:
            ``A = scale I / sqrt(d)``, ``b = scale``, further heads of alternating sign; or blocks
            of your own, with an axis of heads if there are several.
        scale: Of the balanced start; default: half the bound of the large-prompt paper.
        learning_rate: Of gradient descent.
        optimizer: Another optimizer, or optax transformation, in place of gradient descent.
        half: Whether the loss has the factor 1/2 of the theory; published code has it not.
        batch: Number of prompts of a step.
        seeds: Number of runs: seeds ``seed`` to ``seed + seeds - 1``.
        seed: The first seed. Names initial layers, prompts and held-out prompts.
        draw: How the prompts of a step are drawn, all of one law. Softmax: ``"tokens"``, every
            token, or ``"projections"``, for one head, only what enters of each; linear:
            ``"tokens"`` or ``"moments"``, their second moments. ``"auto"`` takes the fastest.
        held_out: Prompts that the risk of softmax attention is measured on, at finite length.
        dtype: Precision within a prompt, ``"float32"`` or ``"float64"``; parameters and everything
            else are in double precision.
        record: Steps to record; default: about 60, evenly spread over the logarithm of the step.
        checkpoint: A folder to write to every now and then. The same call resumes from there
            after a crash, and gives the very numbers of a run that was never interrupted.
        checkpoint_every: Seconds between two writes to it.
        progress: Whether to show a progress bar; or a callback, called with the number of steps
            just done, or restored from the checkpoint.

    Raises:
        InvalidInputError: If an argument cannot be used, or the checkpoint is of another run;
            nothing has been computed then.
        FileFormatError: If the checkpoint is damaged.

    Source:
        Boursier and Boyer, "Softmax as Linear Attention in the Large-Prompt Regime"
        (arXiv 2512.11784), in-context linear regression, and the code published with it.
    """
    check_flags(half=half)
    check_kind("task", task, RegressionTask, "Give RegressionTask(covariance)")
    length = check_length(length, task.dimension)
    steps = check_steps("steps", steps)
    heads = check_count("heads", heads)
    batch = check_count("batch", batch)
    seeds = check_count("seeds", seeds)
    held_out = check_count("held_out", held_out, least=2)
    seed = check_seed("seed", seed)
    check_seed("seed", seed + seeds - 1)
    check_choice("attention", attention, ("softmax", "linear"))
    check_choice("parameterization", parameterization, tuple(PARAMETERIZATIONS))
    draw = _check_draw(draw, attention, heads)
    recorded = record_steps(steps, record)
    validation.check_checkpoint(checkpoint, checkpoint_every)
    chosen = _check_optimizer(optimizer, learning_rate)
    model = PARAMETERIZATIONS[parameterization](task.dimension, heads)
    _check_size(task.dimension, length, heads, batch, held_out, draw)
    start, scale = _initial(initialization, scale, model, task)

    training = InContextTraining(
        model=model,
        attention=attention,
        draw=draw,
        length=length,
        batch=batch,
        half=bool(half),
        optimizer=chosen.example,
        dtype=check_choice("dtype", dtype, ("float32", "float64")),
    )
    trials = InContextTrials(training, task, chosen, start, seed=seed, held_out=held_out)
    settings = {
        "steps": steps,
        "attention": attention,
        "heads": heads,
        "parameterization": parameterization,
        "initialization": initialization if isinstance(initialization, str) else "given",
        "scale": scale,
        "learning_rate": float(learning_rate) if optimizer is None else None,
        "half": bool(half),
        "batch": batch,
        "seeds": seeds,
        "seed": seed,
        "draw": draw,
        "held_out": held_out,
        "dtype": dtype,
        "optimizer": {"name": chosen.name, **chosen.settings},
    }
    saved = None
    if checkpoint is not None:
        named = {"length": str(length), **settings}
        arrays = {
            "task.covariance": task.covariance,
            "task.query_covariance": task.query_covariance,
            "task.variances": np.array([task.weight_variance, task.label_noise, task.query_noise]),
            **{f"initial.{name}": array for name, array in (start or {}).items()},
        }
        saved = Checkpoint(checkpoint, named, arrays, checkpoint_every)
    run = functools.partial(loop.run, training, trials, seeds, recorded, checkpoint=saved)
    if callable(progress):
        records = run(advance=progress, skip=progress)
    else:
        with progress_bar("training", seeds * steps, enabled=progress) as advance:
            records = run(advance=advance, skip=advance.skip)
    numbers = np.arange(seed, seed + seeds)
    return InContextTrajectory(in_context_data(records, numbers, recorded), task, length, settings)


def _check_size(d: int, length: float, heads: int, batch: int, held_out: int, draw: str) -> None:
    """Refuses heads, prompts of a step and held-out prompts that do not fit into memory."""
    smaller = "Give shorter prompts, or fewer inputs"
    require_memory_for(
        "heads", heads, f"heads for {d:,} inputs", each=64.0 * d * (d + 1), otherwise=smaller
    )
    tokens = length if draw == "tokens" and math.isfinite(length) else 1
    prompt = 8.0 * ((tokens + 3) * (d + 1) + heads * (d + 1))  # single precision, twice
    prompts = f"prompts of {tokens:,} tokens in work at a time"
    require_memory_for("batch", batch, prompts, each=prompt, otherwise=smaller)
    require_memory_for(
        "held_out", held_out, f"prompts with {d:,} inputs", each=32.0 * (2 * d + 1),
        otherwise=smaller,
    )  # fmt: skip


def check_length(length: Any, dimension: int, argument: str = "length") -> float:
    """Checks that a length is a number of tokens that can be drawn, or infinite.

    Raises:
        InvalidInputError: If it is not.
    """
    number = isinstance(length, int | float | np.number) and not isinstance(length, bool)
    if number and math.isinf(length) and length > 0:
        return math.inf
    if not number or length != length or length < 1 or length != int(length):
        raise InvalidInputError(
            argument,
            f"it is {shown(length)}",
            "Give the number of tokens of a prompt, or math.inf",
        )
    if int(length) * (dimension + 1) > _LONGEST:
        raise InvalidInputError(
            argument, f"{float(length):g} tokens have too many entries", "Give math.inf"
        )
    return int(length)


def _check_draw(draw: Any, attention: str, heads: int) -> str:
    ways = tuple(way for kind, way in DRAWS if kind == attention)
    check_choice("draw", draw, ("auto", *ways))
    if draw == "auto":
        return "tokens" if attention == "softmax" and heads > 1 else ways[-1]
    if draw == "projections" and heads > 1:
        raise InvalidInputError(
            "draw", f"projections are drawn for one head, not {heads}", 'Give draw="tokens"'
        )
    return draw


def _check_optimizer(optimizer: Any, learning_rate: float) -> Optimizer:
    if optimizer is None:
        return gradient_descent(learning_rate)
    if isinstance(optimizer, optax.GradientTransformation) and not isinstance(optimizer, Optimizer):
        return declare(optimizer, geometry=None)
    validation.check_optimizer(optimizer)
    if optimizer.needs or optimizer.retract is not None:
        raise InvalidInputError(
            "optimizer",
            f"{optimizer.name} needs more than the gradient of a batch",
            "Give one that does not, such as gradient_descent(1e-3) or adam(1e-3)",
        )
    return optimizer


def _initial(
    initialization: Any, scale: Any, model: Model, task: RegressionTask
) -> tuple[dict[str, np.ndarray] | None, float | None]:
    """Initial parameters, or None for random ones; and the scale used."""
    balanced = isinstance(initialization, str) and initialization == "balanced"
    if scale is not None and not balanced:
        raise InvalidInputError(
            "scale", "only the balanced start has one", 'Give initialization="balanced"'
        )
    if isinstance(initialization, Blocks):
        given = initialization.flat_heads(task.dimension)
        if len(given.value_label) != model.heads:
            raise InvalidInputError(
                "initialization",
                f"it has {len(given.value_label)} heads where {model.heads} are requested",
                "Give as many heads as the argument heads says",
            )
        return _parameters(given, model), None
    check_choice("initialization", initialization, ("default", "balanced"))
    if not balanced:
        return None, None
    if scale is None:
        scale = initial_scale_bounds(task.covariance).large_prompt / 2
    one = balanced_initialization(task.covariance, scale)
    signs = (-1.0) ** np.arange(model.heads)
    heads = Blocks(*(np.multiply.outer(signs, block) for block in one))
    return _parameters(heads, model), float(scale)


def _parameters(blocks: Blocks, model: Model) -> dict[str, np.ndarray]:
    return {name: np.array(array, np.float64) for name, array in model.of_blocks(blocks).items()}
