"""The published runs: error of trained heads by length and step, beside the best predictors."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attractor.papers.figure import (
    Figures,
    Readings,
    Request,
    at_least,
    at_most,
    by_size,
    close_to,
)
from attractor.papers.large_prompt.official import (
    PATHS,
    TAKES,
    TRAINED,
    official_runs,
    optimizer_of,
    path_of,
)
from attractor.papers.paper import LARGE_PROMPT
from attractor.plots._style import COLORS, panels_on_page
from attractor.plots.pairs import panel_letters, shared_legend
from attractor.plots.roles import DASH_DOTTED, DASHED, DOTTED, SOLID, ordered_line_styles
from attractor.prompt.regression import (
    InContextRuns,
    RegressionTask,
    linear_attention_optimum,
    ridge_risk,
    small_score_optimum,
    softmax_optimum,
)
from attractor.prompt.regression.runs import ATTENTIONS, OFFICIAL_LENGTHS

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
_DRAWN = (10, 30, 100, 300, 1000)
"""Lengths whose learning curves are drawn."""
_SHARES = (1 / 30, 0.1, 1 / 3, 2 / 3, 1)
"""Shares of the steps that the table has: 10, 30, 100, 200 and 300 thousand of those published."""
_WITHIN = 1.1
"""Error of a settled run, less three standard errors, over that of the best head, at most."""
_DECADES = 3
"""Decades of steps that learning curves span; before them hardly anything happens."""
_TICKS = ([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])


def _compute(request: Request) -> xr.Dataset:
    lengths = request.settings["lengths"]
    axes = ("path", "predictor", "length")
    found, zeros = np.empty((len(PATHS), len(_LOOKS), len(lengths))), np.empty(len(PATHS))
    products: dict[tuple[str, str, int], np.ndarray] = {}
    for place, (path, as_run) in enumerate(PATHS.items()):
        task = RegressionTask.official(as_run=as_run)
        zeros[place] = task.mean_squared_error(task.risk_of_zero)
        request.uses(path, covariance=task.covariance)
        with request.bar(f"best softmax heads, {path}", len(lengths)) as advance:
            for column, length in enumerate(lengths):
                softmax = softmax_optimum(task, length)
                linear = linear_attention_optimum(task, length)
                risks = {
                    "softmax": softmax.risk,
                    "linear": linear.risk,
                    "opposite heads": small_score_optimum(task, length).risk,
                    "ridge": float(ridge_risk(task, length, seed=request.seed).risk),
                }
                risk = np.array([risks[name] for name in _LOOKS])
                found[place, :, column] = task.mean_squared_error(risk)
                head = softmax.blocks
                products[path, "softmax", length] = head.value_label * head.key_query
                products[path, "linear", length] = linear.product
                advance(1)
    data = xr.Dataset(
        {"error": (axes, found), "error_of_zero": ("path", zeros)},
        {"path": list(PATHS), "predictor": list(_LOOKS), "length": list(lengths)},
    )
    shown = lengths if request.source else request.settings["trained_lengths"]
    runs = official_runs(request, shown)
    path = path_of(runs)
    kinds = {(kind, length): of for (way, kind, length), of in products.items() if way == path}
    return data.merge(_of_runs(runs, kinds)).assign_attrs(
        trained_path=path, steps=int(runs.runs[0].steps[-1]), optimizer=optimizer_of(runs)
    )


def _of_runs(runs: InContextRuns, best: dict[tuple[str, int], np.ndarray]) -> xr.Dataset:
    """Errors of trained heads, and the distance of their products from those of the best heads."""
    data = runs.to_xarray()
    task = runs.task
    last = data.isel(step=-1, head=0)
    product = last["value_label"] * last["key_query"]
    cases = [(run.settings["attention"], int(run.length)) for run in runs.runs]
    target = xr.DataArray(np.array([best[case] for case in cases]), dims=("run", "row", "column"))
    entries = ("row", "column")
    distance = (((product - target) ** 2).sum(entries) / (target**2).sum(entries)) ** 0.5
    plateau = xr.DataArray([run.on_plateau.values for run in runs.runs], dims=("run", "seed"))
    found = xr.Dataset(
        {
            "trained_error": task.mean_squared_error(data["risk"]),
            "standard_error": 2 * last["risk_error"].drop_vars("step"),
            "distance": distance.drop_vars("step"),
            "on_plateau": plateau,
        }
    )
    return found.rename(length="trained_length")


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
    last, best = data["trained_error"].isel(step=-1), _best(data)
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
    figure, panels = panels_on_page(5.2, 2, 2, sharey=True)
    for axes, path in zip(panels[0], PATHS, strict=True):
        axes.set_title(_TITLES[path])
        for name, (label, look) in _LOOKS.items():
            curve = data["error"].sel(path=path, predictor=name)
            axes.plot(data["length"], curve, label=label, **look)
        if path == data.attrs["trained_path"]:
            _points(axes, data)
        axes.set(xscale="log", yscale="log", xlabel="tokens in the prompt, $L$")
        axes.set_xticks(*_TICKS)
    for axes, kind in zip(panels[1], ATTENTIONS, strict=True):
        axes.set_title(f"trained {kind} heads")
        _curves(axes, data, kind)
        last = float(data["step"][-1])
        axes.set(xscale="log", xlabel="step", xlim=(max(1, last / 10**_DECADES), 1.3 * last))
    for axes, path in zip(panels.flat, [*PATHS, *[data.attrs["trained_path"]] * 2], strict=True):
        zero = float(data["error_of_zero"].sel(path=path))
        for level, words, offset in ((0.1, "noise of the label", -8), (zero, "predicting zero", 2)):
            axes.axhline(level, color=COLORS["gray"], linewidth=0.8, linestyle=DOTTED, zorder=1)
            axes.annotate(words, (0.02, level), (0, offset), color="#555555", fontsize=6.5,
                          textcoords="offset points",
                          xycoords=("axes fraction", "data"))  # fmt: skip
        axes.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
        axes.minorticks_off()
    for axes in panels[:, 0]:
        axes.set_ylabel("mean squared error")
    panels[0, 0].set_ylim(0.078, 1.5)
    panel_letters(panels.flat)
    best = Line2D([], [], color=COLORS["gray"], linestyle=(0, (2, 1.2)), linewidth=0.9,
                  label="best head of this length")  # fmt: skip
    shared_legend(figure, panels.flat, columns=4, handles=[best])
    return figure


def _points(axes: Axes, data: xr.Dataset) -> None:
    """Trained heads: filled where training settled, and crossed where it is on the plateau."""
    for kind, marker in _MARKERS.items():
        one = data.isel(run=data["attention"].values == kind)
        if not one.sizes["run"]:
            continue
        color = _LOOKS[kind][1]["color"]
        errors = one["trained_error"].isel(step=-1).transpose("run", "seed").values
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


def _curves(axes: Axes, data: xr.Dataset, kind: str) -> None:
    """Errors against the step, and the level of the best head of each length."""
    drawn = np.isin(data["trained_length"], _DRAWN) & (data["attention"].values == kind)
    best = _best(data)
    for run in np.flatnonzero(drawn):
        length = int(data["trained_length"][run])
        look = ordered_line_styles(len(_DRAWN))[_DRAWN.index(length)]
        curve = data["trained_error"].isel(run=run).median("seed")
        steps = data["step"].values > 0
        axes.plot(data["step"].values[steps], curve.values[steps], color=look["color"],
                  label=f"$L$ = {length:,}")  # fmt: skip
        axes.axhline(float(best[run]), color=look["color"], linestyle=(0, (2, 1.2)), linewidth=0.9)


def _table(data: xr.Dataset) -> str:
    """A line for each run: its error at some steps, the best head of its kind, how it ended."""
    steps = data["step"].values
    wanted = np.array(_SHARES) * steps[-1]
    places = [int(np.abs(np.log(np.maximum(steps, 0.5) / step)).argmin()) for step in wanted]
    titles = ["attention", "L", *(f"{steps[place]:,}" for place in places),
              "+-", "best", "over best", "|bA - best|", "how training ended"]  # fmt: skip
    middle = data.median("seed")
    best = _best(data).values
    rows = [titles]
    for run in range(data.sizes["run"]):
        one = middle.isel(run=run)
        errors = one["trained_error"].isel(step=places).values
        deviation = float(one["standard_error"])
        rows.append(
            [str(one["attention"].values), f"{float(one['trained_length']):.0f}"]
            + [f"{error:.4f}" for error in errors]
            + [f"{deviation:.1g}" if deviation else "exact", f"{best[run]:.4f}"]
            + [f"{errors[-1] / best[run] - 1:+.1%}", f"{float(one['distance']):.3f}"]
            + [str(one["verdict"].values)]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(["Mean squared error after so many steps, medians over seeds:", *lines])


OFFICIAL_RUNS = Figures(LARGE_PROMPT).figure(
    "official-runs",
    "the published runs: error of softmax and linear heads by length and step, beside the best",
    statement="experiment: in-context linear regression",
    published="38 runs of one head, softmax and linear, at 19 lengths; its figure was not seen",
    sizes=by_size(
        **TRAINED,
        lengths=[(10, 30, 50, 100, 300, 1000), OFFICIAL_LENGTHS, OFFICIAL_LENGTHS],
        trained_lengths=[(10, 100, 1000), OFFICIAL_LENGTHS, OFFICIAL_LENGTHS],
    ),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    takes=TAKES,
    table=_table,
    caption=(
        "Mean squared error of predicting a noisy label from a prompt, five inputs. (a, b) Against "
        "the length of the prompt: the best single softmax head (exact risk, minimized), the best "
        "linear attention (closed form), two softmax heads of opposite signs with small scores "
        "(closed form; nearly the same), and ridge regression (sampled inputs), which no predictor "
        "beats. Errors at 10/100/1,000 tokens: {errors}. Points: {runs} runs of one head from "
        "random layers, trained by {attrs[optimizer]} for {attrs[steps]:,} steps on data "
        "{attrs[trained_path]}; {settled} runs had settled, and {waiting} of {trained} heads were "
        "still on the plateau near the error of predicting zero (errors of softmax are on prompts "
        "held out, the same for all lengths; those of linear attention are exact). (c, d) "
        "Their errors on the way, with that of the best head of the same kind and length (dashed)."
    ),
)
