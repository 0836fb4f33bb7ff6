"""Training on finite prompts and on infinite ones: the risk follows, parameters part."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from attractor.papers.figure import Figures, Readings, Request, at_least, by_size, close_to
from attractor.papers.paper import LARGE_PROMPT
from attractor.plots._figure import Figure
from attractor.plots._style import COLORS, PAGE, SERIES
from attractor.plots.pairs import panel_letters, shared_legend
from attractor.plots.roles import DASHED
from attractor.prompt.regression import (
    RegressionTask,
    finite_prompt_limit,
    infinite_flow,
    isotropic_finite_flow,
)

_LENGTHS = (64, 256, 1024)
_SCALE, _END = 0.2, 2e4
_AT_THE_END = {64: (1.816, 0.842, 0.5191), 1024: (2.707, 0.985, 0.04511)}
"""``b``, ``a b`` and the risk at the end, of five inputs, computed independently."""
_ON_THE_WAY = {1: (0.5243, 1.1723, 0.3714)}
"""``a``, ``b`` and the risk on infinite prompts at a time."""
_PANELS = {"b": "$b$", "product": "$a\\,b$", "balance": r"$\Vert A\Vert^2 - b^2$", "risk": "risk"}


def _compute(request: Request) -> xr.Dataset:
    d = request.settings["dimension"]
    spread = np.geomspace(0.05, _END, request.settings["times"])
    times = np.unique(np.concatenate([[0, 1, 3], spread]))
    task = RegressionTask(np.eye(d))
    request.uses("inputs", covariance=task.covariance, scale=np.array(_SCALE))
    limit = infinite_flow(task, _SCALE, times)
    flows = [isotropic_finite_flow(d, length, _SCALE, times) for length in _LENGTHS]
    a = np.array([flow.a for flow in flows] + [limit.blocks.key_query[:, 0, 0]])
    b = np.array([flow.b for flow in flows] + [limit.blocks.value_label])
    risk = np.array([flow.risk for flow in flows] + [limit.risk])
    axes = ("length", "time")
    return xr.Dataset(
        {
            "a": (axes, a),
            "b": (axes, b),
            "product": (axes, a * b),
            "balance": (axes, d * a**2 - b**2),
            "risk": (axes, risk),
        },
        {"length": np.array([*_LENGTHS, math.inf]), "time": times},
        {
            "dimension": d,
            "limit_of_long_prompts": finite_prompt_limit(task),
            "limit_of_infinite_prompts": d**0.25,
        },
    )


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(time=-1)
    infinite = last.sel(length=math.inf)
    found = [
        close_to("infinite prompts: b at the end", infinite["b"],
                 data.attrs["limit_of_infinite_prompts"], 1e-8),
        close_to("long prompts: where b tends", data.attrs["limit_of_long_prompts"], 2.8531, 1e-4),
        at_least("b of 1,024 tokens at the end, over that of infinite prompts",
                 last["b"].sel(length=1024) / infinite["b"], 1.5),
    ]  # fmt: skip
    for length, expected in _AT_THE_END.items():
        for name, value in zip(("b", "product", "risk"), expected, strict=True):
            found.append(
                close_to(f"{length:,} tokens: {name} at the end", last[name].sel(length=length),
                         value, 6e-4 if name != "risk" else 2e-4 * max(1, value / 0.5))
            )  # fmt: skip
    for time, expected in _ON_THE_WAY.items():
        for name, value in zip(("a", "b", "risk"), expected, strict=True):
            there = data[name].sel(length=math.inf, time=time)
            found.append(close_to(f"infinite prompts: {name} at time {time}", there, value, 6e-5))
    ends = "; ".join(
        f"{length:,.0f} tokens: b = {end['b']:.4f}, a b = {end['product']:.4f}, risk "
        f"{end['risk']:.4g}"
        for length in data["length"].values[:-1]
        for end in [last.sel(length=length)]
    )
    return Readings(*found, scale=_SCALE, ends=ends)


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 4.2))
    panels = figure.subplots(2, 2, sharex=True).ravel()
    for axes, (name, label) in zip(panels, _PANELS.items(), strict=True):
        axes.set(xscale="log", ylabel=label)
        for length, look in zip(data["length"].values, SERIES, strict=True):
            words = "infinite prompts" if math.isinf(length) else f"$L$ = {length:,.0f}"
            curve = data[name].sel(length=length)
            axes.plot(data["time"], curve, label=words, **look)
        axes.set_xlim(0.05, float(data["time"].max()))
    panels[3].set(yscale="log", ylim=(1e-4, 4))
    _limit(panels[0], data.attrs["limit_of_long_prompts"], "$t\\to\\infty$, then $L\\to\\infty$")
    _limit(
        panels[0], data.attrs["limit_of_infinite_prompts"], "$L\\to\\infty$, then $t\\to\\infty$"
    )
    for axes in panels[2:]:
        axes.set_xlabel("time $t$ of gradient flow")
    panel_letters(panels)
    shared_legend(figure, panels[:1], columns=4)
    return figure


def _limit(axes: Axes, value: float, words: str) -> None:
    """A level that parameters tend to, labeled at its left end."""
    look: dict[str, Any] = {"color": COLORS["gray"], "linestyle": DASHED, "linewidth": 0.8}
    axes.axhline(value, zorder=0, **look)
    axes.annotate(words, (0.02, value), (0, 2), xycoords=("axes fraction", "data"),
                  textcoords="offset points", fontsize=7, color="#555555")  # fmt: skip


ORDER_OF_LIMITS = Figures(LARGE_PROMPT).figure(
    "order-of-limits",
    "risk and parameters in training on finite and infinite prompts: limits do not commute",
    statement="training on long prompts reaches the optimal risk, and what parameters do",
    published="none; the theorem on the risk says nothing about parameters",
    sizes=by_size(seeds=1, dimension=5, times=[80, 200, 400]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Gradient flow of a softmax head A = a I, b from the balanced start of scale {scale:g}, on "
        "the exact risk of {attrs[dimension]} independent inputs: prompts of three lengths, and "
        "infinite ones. In a fast phase all follow the infinite prompt. Then the risk of finite "
        "prompts, which differs along the curve of heads that predict exactly from infinite ones, "
        "carries b on, the later the longer the prompts. At the end: {ends}. So b tends to "
        "{attrs[limit_of_long_prompts]:.4f} as prompts grow, not to "
        "{attrs[limit_of_infinite_prompts]:.4f} (dashed): limits of length and time commute for "
        "the risk, and not for parameters."
    ),
)
