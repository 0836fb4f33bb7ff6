"""Risk by length on families of in-context tasks, with the level of infinite prompts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from attractor.papers.figure import Figures, Readings, Request, at_most, by_size, stacked
from attractor.papers.paper import LARGE_PROMPT
from attractor.plots._figure import Figure
from attractor.plots._style import PAGE, SERIES
from attractor.plots.pairs import panel_letters
from attractor.prompt.head import AttentionHead
from attractor.prompt.in_context import LinearRegression, built_in, initial_head, risk_transfer
from attractor.prompt.regression import Blocks, infinite_risk, softmax_risk

_TITLES = {
    "noisy": "linear, noisy labels",
    "logistic": "logistic, binary labels",
    "features": "linear in ReLU features",
    "index": r"$y = \tanh(w^\top x)$",
}
_TIMES = {
    "noisy": (0.0, 1.0, 3.0, 30.0),
    "logistic": (0.0, 10.0, 20.0, 60.0),
    "features": (0.0, 5.0, 10.0, 30.0),
    "index": (0.0, 1.0, 3.0, 30.0),
}
_LEVEL: dict[str, Any] = {"linestyle": "-", "linewidth": 0.8, "alpha": 0.8}
"""The look of what infinite prompts reach, without the marks of what was trained on finite ones."""
_ERRORS = 4.0
"""Standard errors to which estimates agree with exact numbers."""


def _compute(request: Request) -> xr.Dataset:
    settings, parts = request.settings, []
    tasks = built_in(settings["inputs"])
    with request.bar("families", len(_TITLES)) as advance:
        for name in _TITLES:
            found = risk_transfer(
                tasks[name],
                settings["lengths"],
                settings["times"][name],
                tasks=settings["tasks"],
                held_out=settings["held_out"],
                seed=request.seed,
            )
            # Times differ from family to family: numbered, with their values beside.
            times = ("time", found.data["time"].values)
            parts.append(found.data.drop_vars("time").assign(times=times))
            advance(1)
    data = stacked(parts, "family", list(_TITLES))
    return data.assign_attrs(inputs=settings["inputs"], tasks=settings["tasks"],
                             held_out=settings["held_out"])  # fmt: skip


def _off_exact(data: xr.Dataset) -> dict[str, float]:
    """Distances of linear regression from the exact risks of its heads, in standard errors."""
    task = built_in(data.attrs["inputs"])["noisy"]
    assert isinstance(task, LinearRegression)
    regression, off = task.regression, {}
    one = data.sel(family="noisy")
    noise, shortest = regression.query_noise / 2, int(data["length"].values[0])
    start = _blocks(initial_head(regression.dimension + 1))
    exact = softmax_risk(regression, start, shortest).risk + noise
    first = one.isel(time=0).sel(length=shortest)
    off["the start, shortest prompts"] = float((first["risk"] - exact) / first["risk_error"])
    last = one.isel(time=-1).sel(length=math.inf)
    head = AttentionHead(last["score_matrix"].values, last["value_matrix"].values)
    exact = float(infinite_risk(regression, _blocks(head))) + noise
    off["the end, infinite prompts"] = float((last["risk"] - exact) / last["risk_error"])
    return off


def _blocks(head: AttentionHead) -> Blocks:
    return Blocks.of(np.asarray(head.score_matrix), np.asarray(head.value_matrix))


def _readings(data: xr.Dataset) -> Readings:
    found = [
        at_most(f"noisy, {words}: distance from the exact risk, in standard errors", abs(off),
                _ERRORS)
        for words, off in _off_exact(data).items()
    ]  # fmt: skip
    lengths = data["length"].values[:-1]
    shares = {}
    for name in _TITLES:
        excess = data["excess"].sel(family=name).isel(time=-1)
        shares[name] = float(excess.sel(length=lengths[-1]) / excess.sel(length=lengths[0]))
        found.append(at_most(f"{name}: excess of the longest prompts over that of the shortest",
                             shares[name], 0.5))  # fmt: skip
        risk = data["training_risk"].sel(family=name)
        found.append(at_most(f"{name}: largest rise of a risk trained on", risk.diff("time").max(),
                             1e-6))  # fmt: skip
    words = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    return Readings(*found, shares=words, first=int(lengths[0]), last=int(lengths[-1]))


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 4.4))
    panels = figure.subplots(2, 2, sharex=True).ravel()
    lengths = data["length"].values[:-1]
    for axes, (name, title) in zip(panels, _TITLES.items(), strict=True):
        one = data.sel(family=name)
        axes.set(xscale="log", title=title, xlim=(0.8 * lengths[0], 2.2 * lengths[-1]))
        for column, look in enumerate(SERIES[: data.sizes["time"]]):
            risk, error = (one[each].isel(time=column) for each in ("risk", "risk_error"))
            axes.errorbar(lengths, risk[:-1], error[:-1], capsize=2, marker="o", markersize=3,
                          **look)  # fmt: skip
            axes.axhline(float(risk[-1]), zorder=0, color=look["color"], **_LEVEL)
        axes.set_xticks(lengths, [f"{length:,.0f}" for length in lengths])
        axes.minorticks_off()
        _label_levels(axes, one)
    for axes in panels[2:]:
        axes.set_xlabel("tokens in the prompt, $L$")
    for axes in panels[::2]:
        axes.set_ylabel("risk on held-out tasks")
    panel_letters(panels)
    handles = [
        Line2D([], [], color="#555555", marker="o", markersize=3),
        Line2D([], [], color="#555555", **_LEVEL),
    ]
    figure.legend(handles, ["trained on prompts of $L$ tokens", "trained on infinite prompts"],
                  loc="outside lower center", ncols=2, frameon=False)  # fmt: skip
    return figure


def _label_levels(axes: Axes, one: xr.Dataset) -> None:
    """The times beside the levels of infinite prompts, moved apart where these are near."""
    low, high = axes.get_ylim()
    levels = one["risk"].isel(length=-1).values
    place = low - (high - low)
    for column in np.argsort(levels):
        place = max(float(levels[column]), place + 0.075 * (high - low))
        axes.text(0.995, place, f"$t = {float(one['times'][column]):g}$", ha="right", va="bottom",
                  color=SERIES[column]["color"], fontsize=8,
                  transform=axes.get_yaxis_transform())  # fmt: skip


TASK_FAMILIES = Figures(LARGE_PROMPT).figure(
    "task-families",
    "risk by length of the prompt on four families of in-context tasks, at several times",
    statement="training on long prompts reaches the risk of training on infinite ones, in general",
    published="none; the general theorem is about every such family",
    sizes=by_size(
        seeds=1,
        inputs=[3, 4, 4],
        lengths=[(16, 64, 256), (16, 64, 256, 1024), (16, 64, 256, 1024, 4096)],
        times=_TIMES,
        tasks=[512, 2048, 4096],
        held_out=[2048, 8192, 8192],
    ),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Risk of one softmax head, all of U and V trained by gradient flow on the average loss "
        "over {attrs[tasks]:,} tasks, against the length of the prompts, on {attrs[held_out]:,} "
        "other tasks (bars: standard errors); {attrs[inputs]} inputs, squared loss, or logistic "
        "loss for binary labels. Thin lines: trained on infinite prompts from the same start, for "
        "the same time. At the last time the excess over that level at {last:,} tokens, over the "
        "same at {first:,}: {shares}."
    ),
)
