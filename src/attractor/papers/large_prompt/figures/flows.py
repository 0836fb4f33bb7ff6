"""Gradient flow on infinite prompts from starts of several scales."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_most, by_size, close_to
from attractor.plots.design.look import COLORS, SERIES, panels_on_page
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.plots.design.roles import DASH_DOT_DOTTED, DASHED
from attractor.prompts.regression import (
    RegressionTask,
    infinite_flow,
    initial_scale_bounds,
    kac_murdock_szego,
    trained_limit,
)
from attractor.results.paper import LARGE_PROMPT

_SCALES = (0.05, 0.2, 0.41, 2.0, 5.0)
_LOOKS = (*SERIES, {"color": COLORS["sky"], "linestyle": DASH_DOT_DOTTED})
_LEVELS = (1e-1, 1e-2, 1e-4, 1e-8)
_TIMES = (4.83, 9.93, 20.28, 40.44)
"""When the risk falls to the levels from a scale of 0.2, computed independently."""
_END, _CONVERGED = 60.0, 1e6


def _compute(request: Request) -> xr.Dataset:
    task = RegressionTask(kac_murdock_szego(5, 0.5))
    request.uses("inputs", covariance=task.covariance, scales=np.array(_SCALES))
    limit = trained_limit(task).blocks
    times = np.append(_END * np.linspace(0, 1, request.settings["times"]) ** 3, _CONVERGED)
    flows = [infinite_flow(task, scale, times) for scale in _SCALES]
    keys = np.array([flow.blocks.key_query for flow in flows])
    values = np.array([flow.blocks.value_label for flow in flows])
    distance = np.linalg.norm(keys - limit.key_query, axis=(-2, -1))
    balance = np.array([flow.balance for flow in flows]) / values**2
    axes = ("scale", "time")
    return xr.Dataset(
        {
            "risk": (axes, np.array([flow.risk for flow in flows])),
            "b": (axes, values),
            "distance": (axes, distance),
            "relative_balance": (axes, np.abs(balance)),
            "time_to_risk": (
                ("scale", "level"),
                np.array([[flow.time_to_risk(level) for level in _LEVELS] for flow in flows]),
            ),
        },
        {"scale": list(_SCALES), "time": times, "level": list(_LEVELS)},
        {
            "b": float(limit.value_label),
            "bound": initial_scale_bounds(task.covariance).large_prompt,
        },
    )


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(time=-1)
    found = [
        close_to("b where it ends, from every scale: least", last["b"].min(), 1.982408, 5e-7),
        close_to("b where it ends, from every scale: largest", last["b"].max(), 1.982408, 5e-7),
        at_most("largest ||A - A*|| at the end", last["distance"].max(), 1e-12, "distance"),
        at_most(
            "largest | ||A||^2 - b^2 | / b^2 on the way", data["relative_balance"].max(), 1e-10
        ),
        close_to("bound on the scale", data.attrs["bound"], 0.41811, 5e-6),
    ]
    times = data["time_to_risk"].sel(scale=0.2)
    found += [
        close_to(f"time to a risk of {level:g} from 0.2", times.sel(level=level), expected, 0.006)
        for level, expected in zip(_LEVELS, _TIMES, strict=True)
    ]
    return Readings(*found, time=times)


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(2.6, 1, 3)
    shown = data.isel(time=slice(0, -1))
    names = {"risk": "risk", "b": "$b$", "distance": r"$\Vert A - A^*\Vert$"}
    for axes, (name, label) in zip(panels, names.items(), strict=True):
        for scale, look in zip(data["scale"].values, _LOOKS, strict=True):
            words = f"$\\alpha$ = {scale:g}"
            axes.plot(shown["time"], shown[name].sel(scale=scale), label=words, **look)
        axes.set(xlabel="time $t$", ylabel=label, xlim=(0, _END))
    panels[0].set(yscale="log", ylim=(1e-12, 1e4))
    panels[2].set(yscale="log", ylim=(1e-7, 10))
    panels[1].set_xlim(0, _END / 4)
    panels[1].axhline(data.attrs["b"], color=COLORS["gray"], linestyle=DASHED, linewidth=0.8)
    panel_letters(panels)
    shared_legend(figure, panels[:1], columns=5)
    return figure


FLOWS = Figures(LARGE_PROMPT).figure(
    "flows",
    "risk, b and A on infinite prompts from five scales of the start: one limit",
    statement="training in in-context linear regression",
    published="not seen",
    sizes=by_size(seeds=1, times=[100, 300, 600]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Gradient flow on infinite prompts, five inputs of correlation 1/2 between neighbors, from "
        "balanced starts A = alpha I / sqrt(5), b = alpha. The paper's condition is alpha < "
        "{attrs[bound]:.5f}; from every scale, above it too, b tends to tr(Sigma^-2)^(1/4) = "
        "{attrs[b]:.6f} and A to Sigma^-1 / b (largest distance at the end {distance:.1e}). From "
        "0.2 the risk falls below .1, .01, 1e-4 and 1e-8 at times {time[0.1]:.2f}, "
        "{time[0.01]:.2f}, {time[0.0001]:.2f}, {time[1e-08]:.2f}."
    ),
)
