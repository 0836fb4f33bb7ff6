"""Error of predictors from prompts against the length: softmax, linear attention, ridge."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.papers.figure import (
    Figures,
    Readings,
    Request,
    at_least,
    by_size,
    close_to,
    stacked,
)
from attractor.papers.paper import LARGE_PROMPT
from attractor.plots._style import COLORS, PAGE
from attractor.plots.pairs import panel_letters, shared_legend
from attractor.plots.roles import DASH_DOTTED, DASHED, DOTTED, SOLID
from attractor.prompt.regression import (
    RegressionTask,
    linear_attention_optimum,
    ridge_risk,
    small_score_optimum,
    softmax_optimum,
)
from attractor.prompt.regression.runs import OFFICIAL_LENGTHS, OFFICIAL_SEED, official_experiment
from attractor.training import adam

_PATHS = {"as run": True, "as intended": False}
_TITLES = {"as run": "data as the published code draws them", "as intended": "data as intended"}
_LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    "softmax": ("best softmax head", {"color": COLORS["blue"], "linestyle": SOLID}),
    "linear": ("best linear attention", {"color": COLORS["orange"], "linestyle": DASHED}),
    "opposite heads": ("two opposite heads", {"color": COLORS["green"], "linestyle": DOTTED}),
    "ridge": ("ridge regression", {"color": COLORS["black"], "linestyle": DASH_DOTTED}),
}
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
_STARTS: dict[str, dict[str, Any]] = {
    "as published": {},
    "balanced": {
        "parameterization": "blocks",
        "initialization": "balanced",
        "optimizer": adam(0.02),
    },
}
"""Settings of training: as published, or from the balanced start of the theorem, with Adam."""


def _compute(request: Request) -> xr.Dataset:
    lengths = np.array(request.settings["lengths"])
    axes = ("path", "predictor", "length")
    found, zeros = np.empty((len(_PATHS), len(_LOOKS), len(lengths))), np.empty(len(_PATHS))
    for place, as_run in enumerate(_PATHS.values()):
        task = RegressionTask.official(as_run=as_run)
        zeros[place] = task.mean_squared_error(task.risk_of_zero)
        request.uses(list(_PATHS)[place], covariance=task.covariance)
        with request.bar(f"best softmax heads, {list(_PATHS)[place]}", len(lengths)) as advance:
            for column, length in enumerate(lengths.tolist()):
                risks = {
                    "softmax": softmax_optimum(task, length).risk,
                    "linear": linear_attention_optimum(task, length).risk,
                    "opposite heads": small_score_optimum(task, length).risk,
                    "ridge": float(ridge_risk(task, length, seed=request.seed).risk),
                }
                risk = np.array([risks[name] for name in _LOOKS])
                found[place, :, column] = task.mean_squared_error(risk)
                advance(1)
    data = xr.Dataset(
        {"error": (axes, found), "error_of_zero": ("path", zeros)},
        {"path": list(_PATHS), "predictor": list(_LOOKS), "length": lengths},
        {name: request.settings[name] for name in ("steps", "start")},
    )
    paths = request.settings["trained_paths"]
    return data.merge(stacked([_trained(request, path) for path in paths], "trained_path", paths))


def _trained(request: Request, path: str) -> xr.Dataset:
    """Errors of heads trained as published, for as many steps as the size has."""
    lengths = request.settings["trained_lengths"]
    runs = official_experiment(
        as_run=_PATHS[path],
        lengths=lengths,
        steps=request.settings["steps"],
        seed=OFFICIAL_SEED + request.seed,
        seeds=request.seeds,
        checkpoint=request.checkpoint(path.replace(" ", "-")),
        progress=request.progress,
        **_STARTS[request.settings["start"]],
    )
    errors = [run.mean_squared_error.isel(step=-1).values for run in runs.runs]
    plateau = [run.on_plateau.values for run in runs.runs]
    shape = (2, len(lengths), request.seeds)
    axes = ("attention", "trained_length", "seed")
    return xr.Dataset(
        {
            "trained_error": (axes, np.reshape(errors, shape)),
            "on_plateau": (axes, np.reshape(plateau, shape)),
        },
        {"attention": ["softmax", "linear"], "trained_length": list(lengths)},
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
    scale = data["trained_error"] / data["error_of_zero"].sel(path=data["trained_path"])
    found.append(at_least("largest trained error over that of predicting zero, subtracted from 1.1",
                          1.1 - float(scale.max()), 0))  # fmt: skip
    published = data.attrs["start"] == "as published"
    return Readings(
        *found,
        errors="; ".join(f"{path}: {_errors(error.sel(path=path))}" for path in _PATHS),
        how="as published" if published else "with Adam from the balanced start",
        waiting=int(data["on_plateau"].sum()),
        trained=data["on_plateau"].size,
    )


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 3.2))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, path in zip(panels, _PATHS, strict=True):
        axes.set(xscale="log", yscale="log", xlabel="tokens in the prompt, $L$")
        axes.set_title(_TITLES[path])
        for name, (label, look) in _LOOKS.items():
            curve = data["error"].sel(path=path, predictor=name)
            axes.plot(data["length"], curve, label=label, **look)
        if path in data["trained_path"].values:
            _points(axes, data.sel(trained_path=path))
        axes.axhline(0.1, color=COLORS["gray"], linewidth=0.8, linestyle=DOTTED)
        axes.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])
        axes.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
        axes.minorticks_off()
        axes.annotate("noise of the label", (0.02, 0.1), (0, -8), fontsize=7, color="#555555",
                      xycoords=("axes fraction", "data"), textcoords="offset points")  # fmt: skip
    panels[0].set_ylabel("mean squared error")
    panels[0].set_ylim(0.085, 1.3)
    panel_letters(panels)
    shared_legend(figure, panels[:1], columns=3)
    return figure


def _points(axes: Axes, data: xr.Dataset) -> None:
    """Trained heads: filled where training came off the plateau of the start."""
    for attention, marker in (("softmax", "o"), ("linear", "s")):
        one = data.sel(attention=attention)
        color = _LOOKS[attention][1]["color"]
        places = np.broadcast_to(data["trained_length"].values[:, None], one["on_plateau"].shape)
        waiting = one["on_plateau"].values.astype(bool)
        look: dict[str, Any] = {"marker": marker, "s": 18, "edgecolors": color, "linewidths": 0.9}
        errors = one["trained_error"].values
        kinds = ((~waiting, color, ""), (waiting, "white", ", on the plateau"))
        for chosen, inside, words in kinds:
            if chosen.any():
                axes.scatter(places[chosen], errors[chosen], facecolors=inside, zorder=3,
                             label=f"trained {attention}{words}", **look)  # fmt: skip


IN_CONTEXT_RISK = Figures(LARGE_PROMPT).figure(
    "in-context-risk",
    "error by length of the prompt: softmax, linear attention, two heads, ridge",
    statement="experiment: in-context linear regression",
    published="38 runs of one head, softmax and linear, at 19 lengths; its figure was not seen",
    sizes=by_size(
        seeds=1,
        lengths=[(10, 30, 50, 100, 300, 1000), OFFICIAL_LENGTHS, OFFICIAL_LENGTHS],
        trained_lengths=[(30,), OFFICIAL_LENGTHS, OFFICIAL_LENGTHS],
        steps=[400, 20_000, 300_000],
        trained_paths=[tuple(_PATHS), ("as run",), ("as run",)],
        start=["balanced", "as published", "as published"],
    ),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Mean squared error of predicting a noisy label from a prompt, five inputs, against the "
        "length of the prompt: the best single softmax head (exact risk, minimized), the best "
        "linear attention (closed form), two softmax heads of opposite signs with small scores "
        "(closed form; nearly the same), and ridge regression (sampled inputs), which no predictor "
        "beats. Errors at 10/100/1,000 tokens: {errors}. Points: heads trained {how}, "
        "{attrs[steps]:,} steps; {waiting} of {trained} were still on the plateau near the error "
        "of predicting zero (hollow)."
    ),
)
