"""``bias_matrix``: every optimizer on the same problems, measured in every norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attractor.analysis.bias.matched_start import MARGIN, matched_start
from attractor.analysis.bias.methods import NORMS, Method, standard_methods
from attractor.analysis.bias.ratios import margin_ratios, reached_selections, solve_reached
from attractor.analysis.bias.result import BiasMatrix
from attractor.analysis.bias.runs import check_methods, halfway, run_method
from attractor.attention import Head, get_loss
from attractor.checks import check_flags, check_items, check_steps
from attractor.errors import InvalidInputError, TrialStatus
from attractor.geometry import Geometry, get_geometry
from attractor.margin.methods import methods_for
from attractor.randomness import check_seed
from attractor.tokens import Tokens
from attractor.training import Trajectory
from attractor.training.validation import check_head, check_tokens, refuse_weights

if TYPE_CHECKING:
    import xarray as xr


def bias_matrix(
    tokens: Tokens,
    head: Head,
    *,
    methods: Sequence[Method] | None = None,
    norms: Sequence[Geometry | str] = NORMS,
    steps: int = 6000,
    seed: int = 0,
    loss: str = "logistic",
    matched: bool = False,
    progress: bool = False,
) -> BiasMatrix:
    """Trains every method on every data set, and measures where it went in every norm.

    The measure is the normalized margin ratio ``(min_j a_j^T W b_j / ||W||) ||W*||``, where the
    margin problem, and so its solution W* in that norm, is that of the tokens which the run
    attends to at its end. Each run is thus held against the best margin for its own selection,
    and rows can be compared although runs may select different tokens.

    Args:
        tokens: Data sets with labels, along an axis of instances.
        head: The fixed head.
        methods: The rows; default: ``standard_methods("paper", steps)``.
        norms: The columns. The norm a method is known to descend is measured besides.
        steps: Number of steps of methods that do not bring their own.
        seed: Seed of the random initial weights.
        loss: The loss.
        matched: Whether all methods start from one matrix that keeps the optimal tokens, five
            times the Frobenius solution for them, in place of random weights. Then the
            selections agree, and with them the margin problems.
        progress: Whether to show progress bars.

    Raises:
        InvalidInputError: If an argument cannot be used; nothing has been trained then.
    """
    check_flags(matched=matched)
    check_tokens(tokens, get_loss(loss))
    refuse_weights(tokens, "the matrix of optimizers and norms")
    if tokens.instances is None:
        raise InvalidInputError(
            "tokens", "they are one data set", "Give several, along a first axis of instances"
        )
    head = check_head(head, tokens)
    steps = check_steps("steps", steps)
    check_seed("seed", seed)
    if methods is not None:
        methods = check_items("methods", methods, Method)
    norms = check_items("norms", norms, Geometry | str, 1)
    rows = standard_methods("paper", steps) if methods is None else tuple(methods)
    check_methods(rows, tokens)
    columns = _columns(norms, rows)
    start = matched_start(tokens, head) if matched else None
    runs = [
        run_method(
            row, tokens, head, steps=steps, seed=seed, loss=loss, start=start, progress=progress
        )
        for row in rows
    ]
    data = _measure(tokens, rows, runs, columns, steps, progress)
    compared = {get_geometry(norm).name for norm in norms}
    data["compared"] = ("norm", [name in compared for name in data["norm"].values])
    start_words = f"{MARGIN:g} times the Frobenius solution for the optimal tokens"
    data.attrs = {
        "n": tokens.sequences,
        "T": tokens.length,
        "d": tokens.key_dimension,
        "seed": seed,
        "loss": loss,
        "start": start_words if matched else "random",
    }
    return BiasMatrix(data)


def _columns(norms: Sequence[Geometry | str], rows: Sequence[Method]) -> list[Geometry]:
    """The norms asked for, and those that methods are known to descend; all can be solved in."""
    own = [row.own_norm for row in rows if row.own_norm is not None]
    columns = {norm.name: norm for norm in map(get_geometry, (*norms, *own))}
    for norm in columns.values():
        methods_for(norm)
    return list(columns.values())


def _measure(
    tokens: Tokens,
    rows: Sequence[Method],
    runs: Sequence[Trajectory],
    norms: list[Geometry],
    steps: int,
    progress: bool,
) -> xr.Dataset:
    """Everything that is known of the runs, labeled."""
    import xarray as xr

    weights = [run.data["W"].isel(seed=0).to_numpy() for run in runs]
    reached = reached_selections(tokens, np.stack([W[:, -1] for W in weights]))
    solutions, number = solve_reached(tokens, reached, norms, progress=progress)
    records = max(W.shape[1] for W in weights)
    instances = range(len(tokens.instance_numbers))
    curves = np.full((len(rows), len(norms), len(instances), records), np.nan)
    recorded = np.full((len(rows), records), np.nan)
    sizes = np.full((len(rows), len(instances), records), np.nan)
    ratios_halfway, movement = np.full(curves.shape[:3], np.nan), np.full(number.shape, np.nan)
    for row, (method, run, W) in enumerate(zip(rows, runs, weights, strict=True)):
        own = np.s_[records - W.shape[1] :]  # shorter runs are filled up in front
        middle = int(np.flatnonzero(run.steps == halfway(method.steps or steps))[0])
        recorded[row, own] = run.steps
        sizes[row, :, own] = run.data["norm"].isel(seed=0).to_numpy()
        change = np.linalg.norm(W[:, -1] - W[:, middle], axis=(-1, -2))
        movement[row] = change / np.linalg.norm(W[:, -1], axis=(-1, -2))
        for instance in instances:
            found = margin_ratios(W[instance], solutions, int(number[row, instance]), norms)
            curves[row, :, instance, own] = found
            ratios_halfway[row, :, instance] = found[:, middle]
    status = np.stack([run.data["status"].isel(seed=0).to_numpy() for run in runs])
    index = np.where(reached.sum(-1) == 1, reached.argmax(-1), -1)
    gaps = np.moveaxis(solutions.gaps[:, number], 0, 1)
    trial = ("optimizer", "instance")
    variables: dict[str, Any] = {
        "margin_ratio": (("optimizer", "norm", "instance"), curves[..., -1]),
        "margin_ratio_halfway": (("optimizer", "norm", "instance"), ratios_halfway),
        "margin_ratio_curve": (("optimizer", "norm", "instance", "record"), curves),
        "step": (("optimizer", "record"), recorded),
        "norm_of_W": (("optimizer", "instance", "record"), sizes),
        "gap": (("optimizer", "norm", "instance"), gaps),
        "reached": ((*trial, "sequence", "query"), index),
        "status": (trial, status),
        "W": ((*trial, "row", "column"), np.stack([W[:, -1] for W in weights])),
        "trained": (trial, status == TrialStatus.TRAINED),
        "movement": (trial, movement),
        "own_norm": ("optimizer", [_name(row.own_norm) for row in rows]),
        "steps": ("optimizer", [row.steps or steps for row in rows]),
        "parameterization": ("optimizer", [row.layer.name for row in rows]),
        "settings": ("optimizer", [row.settings for row in rows]),
        "reads": ("optimizer", [row.reads or row.optimizer.reads for row in rows]),
    }
    return xr.Dataset(
        variables,
        {
            "optimizer": [row.name for row in rows],
            "norm": [geometry.name for geometry in norms],
            "instance": tokens.instance_numbers,
        },
    )


def _name(geometry: Geometry | None) -> str:
    return "" if geometry is None else geometry.name
