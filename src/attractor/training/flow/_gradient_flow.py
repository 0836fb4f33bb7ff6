"""``gradient_flow``: gradient descent with infinitely small steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attractor.attention import Head, Loss, Parameterization
from attractor.attention.multi_head import one_attention_head
from attractor.geometry import Frobenius
from attractor.support.checks import check_choice, check_steps
from attractor.support.errors import InvalidInputError
from attractor.support.progress import progress_bar
from attractor.tokens import Tokens
from attractor.training import validation
from attractor.training.attention_records import Metric
from attractor.training.attention_training import AttentionTraining
from attractor.training.flow.records import flow_records
from attractor.training.inputs import check_inputs, weights_kept_at_end_only
from attractor.training.optimizers import gradient_descent
from attractor.training.trajectory import Trajectory

_TOLERANCES = (1e-12, 1e-1)


def gradient_flow(
    tokens: Tokens,
    head: Head,
    *,
    time: float | None = None,
    log_time: float | None = None,
    norm: float | None = None,
    seeds: int = 1,
    seed: int = 0,
    initial: Any = None,
    loss: str | Loss = "logistic",
    parameterization: str | Parameterization = "W",
    record: Any = None,
    tolerance: float = 1e-8,
    solver: str = "auto",
    max_steps: int = 10_000,
    weights: str = "auto",
    metrics: Mapping[str, Metric] | None = None,
    progress: bool = False,
) -> Trajectory:
    """Follows the gradient flow of every instance, from every seed.

    Solves ``dW/dt = -grad L(W)``, ``L = mean_ik loss(h(sum_t softmax(x_t^T W z)_t v_t), y_ik)``,
    and likewise for other parameters: ``dK/dt = -grad_K L``, ``dQ/dt = -grad_Q L``. Steps run
    along the arc length of the curve of parameters against log time, with gradients exact at any
    magnitude, so that times of exp(10^4) are reached. The flow ends at a time, at a norm of W, or
    at whichever comes first; a trial that reaches the norm before the time is terminated, with
    the status ``STOPPED``.

    Records are taken at common times, on the axis ``time``, or ``logarithmic_time`` where
    ``log_time`` was given; and at common norms, on the axis ``radius``, where only a norm was: a
    record there is the first point whose norm is no smaller, the beginning where it already is.
    ``log_time`` among the data is the logarithm of the time each trial had reached.

    ``conserved_drift`` is the change of what the exact flow conserves, relative to its scale:
    ``K^T K - Q^T Q`` for factors; for ``W`` and ``p``, the component outside the span of
    ``(x_s - x_t) z^T`` over pairs of tokens of one row. It is NaN where nothing is known to be
    conserved: the span is everything, or was not sought as W has more than 2,500 entries.

    A head with kinks, such as a ReLU head, has no gradient on them and the flow is not defined
    there; the derivative JAX takes is followed. A trial whose rows pull against each other in
    balance ends near t = exp(30) with the status ``BELOW_ROUNDING``: from there on, rounding the
    parameters turns the gradient.

    Args:
        tokens: Data sets with labels.
        head: The head: fixed, or where its training starts.
        time: The time to end at.
        log_time: Its logarithm instead, for times beyond floating point.
        norm: The norm of W to end at: the one recorded as ``norm``, Frobenius for W and p,
            nuclear for factors.
        seeds: Number of initial parameters per instance: seeds ``seed`` to ``seed + seeds - 1``.
        seed: The first seed.
        initial: Initial attention parameters instead of random ones, or the scale of these, one or
            several, as in ``train``.
        loss: The loss, as in ``train``.
        parameterization: What moves, as in ``train``.
        record: Times, logarithms of times, or norms to record at; the end is added. Default: the
            beginning, then 60 evenly spread over the logarithm of time or of the norm.
        tolerance: Error of a step, relative to parameters, or to the size at which a parameter
            changes scores by about one where they are smaller.
        solver: ``"explicit"`` (order eight, of Dormand and Prince), ``"implicit"`` (order five, of
            Kvaerno), which stiffness does not slow down, or ``"auto"``: explicit, and again
            implicit for the trials that prove stiff. Those are the ones that take more than 1,000
            steps, and five for every unit of length of the curve, beyond which the implicit
            solver gives up as well.
        max_steps: Steps to try in a trial; one that needs more is terminated there, with the
            status ``OUT_OF_STEPS``.
        weights: Which matrices to keep, as in ``train``.
        metrics: What to record besides, as in ``train``.
        progress: Whether to show a progress bar.

    Returns:
        The trajectory; ``steps_taken`` counts the steps of the solver.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been computed then.

    Example:
        >>> import attractor as at
        >>> tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=2)
        >>> run = at.gradient_flow(tokens, head, log_time=20.0)
        >>> at.verify(run).data.margin_ratio[:, 0, -1].values.round(2)
        array([0.91, 0.83])
    """
    records = flow_records(time, log_time, norm, record)
    layer = one_attention_head(parameterization, "gradient flow")
    inputs = check_inputs(tokens, head, loss, layer, initial, seeds, seed)
    tolerance = _check_tolerance(tolerance)
    check_choice("solver", solver, ("auto", "explicit", "implicit"))
    max_steps = check_steps("max_steps", max_steps)
    chosen = validation.check_metrics(metrics, inputs.axes)
    check_choice("weights", weights, ("auto", "all", "last"))

    count = inputs.count
    descent = gradient_descent(1.0)
    training = AttentionTraining(layer, inputs.loss, descent.example, metrics=chosen)
    trials = inputs.trials(training, descent)
    recorded = count * len(records.values)
    last_only = weights_kept_at_end_only(weights, trials, training, recorded)
    inputs.check_memory(len(records.values), last_only=bool(last_only))
    from attractor.training.flow.follow import follow  # which loads diffrax

    with progress_bar("gradient flow", count * len(records.targets), enabled=progress) as advance:
        measured = follow(
            training,
            trials,
            count,
            records,
            solver=solver,
            tolerance=tolerance,
            max_steps=max_steps,
            last_only=last_only,
            advance=advance,
        )
    return inputs.trajectory(
        measured,
        records.values,
        axis=records.axis,
        last_only=last_only,
        optimizer="gradient flow",
        geometry=layer.effective_geometry(Frobenius()),
        settings={
            "time": time,
            "log_time": log_time,
            "norm": norm,
            "dtype": "float64",
            "weights": "last" if last_only else "all",
            "optimizer": {"solver": solver, "tolerance": tolerance, "max_steps": max_steps},
        },
    )


def _check_tolerance(tolerance: Any) -> float:
    low, high = _TOLERANCES
    real = isinstance(tolerance, float | np.floating)
    if not real or not low <= tolerance <= high:
        raise InvalidInputError(
            "tolerance",
            f"{tolerance!r} is not an error that steps can keep to",
            f"Give a number from {low:g} to {high:g}",
        )
    return float(tolerance)
