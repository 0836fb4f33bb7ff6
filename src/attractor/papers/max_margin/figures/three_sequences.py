"""Three sequences: paths of a prompt vector, and what attention and norm do on the way."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.geometry.vectors import cosines
from attractor.papers.figure import (
    Artifact,
    Figures,
    Readings,
    Request,
    at_least,
    at_most,
    by_size,
    stacked,
)
from attractor.papers.max_margin.data import EXACT, kernels, run, three_sequences
from attractor.plots.design.look import panels_on_page
from attractor.plots.design.roles import line_style
from attractor.plots.plane import frame, optimal_token_handle, plane_tokens, ray, trajectory
from attractor.results.paper import MAX_MARGIN
from attractor.training import gradient_descent, normalized_gradient_descent

STARTS = (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)
"""First coordinates of the initial prompts; their second is zero."""
METHODS = {
    "normalized": (normalized_gradient_descent(0.1), normalized_gradient_descent(0.1, eps=1e-12)),
    "gradient descent": (gradient_descent(1.0), gradient_descent(1.0)),
}
"""Exact and as published."""
SHOWN = 200


def _compute(request: Request) -> xr.Dataset:
    case, steps = three_sequences(), request.settings["steps"]
    request.uses(case.about, case.tokens, case.head)
    start = np.array([[[height, 0.0] for height in STARTS]])
    recorded = np.unique(np.concatenate([np.arange(0, SHOWN, 2), np.arange(SHOWN, steps + 1, 20)]))
    by_method = []
    for optimizers in METHODS.values():
        ways = kernels(*optimizers, both=request.as_published)
        runs = run(case, ways, steps=steps, seeds=len(STARTS), initial=start, record=recorded)
        paths, names = runs["p"].values, runs["kernel"].values
        scores = case.tokens.scores(paths[..., None].astype(float))
        on_best = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))[..., 0, 0]
        variables = {
            "path": (("kernel", "start", "step", "coordinate"), paths),
            "probability": (("kernel", "start", "step"), on_best.mean(-1)),
            "norm": (("kernel", "start", "step"), np.linalg.norm(paths, axis=-1)),
        }
        coordinates = {"start": list(STARTS), "step": recorded, "kernel": names}
        by_method.append(xr.Dataset(variables, coordinates))
    data = stacked(by_method, "optimizer", list(METHODS))
    data["keys"] = (("sequence", "token", "coordinate"), case.tokens.keys)
    data["solution"] = (("coordinate",), case.solution().W[:, 0])
    return data


def _paths_readings(data: xr.Dataset) -> Readings:
    ends = data["path"].sel(kernel=EXACT).isel(step=-1)
    found = cosines(ends.values[..., None], data["solution"].values[:, None])
    return Readings(
        at_least("normalized: least cosine to the max-margin direction",
                 found[0].min(), 0.999, "normalized"),
        at_least("gradient descent: least cosine, in logarithmic time",
                 found[1].min(), 0.97, "plain"),
    )  # fmt: skip


def _growth_readings(data: xr.Dataset) -> Readings:
    exact = data.sel(kernel=EXACT, start=0.0)
    norms = exact["norm"].sel(optimizer="normalized")
    slope = float((norms[-1] - norms.sel(step=SHOWN)) / (norms["step"][-1] - SHOWN))
    slow = exact["norm"].sel(optimizer="gradient descent").isel(step=-1)
    return Readings(
        at_least("normalized: softmax on the best tokens after 50 steps",
                 exact["probability"].sel(optimizer="normalized", step=50), 0.99),
        at_most("normalized: growth of the norm per step, off by", abs(slope - 0.1), 1e-4),
        at_least("gradient descent: softmax on the best tokens at the end",
                 exact["probability"].sel(optimizer="gradient descent").isel(step=-1), 0.99),
        at_most("gradient descent: norm at the end, which grows like a logarithm", slow, 6.0),
    )  # fmt: skip


def _draw_paths(data: xr.Dataset) -> Figure:
    names = [str(name) for name in data["kernel"].values]
    alone = len(names) == 1
    figure, places = panels_on_page(3.0 if alone else 5.2, len(names), 2, squeeze=False)
    corners = ([-1.6, -1.2], [5.5, 2.2]) if alone else ([-2.0, -4.0], [32.0, 12.0])
    shown = data.sel(step=slice(0, SHOWN if alone else None))
    for row, name in zip(places, names, strict=True):
        for axes, method in zip(row, METHODS, strict=True):
            frame(axes, corners, ratio=0.55)
            ray(axes, data["solution"].values, "globally_optimal", label="max-margin direction")
            best = np.zeros(data.sizes["sequence"], int)
            names_of = [f"sequence {i + 1}" for i in range(data.sizes["sequence"])]
            plane_tokens(axes, data["keys"].values, optimal=best, labels=names_of)
            role = "train_p" if name == EXACT else "as_published"
            trajectory(
                axes,
                shown["path"].sel(kernel=name, optimizer=method).values,
                role,
                steps=shown["step"].values,
                arrows=[15, 30, 45, 100] if alone else 100,
                label="training $p$",
            )
            title = "normalized gradient descent" if method == "normalized" else method
            axes.set_title(title if alone else f"{name}: {title}")
            axes.set(xlabel="$p_1$", ylabel="$p_2$")
    handles, labels = places[0, 0].get_legend_handles_labels()
    handles.append(optimal_token_handle())
    labels.append("optimal token")
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _draw_growth(data: xr.Dataset) -> Figure:
    figure, (left, right) = panels_on_page(2.8, 1, 2)
    alone = data.sizes["kernel"] == 1
    shown = data.sel(start=0.0, step=slice(0, SHOWN if alone else None))
    dashes = {"normalized": "-", "gradient descent": (0, (4, 1.6))}
    for name in shown["kernel"].values:
        for method, dash in dashes.items():
            curve = shown.sel(kernel=name, optimizer=method)
            style = line_style("train_p" if name == EXACT else "as_published") | {"linestyle": dash}
            label = {"normalized": "normalized gradient descent"}.get(method, method)
            label = label if alone else f"{label}, {name}"
            left.plot(curve["step"], curve["probability"], label=label, **style)
            right.plot(curve["step"], curve["norm"], **style)
    left.set(xlabel="iteration", ylabel="softmax on the best tokens, mean", ylim=(0, 1.03))
    right.set(xlabel="iteration", ylabel=r"norm $\|p\|$", ylim=(0, None))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


_COMMON = {
    "sizes": by_size(seeds=1, steps=1000),
    "compute": _compute,
    "artifact": Artifact(
        "plain gradients in single precision: a kink in the norm, paths that stop",
        "As published: plain gradients in single precision, with 1e-12 added to the norm; after "
        "about 130 normalized steps they are rounding noise, and the norm has a kink.",
    ),
}

PATHS = Figures(MAX_MARGIN).figure(
    "three-sequences-paths",
    "paths of a prompt vector over three sequences, normalized and plain gradient descent",
    statement="experiment: trajectories with three sequences",
    published="trajectories from six starts, first 200 steps of 1,000, two optimizers",
    draw=_draw_paths,
    readings=_paths_readings,
    caption=(
        "Paths of a prompt vector from six starts (x, 0); three sequences of seven tokens, of "
        "which the right one is best. Left: normalized gradient descent, step 0.1. Right: gradient "
        "descent, step 1. After {last[step]:,} steps the cosine to the max-margin direction is "
        "{normalized:.6f} or more by normalized steps, and {plain:.4f} by plain ones, whose path "
        "goes on in the logarithm of time."
    ),
    **_COMMON,
)
GROWTH = Figures(MAX_MARGIN).figure(
    "three-sequences-growth",
    "attention on the best tokens and the norm of the prompt along the iterations",
    statement="experiment: softmax probability and norm with three sequences",
    published="softmax probability and norm over the first 200 steps, two optimizers",
    draw=_draw_growth,
    readings=_growth_readings,
    caption=(
        "Attention on the best token, mean over three sequences, and the norm of the prompt, from "
        "p = 0. Normalized steps of length 0.1 make the norm grow by 0.1 a step; plain gradient "
        "descent (step 1) makes it grow like a logarithm."
    ),
    **_COMMON,
)
