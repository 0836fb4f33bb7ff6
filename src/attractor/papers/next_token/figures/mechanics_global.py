"""Attention trained on labels that conflict: its direction, its finite part, and its loss floor."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import optax
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.corpora.mechanics import (
    AttentionLimits,
    attention_limits,
    ball_path,
    chord_test,
    conflicting_corpora,
    label_mass_tokens,
    measure_limits,
)
from attractor.corpora.mechanics.limits import measure_matrices
from attractor.geometry import Frobenius
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size, stacked
from attractor.plots.bands import band
from attractor.plots.design.look import COLORS, panels_on_page
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.plots.design.roles import DASH_DOTTED, DASHED, DOTTED, SOLID
from attractor.results.paper import MECHANICS
from attractor.training import train
from attractor.training.optimizers import (
    Optimizer,
    declare,
    gradient_descent,
    normalized_gradient_descent,
)

_KINDS = ("with cycles", "without")
_LOOKS: dict[str, dict[str, Any]] = {
    "with cycles": {"color": COLORS["orange"], "linestyle": SOLID},
    "without": {"color": COLORS["blue"], "linestyle": DASHED},
}
_STEP, _STEPS = 0.01, 4000
_FADING = 1000
"""Further steps, over which those of the run with shorter steps fall to a hundredth."""
_DESCENTS: dict[str, dict[str, Any]] = {
    "steps of .01": {"color": COLORS["orange"], "linestyle": SOLID},
    "shorter from 4,000 on": {"color": COLORS["purple"], "linestyle": DASH_DOTTED},
    "gradient descent": {"color": COLORS["green"], "linestyle": DASHED},
}
_SAME_RADIUS = 300.0


def _compute(request: Request) -> xr.Dataset:
    settings, count = request.settings, request.seeds
    drawn = [
        conflicting_corpora(count, cyclic=cyclic, seed=request.seed) for cyclic in (True, False)
    ]
    corpora = [corpus for half in drawn for corpus in half.corpora]
    embeddings = np.concatenate([half.embeddings for half in drawn])
    limits = attention_limits(corpora, embeddings)
    tokens, head = label_mass_tokens(corpora, embeddings)
    request.uses("conflicting corpora", tokens, head)
    runs = (
        (normalized_gradient_descent(_STEP), _STEPS),
        (_shorter_steps(), _STEPS + _FADING),
        (gradient_descent(1.0), settings["steps"]),
    )
    found = {}
    for number, ((optimizer, steps), name) in enumerate(zip(runs, _DESCENTS, strict=True)):
        spread = [[0], np.geomspace(1, steps, 70), np.arange(0, steps, steps // 40)]
        record = np.unique(np.concatenate(spread).round())
        run = train(
            tokens, head, optimizer, steps=steps, loss="negative_log", seed=request.seed,
            record=record.astype(int).tolist(), checkpoint=request.checkpoint(f"run {number}"),
            progress=request.progress,
        )  # fmt: skip
        found[name] = _by_kind(measure_limits(run, limits).isel(seed=0, drop=True), count)
    data = found["steps of .01"]
    for number, name in enumerate(_DESCENTS):
        one = found[name]["finite_distance"].sel(kind="with cycles", drop=True)
        data[f"distance_{number}"] = one.rename(step=f"step_{number}")
    chords = chord_test(tokens, head, chords=200, seed=request.seed)
    data["violations"] = ("kind", chords.violations.reshape(2, count).sum(1))
    data["chords"] = ("kind", np.full(2, 200 * count))
    data["redraws"] = (("kind", "data_set"), np.stack([half.redraws for half in drawn]))
    return data.merge(_paths(limits, settings["radii"], count))


@functools.cache  # the same object compiles once
def _shorter_steps() -> Optimizer:
    schedule = optax.exponential_decay(_STEP, _FADING, 0.01, _STEPS)
    return declare(
        optax.chain(optax.normalize_by_update_norm(), optax.scale_by_learning_rate(schedule)),
        geometry=Frobenius(),
        gradient_scale="global",
        name="normalized gradient descent with shorter steps",
    )


def _by_kind(measured: xr.Dataset, count: int) -> xr.Dataset:
    """Data sets with cycles beside those without."""
    halves = [measured.isel(instance=slice(k * count, (k + 1) * count)) for k in (0, 1)]
    named = [
        half.rename(instance="data_set").assign_coords(data_set=np.arange(count)) for half in halves
    ]
    return stacked(named, "kind", _KINDS)


def _paths(limits: tuple[AttentionLimits, ...], count_radii: int, count: int) -> xr.Dataset:
    radii = np.unique([*np.geomspace(1, 1e4, count_radii), _SAME_RADIUS])
    paths = [ball_path(one, radii) for one in limits]
    shape = (2, count, len(radii))
    along = ("kind", "data_set", "radius")
    correlations = [
        measure_matrices(path.W, one)["correlation"]
        for path, one in zip(paths, limits, strict=True)
    ]
    return xr.Dataset(
        {
            "path_correlation": (along, np.reshape(correlations, shape)),
            "path_log_distance": (along, np.reshape([p.log_distance for p in paths], shape)),
            "path_optimality": (along, np.reshape([p.optimality for p in paths], shape)),
        },
        {"radius": radii, "kind": list(_KINDS), "data_set": np.arange(count)},
    )


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(step=-1)
    distances = [float(data[f"distance_{n}"].isel({f"step_{n}": -1}).mean()) for n in range(3)]
    found, spans = [], []
    for kind in _KINDS:
        words = kind + (" cycles" if kind == "without" else "")
        name = f"data sets {words}"
        one = last.sel(kind=kind)
        spans.append(f"{words} {one['correlation'].min():.3f} to {one['correlation'].max():.3f}")
        found += [
            at_least(f"{name}: least correlation with W_svm", one["correlation"].min(), 0.96),
            at_most(f"{name}: mass off the component of the label, mean",
                    np.exp(one["log_mass_outside"]).mean(), 0.005),
            at_most(f"{name}: loss above its floor, mean", np.exp(one["log_excess"]).mean(), 0.01),
            at_most(f"{name}: chords that the loss rises above",
                    data["violations"].sel(kind=kind), 0),
            at_most(f"{name}: 1 - correlation at the end of the regularization path",
                    (1 - data["path_correlation"]).sel(kind=kind).isel(radius=-1).max(), 1e-6),
        ]  # fmt: skip
    floors = last["loss_floor"].sel(kind="with cycles") / np.log(2)
    away = data["path_log_distance"].sel(kind="with cycles", radius=_SAME_RADIUS)
    return Readings(
        *found,
        at_least(
            "steps of .01: mean distance from W_fin, half a step", distances[0], 0.004, "bouncing"
        ),
        at_most("the same, from above", distances[0], 0.006),
        at_most("shorter steps: mean distance over that", distances[1] / distances[0], 0.25),
        at_most("gradient descent: mean distance from W_fin", distances[2], 0.0025, "plain"),
        at_most("path: largest distance from W_fin at R = 300", np.exp(away.max()), 1e-9),
        at_most("path: largest relative Frank-Wolfe gap", data["path_optimality"].max(), 1e-12),
        redraws=data["redraws"].sum("data_set"),
        steps=_STEPS,
        step=_STEP,
        spans="; ".join(spans),
        shorter=distances[1],
        least_floor=floors.min(),
        largest_floor=floors.max(),
        chords=int(data["chords"].sum()),
        violations=int(data["violations"].sum()),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(4.5, 2, 3)
    correlation, distance, mass, loss, path, path_distance = panels.ravel()
    for kind in _KINDS:
        one, look = data.sel(kind=kind), _LOOKS[kind]
        label = f"data sets {kind}" + (" cycles" if kind == "without" else "")
        band(correlation, one["correlation"], "step", label=label, look=look)
        for axes, name in ((mass, "log_mass_outside"), (loss, "log_excess")):
            axes.set_yscale("log")
            values: Any = np.exp(one[name])
            band(axes, values, "step", look=look)
        path.set(xscale="log", yscale="log")
        band(path, 1 - one["path_correlation"], "radius", look=look)
    outside = data["correlation_outside"].sel(kind="with cycles").median("data_set")
    dotted: dict[str, Any] = {"color": COLORS["black"], "linestyle": DOTTED}
    correlation.plot(outside["step"], outside, label="with cycles, less the cyclic part", **dotted)
    _distances(distance, data)
    path_distance.set_xscale("log")
    near = data["path_log_distance"].sel(kind="with cycles") / np.log(10)
    band(path_distance, near.where(near["radius"] <= _SAME_RADIUS, drop=True), "radius",
         look=_LOOKS["with cycles"])  # fmt: skip
    correlation.set(title="correlation with $W_{svm}$", xlabel="iteration", ylim=(None, 1.01))
    mass.set(title="mass off the component", xlabel="iteration")
    loss.set(title="loss above its floor", xlabel="iteration")
    path.set(title="regularization path:\n1 \N{MINUS SIGN} correlation", xlabel="radius $R$")
    path_distance.set(
        title=r"regularization path:"
        "\n"
        r"$\log_{10} \|P_{cyc} W - W_{fin}\|$",
        xlabel="radius $R$",
    )
    panel_letters(panels.ravel())
    shared_legend(figure, [correlation])
    return figure


def _distances(axes: Axes, data: xr.Dataset) -> None:
    axes.set(xscale="log", yscale="log", xlabel="iteration", ylim=(2e-6, 1))
    axes.set_title(r"$\|P_{cyc} W - W_{fin}\|$, with cycles")
    for number, (name, look) in enumerate(_DESCENTS.items()):
        mean = data[f"distance_{number}"].mean("data_set")
        axes.plot(mean[f"step_{number}"], mean, label=name, **look)
    axes.axhline(_STEP / 2, color=COLORS["gray"], linewidth=0.9, linestyle=(0, (1, 2)))
    axes.legend(loc="lower left")


MECHANICS_GLOBAL = Figures(MECHANICS, "next-token").figure(
    "mechanics-global",
    "labels that conflict: direction, finite part, mass and loss floor of attention",
    statement="experiment: global convergence of gradient descent with log-loss",
    published=(
        "correlation, norm difference, projected correlation and softmax mass of 10 data sets "
        "against the iteration"
    ),
    sizes=by_size(seeds=[10, 20, 100], steps=[4000, 20_000, 40_000], radii=[7, 17, 17]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Attention trained on {sizes[data_set]} corpora whose token-priority graphs have cycles, "
        "since labels conflict, and {sizes[data_set]} without: 6 tokens in 8 dimensions, 6 "
        "contexts of 4, the log-loss of attention mass on the label, from the start of a linear "
        "layer ({redraws[with cycles]} and {redraws[without]} draws were thrown away). Medians "
        "over data sets, with the 10th to 90th percentiles. (a) Correlation with the solution of "
        "the graphs' margin problem, by {steps:,} normalized steps of {step:g}; in the end "
        "{spans}. (b) Mean distance of the part in the cyclic subspace from the finite part. Steps "
        "of constant length bounce about it at half their length ({bouncing:.4f}; dotted); as "
        "steps get shorter after {steps:,} it falls to {shorter:.4f}, and by {last[step_2]:,} "
        "steps of plain gradient descent, of rate 1, to {plain:.4f}. (c) Attention mass off the "
        "component of the label, mean over samples. (d) Loss above its floor, the entropy of the "
        "cyclic part: between {least_floor:.3g} and {largest_floor:.3g} log 2 with cycles, and "
        "zero without. (e, f) Minimizers of the loss over balls of radius R tend to the same "
        "limits, exponentially in R within the cyclic subspace. The loss lies below {chords:,} "
        "random chords, with {violations} exceptions."
    ),
)
