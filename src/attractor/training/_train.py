"""``train``: tokens and a head in, the trajectory of training out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import numpy as np

from attractor.attention import Head, Loss, Parameterization
from attractor.support.checks import check_choice, check_steps
from attractor.support.errors import PrecisionWarning, warn_caller
from attractor.support.progress import progress_bar
from attractor.tokens import Tokens
from attractor.training import loop, validation
from attractor.training.attention_records import Metric
from attractor.training.attention_training import AttentionTraining
from attractor.training.inputs import Inputs, check_inputs, weights_kept_at_end_only
from attractor.training.mini_batches import check_batches
from attractor.training.objective import Condition
from attractor.training.optimizers import Optimizer
from attractor.training.recording import record_steps
from attractor.training.stored.checkpoint import Checkpoint
from attractor.training.trajectory import Trajectory


def train(
    tokens: Tokens,
    head: Head | eqx.Module,
    optimizer: Optimizer,
    *,
    steps: int,
    seeds: int = 1,
    seed: int = 0,
    initial: Any = None,
    loss: str | Loss | Callable[..., Any] = "logistic",
    parameterization: str | Parameterization = "W",
    batch_size: int | None = None,
    batch_order: str = "random",
    metrics: Mapping[str, Metric] | None = None,
    weights: str = "auto",
    dtype: str = "float64",
    kernel: str = "exact",
    record: Any = None,
    stop: Condition | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    progress: bool = False,
) -> Trajectory:
    """Trains an attention layer on every instance, from every seed.

    Minimizes ``L = mean_ik loss(h(sum_t softmax(x_t^T W z)_t v_t), y_ik)`` by the optimizer's
    steps, with gradients that are exact at any magnitude. Rows with one token to attend to count
    in the mean and have no gradient. A trial is one (instance, seed) pair; its numbers do not
    depend on which other trials run beside it.

    Args:
        tokens: Data sets with labels.
        head: The head: fixed, or where its training starts. Any Equinox module that maps one output
            vector to a number, or to a score for each class, will do. Several attention heads share
            it, or have one each, in a list.
        optimizer: The step; see ``normalized_gradient_descent`` and ``declare``. With several
            values of a hyperparameter, as in ``momentum([0.01, 0.03, 0.1])``, all are trained side
            by side, and it becomes an axis of the trajectory; of several such, every combination
            is trained. Its numbers are those of a call with one value, to the last bit. For numbers
            that change from step to step see ``power_decay`` and ``until``.
        steps: Number of steps.
        seeds: Number of initial parameters per instance: seeds ``seed`` to ``seed + seeds - 1``.
        seed: The first seed.
        initial: Initial attention parameters instead of random ones: ``W`` or ``p`` as an array,
            ``{"K": ..., "Q": ...}`` for both factors, each for all trials, with an axis of
            instances, or with axes of instances and seeds; of several attention heads with an axis
            of heads before those of an array. Default: uniform on [-1/sqrt(d),
            1/sqrt(d)]. A number multiplies these, every array of them; several, as in
            ``[0.01, 0.1, 1.0]``, are trained side by side, and ``initial_scale`` becomes an axis of
            the trajectory, as hyperparameters do. For a prompt vector a sequence is the vector.
        loss: ``"logistic"``, ``"exponential"``, ``"linear"``, ``"cross_entropy"``, ``"squared"`` or
            ``"negative_log"``; a ``Loss``; or a function of a prediction and a label.
        parameterization: What is trained: the matrix ``"W"`` itself; its factors ``"KQ"``, or
            ``KeyQuery(width)``; a prompt vector ``"p"``, or ``PromptVector(weights)``; four
            attention heads of any of these, ``"4 x W"`` or ``MultiHead("W", 4)``; and the
            head beside any of these: ``"(v, W)"``, ``"(v, 4 x p)"``, or ``Joint(...)``.
        batch_size: Sequences in a step; default: all.
        batch_order: ``"random"``: batches are drawn without replacement, anew at every step.
            ``"shuffled"``: an epoch goes through all sequences in a random order, each epoch in
            another. ``"cyclic"``: every epoch goes through them in the order they have, which with
            ``batch_size=1`` is the incremental, or per-sample, training of *Implicit Bias of
            Per-sample Adam* (arXiv 2510.26303). For both the batch size divides the number of
            sequences. Batches depend on seed, instance and step alone.
        metrics: Further quantities to record, by name: functions of a ``Snapshot``, which JAX
            traces. The same function object each time compiles once. For singular values take
            those of ``attractor.geometry``: two programs of JAX's own batched ones can block each
            other.
        weights: ``"all"`` keeps the matrices of every recorded step, ``"last"`` those of the last
            one; ``"auto"`` keeps all as long as they fit in 1 GB.
        dtype: ``"float64"``, or ``"float32"`` at the price of a warning.
        kernel: ``"exact"``: gradients are exact at any magnitude. ``"plain"``: automatic
            differentiation of the softmax, as published code does it, for comparison;
            past score gaps of 36 (16 in float32) such gradients are rounding noise, or zero.
        record: Steps to record; default: about 60, evenly spread over the logarithm of the step.
        stop: A condition on what is recorded of a trial, which JAX traces, such as
            ``lambda record: record["loss"] < 1e-3``. It is evaluated where training is recorded;
            a trial that meets it is terminated there, with the status ``STOPPED``.
        checkpoint: A folder to write to every ``checkpoint_every`` seconds. The same call resumes
            from there after a crash, with the very numbers of a run that was never interrupted, on
            any number of threads and devices of the same kind; if the run was complete, it returns
            at once. Every argument that bears on the numbers must be the same, ``steps`` included.
        checkpoint_every: Seconds between two writes to it.
        progress: Whether to show a progress bar.

    Raises:
        InvalidInputError: If an argument cannot be used, or the checkpoint is of another run;
            nothing has been computed then.
        FileFormatError: If the checkpoint is damaged.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=1000, seeds=3)
        >>> run.W().shape
        (2, 3, 6, 6)
    """
    inputs = check_inputs(tokens, head, loss, parameterization, initial, seeds, seed)
    validation.check_optimizer(optimizer, several=True)
    layer = inputs.parameterization
    geometry = optimizer.effective_geometry(layer)
    if "log_excess" in optimizer.needs:
        validation.refuse_weights(inputs.tokens, optimizer.name)
    steps = check_steps("steps", steps)
    batch_size, batch_order = check_batches(batch_size, batch_order, inputs.tokens.sequences)
    chosen = validation.check_metrics(metrics, {**optimizer.axes, **inputs.axes})
    check_choice("weights", weights, ("auto", "all", "last"))
    check_choice("dtype", dtype, ("float64", "float32"))
    check_choice("kernel", kernel, ("exact", "plain"))
    recorded = record_steps(steps, record)
    validation.check_checkpoint(checkpoint, checkpoint_every)
    if dtype == "float32" and kernel == "exact":  # with "plain", noise is intended
        warn_caller(
            "training in float32: directions carry about 5 digits at score gaps of 80",
            PrecisionWarning,
        )

    training = AttentionTraining(
        layer, inputs.loss, optimizer.example, batch_size, chosen, kernel, batch_order
    )
    trials = inputs.trials(training, optimizer, dtype)
    count = len(optimizer.variants) * inputs.count
    last_only = weights_kept_at_end_only(weights, trials, training, count * len(recorded))
    settings = {
        **inputs.settings,
        "steps": steps,
        "batch_size": batch_size,
        **({} if batch_size is None else {"batch_order": batch_order}),
        "dtype": dtype,
        "kernel": kernel,
        "weights": "last" if last_only else "all",
        "optimizer": dict(optimizer.settings),
    }
    saved = None
    if checkpoint is not None:
        named = {**settings, "optimizer": {"name": optimizer.name, **optimizer.settings}}
        named["metrics"] = dict(chosen)
        saved = Checkpoint(checkpoint, named, _data(inputs), checkpoint_every)
    with progress_bar("training", count * steps, enabled=progress) as advance:
        records = loop.run(
            training,
            trials,
            count,
            recorded,
            instances=count // inputs.seeds,
            last_only=last_only,
            stop=stop,
            checkpoint=saved,
            advance=advance,
            skip=advance.skip,
        )
    return inputs.trajectory(
        records,
        recorded,
        optimizer=optimizer.name,
        geometry=geometry,
        settings=settings | inputs.heads_settings(optimizer),
        last_only=last_only,
        hyperparameters=optimizer.axes,
    )


def _data(inputs: Inputs) -> dict[str, np.ndarray | None]:
    """Every array that training starts from, by name."""
    tokens = inputs.tokens
    found = {f"tokens.{field.name}": getattr(tokens, field.name) for field in fields(tokens)}
    for path, leaf in jax.tree.leaves_with_path(inputs.head):
        found[f"head{jax.tree_util.keystr(path)}"] = np.asarray(leaf)
    return found | {f"initial.{name}": array for name, array in (inputs.initial or {}).items()}
