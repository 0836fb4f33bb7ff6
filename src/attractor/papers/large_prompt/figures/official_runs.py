"""The published runs: error of trained heads by length, beside the best predictors."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size, close_to
from attractor.plots.design.look import COLORS, panels_on_page
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.plots.design.roles import DASH_DOTTED, DASHED, DOTTED, SOLID
from attractor.prompts.regression import (
    InContextRuns,
    RegressionTask,
    linear_attention_optimum,
    ridge_risk,
    small_score_optimum,
    softmax_optimum,
)
from attractor.prompts.regression.runs import (
    OFFICIAL_LENGTHS,
    OFFICIAL_SEED,
    official_experiment,
    run_name,
)
from attractor.results.paper import LARGE_PROMPT
from attractor.support.errors import InvalidInputError
from attractor.training import adam

PATHS = {"as run": True, "as intended": False}
"""Ways the data are drawn: as the published code draws them, or as it means to."""
_OPTIMIZERS: dict[str, dict[str, Any]] = {
    "as published": {},
    "Adam": {"optimizer": adam(0.01)},
}
"""Settings of training beside those published; with Adam few steps leave the plateau."""
_TITLES = {"as run": "data as the published code draws them", "as intended": "data as intended"}
_LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    "softmax": ("best softmax head", {"color": COLORS["blue"], "linestyle": SOLID}),
    "linear": ("best linear attention", {"color": COLORS["orange"], "linestyle": DASHED}),
    "opposite heads": ("two opposite heads", {"color": COLORS["green"], "linestyle": DOTTED}),
    "ridge": ("ridge regression", {"color": COLORS["black"], "linestyle": DASH_DOTTED}),
}
_MARKERS = {"softmax": "o", "linear": "s"}
_KNOWN = {
    ("as run", "linear"): {10: 0.6741, 50: 0.3793, 100: 0.2769, 1000: 0.1239},
    ("as intended", "linear"): {10: 0.4642, 50: 0.2109, 100: 0.1598, 1000: 0.1064},
    ("as run", "ridge"): {10: 0.2920, 50: 0.1326, 100: 0.1158, 1000: 0.1015},
    ("as intended", "ridge"): {10: 0.1886, 50: 0.1111, 100: 0.1053, 1000: 0.1005},
    ("as intended", "softmax"): {10: 0.657, 30: 0.431, 100: 0.253, 300: 0.161, 1000: 0.119},
}
"""Mean squared errors computed independently; those of softmax by training with Adam."""
_NEAR = {"linear": 6e-5, "ridge": 1e-3, "softmax": 4e-3}
_NEAR_OPTIMUM = {10: 0.821, 30: 0.654, 100: 0.447, 300: 0.292, 1000: 0.199}
"""Errors that training with Adam reached, on data as run: the optimum lies no higher."""
_REACHED = 4e-3
_WITHIN = 1.1
"""Error of a settled run, less three standard errors, over that of the best head, at most."""
_TICKS = ([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])


def _compute(request: Request) -> xr.Dataset:
    lengths = request.settings["lengths"]
    found, zeros = np.empty((len(PATHS), len(_LOOKS), len(lengths))), np.empty(len(PATHS))
    for place, (path, as_run) in enumerate(PATHS.items()):
        task = RegressionTask.official(as_run=as_run)
        zeros[place] = task.mean_squared_error(task.risk_of_zero)
        request.uses(path, covariance=task.covariance)
        with request.bar(f"best softmax heads, {path}", len(lengths)) as advance:
            for column, length in enumerate(lengths):
                risks = {
                    "softmax": softmax_optimum(task, length).risk,
                    "linear": linear_attention_optimum(task, length).risk,
                    "opposite heads": small_score_optimum(task, length).risk,
                    "ridge": float(ridge_risk(task, length, seed=request.seed).risk),
                }
                risk = np.array([risks[name] for name in _LOOKS])
                found[place, :, column] = task.mean_squared_error(risk)
                advance(1)
    best = xr.Dataset(
        {
            "error": (("path", "predictor", "length"), found),
            "error_of_zero": ("path", zeros),
        },
        {"path": list(PATHS), "predictor": list(_LOOKS), "length": list(lengths)},
    )
    runs, path = _runs(request)
    data = runs.to_xarray()
    plateau = xr.DataArray([run.on_plateau.values for run in runs.runs], dims=("run", "seed"))
    last = data.isel(step=-1, head=0)
    trained = xr.Dataset(
        {
            "trained_error": runs.task.mean_squared_error(last["risk"].drop_vars("step")),
            "standard_error": 2 * last["risk_error"].drop_vars("step"),
            "on_plateau": plateau,
        }
    ).rename(length="trained_length")
    optimizer = runs.runs[0].settings["optimizer"]
    words = f"{optimizer['name'].split(',')[0]} with rate {optimizer['learning_rate']:g}"
    return best.merge(trained).assign_attrs(
        trained_path=path, steps=int(runs.runs[0].steps[-1]), optimizer=words
    )


def _runs(request: Request) -> tuple[InContextRuns, str]:
    """The user's own runs or new ones, and the way that their data were drawn."""
    if request.source is None:
        runs = official_experiment(
            lengths=request.settings["trained_lengths"],
            steps=request.settings["steps"],
            seed=OFFICIAL_SEED + request.seed,
            seeds=request.seeds,
            checkpoint=request.checkpoint("runs"),
            progress=request.progress,
            **_OPTIMIZERS[request.settings["optimizer"]],
        )
    else:
        every = InContextRuns.load(request.source).runs
        chosen = tuple(run for run in every if run.length in request.settings["lengths"])
        if not chosen or any(list(run.steps) != list(chosen[0].steps) for run in chosen):
            raise InvalidInputError(
                "data",
                "its runs have different steps, or none has a length that is shown",
                f"Give runs of one official_experiment with lengths of "
                f"{list(request.settings['lengths'])}",
            )
        runs = InContextRuns(chosen)
        named = {run_name(run.settings["attention"], run.length): run for run in chosen}
        request.uses("runs", **{name: run.data["key_query"].values for name, run in named.items()})
    for path, as_run in PATHS.items():
        if runs.task.equals(RegressionTask.official(as_run=as_run)):
            return runs, path
    raise InvalidInputError(
        "data", "its runs are not on the published task", "Give runs of official_experiment"
    )


def _best(data: xr.Dataset) -> xr.DataArray:
    """Error of the best head of the kind and length of each run."""
    return data["error"].sel(
        path=data.attrs["trained_path"], predictor=data["attention"], length=data["trained_length"]
    )


def _errors(of_path: xr.DataArray) -> str:
    """Errors of every predictor on prompts of three lengths, in words."""
    shown = of_path.sel(length=[10, 100, 1000])
    return ", ".join(
        f"{name} {'/'.join(f'{error:.4f}' for error in shown.sel(predictor=name).values)}"
        for name in _LOOKS
    )


def _readings(data: xr.Dataset) -> Readings:
    error = data["error"]
    found = []
    for (path, predictor), known in _KNOWN.items():
        curve = error.sel(path=path, predictor=predictor)
        found += [
            close_to(f"{path}, {predictor}, {length} tokens", curve.sel(length=length), value,
                     _NEAR[predictor])
            for length, value in known.items()
        ]  # fmt: skip
    curve = error.sel(path="as run", predictor="softmax")
    found += [
        at_least(f"as run, softmax trained with Adam over the optimum, {length} tokens",
                 value + _REACHED - float(curve.sel(length=length)), 0)
        for length, value in _NEAR_OPTIMUM.items()
    ]  # fmt: skip
    for above, below in (("softmax", "linear"), ("linear", "ridge")):
        ratio = error.sel(predictor=above) / error.sel(predictor=below)
        found.append(at_least(f"smallest error of {above} over {below}", ratio.min(), 1.0))
    last, best = data["trained_error"], _best(data)
    over = (last - 3 * data["standard_error"]) / best
    settled = data["verdict"] == "settled"
    zero = float(data["error_of_zero"].sel(path=data.attrs["trained_path"]))
    found.append(
        at_most("largest trained error over that of predicting zero", last.max() / zero, 1.1)
    )
    for kind in np.unique(data["attention"]):
        ours = data["attention"] == kind
        below = (best - last) / data["standard_error"].where(data["standard_error"] > 0, 1e-9)
        words = "standard errors" if kind == "softmax" else "billionths"
        found.append(at_most(f"{kind}: trained below the best head, in {words}",
                             below.where(ours).max(), 4.0))  # fmt: skip
        if bool((settled & ours).any()):
            found.append(at_most(f"{kind}: largest error of a settled run, less three of its "
                                 "standard errors, over the best",
                                 over.where(settled & ours).max(), _WITHIN))  # fmt: skip
    return Readings(
        *found,
        errors="; ".join(f"{path}: {_errors(error.sel(path=path))}" for path in PATHS),
        waiting=int(data["on_plateau"].sum()),
        settled=int(settled.sum()),
        trained=data["on_plateau"].size,
        runs=data.sizes["run"],
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(3.0, 1, 2, sharey=True)
    for axes, path in zip(panels, PATHS, strict=True):
        axes.set_title(_TITLES[path])
        for name, (label, look) in _LOOKS.items():
            curve = data["error"].sel(path=path, predictor=name)
            axes.plot(data["length"], curve, label=label, **look)
        if path == data.attrs["trained_path"]:
            _points(axes, data)
        axes.set(xscale="log", yscale="log", xlabel="tokens in the prompt, $L$")
        axes.set_xticks(*_TICKS)
        zero = float(data["error_of_zero"].sel(path=path))
        for level, words, offset in ((0.1, "noise of the label", -8), (zero, "predicting zero", 2)):
            axes.axhline(level, color=COLORS["gray"], linewidth=0.8, linestyle=DOTTED, zorder=1)
            axes.annotate(words, (0.02, level), (0, offset), color="#555555", fontsize=6.5,
                          textcoords="offset points",
                          xycoords=("axes fraction", "data"))  # fmt: skip
        axes.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
        axes.minorticks_off()
    panels[0].set(ylabel="mean squared error", ylim=(0.078, 1.5))
    panel_letters(panels)
    shared_legend(figure, panels, columns=4)
    return figure


def _points(axes: Axes, data: xr.Dataset) -> None:
    """Trained heads: filled where training settled, and crossed where it is on the plateau."""
    for kind, marker in _MARKERS.items():
        one = data.isel(run=data["attention"].values == kind)
        if not one.sizes["run"]:
            continue
        color = _LOOKS[kind][1]["color"]
        errors = one["trained_error"].transpose("run", "seed").values
        places = np.broadcast_to(one["trained_length"].values[:, None], errors.shape)
        waiting = one["on_plateau"].transpose("run", "seed").values.astype(bool)
        settled = ~waiting & (one["verdict"].values == "settled")[:, None]
        look: dict[str, Any] = {"s": 18, "linewidths": 0.9, "zorder": 3}
        inner = {"marker": marker, "edgecolors": color}
        for chosen, how, words in (
            (settled, {**inner, "facecolors": color}, "settled"),
            (~settled & ~waiting, {**inner, "facecolors": "white"}, "still falling"),
            (waiting, {"marker": "x" if kind == "softmax" else "+", "color": color}, "on plateau"),
        ):
            if chosen.any():
                axes.scatter(places[chosen], errors[chosen], label=f"trained {kind}, {words}",
                             **look, **how)  # fmt: skip


OFFICIAL_RUNS = Figures(LARGE_PROMPT).figure(
    "official-runs",
    "the published runs: error of softmax and linear heads by length, beside the best",
    statement="experiment: in-context linear regression",
    published="38 runs of one head, softmax and linear, at 19 lengths; its figure was not seen",
    sizes=by_size(
        seeds=1,
        steps=[1000, 20_000, 300_000],
        optimizer=["Adam", "as published", "as published"],
        lengths=[(10, 30, 50, 100, 300, 1000), OFFICIAL_LENGTHS, OFFICIAL_LENGTHS],
        trained_lengths=[(10, 100, 1000), OFFICIAL_LENGTHS, OFFICIAL_LENGTHS],
    ),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    takes="a folder of runs of the published experiment, as InContextRuns.save writes it",
    caption=(
        "Mean squared error of predicting a noisy label from a prompt, five inputs, against "
        "the length of the prompt: the best single softmax head (exact risk, minimized), the best "
        "linear attention (closed form), two softmax heads of opposite signs with small scores "
        "(closed form; nearly the same), and ridge regression (sampled inputs), which no predictor "
        "beats. Errors at 10/100/1,000 tokens: {errors}. Points: {runs} runs of one head from "
        "random layers, trained by {attrs[optimizer]} for {attrs[steps]:,} steps on data "
        "{attrs[trained_path]}; {settled} runs had settled, and {waiting} of {trained} heads were "
        "still on the plateau near the error of predicting zero (errors of softmax are on prompts "
        "held out, the same for all lengths; those of linear attention are exact)."
    ),
)
