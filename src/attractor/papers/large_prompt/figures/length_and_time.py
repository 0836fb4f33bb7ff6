"""The distance from the limit of infinite prompts, by length and time, value trained or fixed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.interpolate
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.papers.figure import (
    Figures,
    Readings,
    Request,
    at_least,
    at_most,
    by_size,
    close_to,
)
from attractor.papers.large_prompt.regimes import TARGET
from attractor.papers.paper import LARGE_PROMPT
from attractor.plots._style import panels_on_page
from attractor.plots.pairs import panel_letters
from attractor.plots.roles import DASHED
from attractor.prompt.regression import (
    Blocks,
    RegressionTask,
    drift_time,
    finite_flow,
    finite_prompt_limit,
    isotropic_finite_flow,
    trained_limit,
)

_BALANCED, _VALUE = 0.2, 1 / TARGET
_REACHED, _SHARE = 10**6, 0.9
_TIMES, _KNOWN = (0.03, 3e7), (1024, 2e4)
_LONG_FLOW = (64, 256, 1024)
_REPRODUCED = (16, 1024)
_STEPS, _RATE = 220, 0.025
_TOLERANCE = 1e-6
_DRAWN = 200


class _Setting(NamedTuple):
    """What is trained, from where.

    Attributes:
        title: In words.
        dimension: Number of independent inputs.
        value: ``b`` at the start, where ``A`` is zero; the balanced start if it is its scale.
        trained: Whether ``b`` is.
    """

    title: str
    dimension: int
    value: float
    trained: bool

    @property
    def start(self) -> float:
        """``b`` at the start of the drift along heads that predict exactly."""
        return float(self.limit.value_label)

    @property
    def task(self) -> RegressionTask:
        """The law of prompts and queries."""
        return RegressionTask(np.eye(self.dimension))

    @property
    def limit(self) -> Blocks:
        """The head trained on infinite prompts."""
        if self.trained:
            imbalance = 0.0 if self.value == _BALANCED else -(self.value**2)
            return trained_limit(self.task, imbalance=imbalance).blocks
        zeros = np.zeros(self.dimension)
        return Blocks(np.eye(self.dimension) / self.value, zeros, zeros, np.array(self.value))

    def follow(
        self, length: float, times: Float[np.ndarray, "time"]
    ) -> tuple[Float[np.ndarray, "time"], Float[np.ndarray, "time"]]:
        """The diagonal entry of ``A``, and ``b``, along the flow on prompts of some length."""
        d, zeros = self.dimension, np.zeros(self.dimension)
        if self.value == _BALANCED:
            flow = isotropic_finite_flow(d, length, _BALANCED, times, tolerance=_TOLERANCE)
            return flow.a, flow.b
        start = Blocks(np.zeros((d, d)), zeros, zeros, np.array(self.value))
        found = finite_flow(
            self.task, length, start, times,
            value="trained" if self.trained else "fixed", tolerance=_TOLERANCE,
        )  # fmt: skip
        return found.blocks.key_query[:, 0, 0], found.blocks.value_label


_SETTINGS = {
    "balanced": _Setting("b trained, balanced start", 5, _BALANCED, True),
    "trained": _Setting("b trained, start of (c)", 4, _VALUE, True),
    "fixed": _Setting("b fixed", 4, _VALUE, False),
}


def _compute(request: Request) -> xr.Dataset:
    lengths = np.unique(
        np.concatenate([np.geomspace(16, _REACHED, request.settings["lengths"]), [_KNOWN[0]]])
    )
    times = np.unique(np.concatenate([[0], np.geomspace(*_TIMES, 160), [_KNOWN[1]]]))
    request.uses("grid", lengths=lengths, times=times)
    shape = (len(_SETTINGS), len(lengths), len(times))
    distance, b = np.empty(shape), np.empty(shape)
    with request.bar("flows", len(_SETTINGS) * len(lengths)) as advance:
        for row, setting in enumerate(_SETTINGS.values()):
            limit = float(setting.limit.key_query[0, 0]), float(setting.limit.value_label)
            for column, length in enumerate(lengths):
                a, b[row, column] = setting.follow(float(length), times)
                off = a / limit[0] - 1, b[row, column] / limit[1] - 1
                distance[row, column] = np.abs(off).max(axis=0)
                advance(1)
    drifting = [name for name, setting in _SETTINGS.items() if setting.trained]
    pace = {name: _drift(_SETTINGS[name]) for name in drifting}
    axes = ("setting", "length", "time")
    return xr.Dataset(
        {
            "distance": (axes, distance),
            "b": (axes, b),
            "drift": ("drifting", [pace[name] for name in drifting]),
        },
        {"setting": list(_SETTINGS), "drifting": drifting, "length": lengths, "time": times},
        {"reproduced": _reproduced_time()},
    )


def _drift(setting: _Setting) -> float:
    """Time over length in which ``b`` goes most of the way to the limit of long prompts."""
    first, end = setting.start, finite_prompt_limit(setting.task)
    return drift_time(setting.task, first, first + _SHARE * (end - first))


def _reproduced_time() -> float:
    """Time of gradient flow on infinite prompts that comes as near as the reproduction's training.

    It takes steps of Adam on ``(u - target)^2`` for every diagonal entry; the flow's distance falls
    like ``exp(-b^2 t)``.
    """
    u, first, second = 0.0, 0.0, 0.0
    off = []
    for step in range(1, _STEPS + 1):
        gradient = 2 * (u - TARGET)
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        u -= _RATE * first / (1 - 0.9**step) / math.sqrt(second / (1 - 0.999**step))
        off.append(abs(u / TARGET - 1))
    return -math.log(max(off[-20:])) / _VALUE**2


def _crossing(data: xr.Dataset, name: str) -> float:
    """When ``b`` has gone the share of its way on the longest prompts, over their length."""
    setting = _SETTINGS[name]
    b, end = data["b"].sel(setting=name).isel(length=-1), finite_prompt_limit(setting.task)
    way = (b.values - setting.start) / (end - setting.start)
    before = int(np.flatnonzero(way < _SHARE)[-1])
    logs = np.log(data["time"].values[[before, before + 1]])
    share = (_SHARE - way[before]) / (way[before + 1] - way[before])
    return math.exp(logs[0] + share * (logs[1] - logs[0])) / float(data["length"][-1])


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(time=-1)
    found = [
        close_to("b trained, balanced start: b of 1,024 tokens at time 20,000",
                 data["b"].sel(setting="balanced", length=_KNOWN[0], time=_KNOWN[1]), 2.707, 6e-4),
        *[
            close_to(f"{_SETTINGS[name].title}: b of a million tokens at the end",
                     last["b"].sel(setting=name).isel(length=-1),
                     finite_prompt_limit(_SETTINGS[name].task), 2e-3)
            for name in data["drifting"].values
        ],
        *[
            close_to(f"{_SETTINGS[name].title}: time of nine tenths of the drift over theory",
                     _crossing(data, name) / data["drift"].sel(drifting=name), 1.0, 0.1)
            for name in data["drifting"].values
        ],
    ]  # fmt: skip
    fixed = last["distance"].sel(setting="fixed")
    ends = {name: last["distance"].sel(setting=name).isel(length=-1) for name in _SETTINGS}
    found += [
        at_most("b fixed: distance at the end on a million tokens", ends["fixed"], 1e-5),
        at_least("b fixed: squared distance at the end, of 16 over 1,024 tokens",
                 (fixed.sel(length=16) / fixed.sel(length=_KNOWN[0])) ** 2, 1000.0),
        at_least("b trained: least distance at the end on a million tokens",
                 min(ends["balanced"], ends["trained"]), 0.4),
    ]  # fmt: skip
    early = data["distance"].sel(time=3.0, method="nearest").sel(setting="balanced")
    found.append(at_most("balanced start, time 3: distance of a million tokens over that of 16",
                         early.isel(length=-1) / early.isel(length=0), 0.1))  # fmt: skip
    return Readings(
        *found,
        scale=_BALANCED,
        target=TARGET,
        value=_VALUE,
        ends={name: float(value) for name, value in ends.items()},
        drift={str(n): float(data["drift"].sel(drifting=n)) for n in data["drifting"].values},
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(3.1, 1, 3, sharex=True, sharey=True)
    times = data["time"].values[1:]
    known = np.log10(np.maximum(data["distance"].values[..., 1:], 1e-6))
    logs = np.log10(data["length"].values)
    lengths = np.geomspace(16, _REACHED, _DRAWN)
    levels = np.linspace(-3, 0, 13)
    images = []
    for axes, (name, setting), values in zip(panels, _SETTINGS.items(), known, strict=True):
        smooth = scipy.interpolate.PchipInterpolator(logs, values, axis=0)(np.log10(lengths))
        look: dict[str, Any] = {"levels": levels, "cmap": "viridis", "extend": "both"}
        images.append(axes.contourf(lengths, times, smooth.T, **look))
        axes.set(xscale="log", yscale="log", xlabel="tokens in the prompt, $L$")
        axes.set_title(setting.title.replace("b ", "$b$ ", 1))
        axes.grid(False)
        if setting.trained:
            pace = float(data["drift"].sel(drifting=name))
            axes.plot(lengths, pace * lengths, color="white", linestyle=DASHED)
            _words(axes, "drift, $t \\propto L$", (2.5e4, pace * 2.5e4 / 8))
    panels[0].plot(_LONG_FLOW, [_KNOWN[1]] * len(_LONG_FLOW), "o", color="white", markersize=4)
    _words(panels[0], "long flows", (64, 1.6 * _KNOWN[1]))
    panels[2].plot(_REPRODUCED, [data.attrs["reproduced"]] * 2, color="white", linewidth=2.5)
    _words(panels[2], "reproduction", (16, 1.6 * data.attrs["reproduced"]))
    panels[0].set(ylabel="time $t$ of gradient flow", xlim=(16, _REACHED), ylim=_TIMES)
    ticks = np.log10([1e-3, 1e-2, 1e-1, 1]).tolist()
    bar = figure.colorbar(images[0], ax=panels.tolist(), pad=0.02, ticks=ticks)
    bar.ax.set_yticklabels(["0.1 %", "1 %", "10 %", "100 %"])
    bar.ax.minorticks_off()
    bar.set_label("relative distance of $A$ and $b$")
    panel_letters(panels)
    return figure


def _words(axes: Axes, words: str, place: tuple[float, float]) -> None:
    look: dict[str, Any] = {"color": "white", "fontsize": 7}
    axes.annotate(words, place, (2, 0), textcoords="offset points", **look)


LENGTH_AND_TIME = Figures(LARGE_PROMPT).figure(
    "length-and-time",
    "distance from the head of infinite prompts by length and time: value trained, value fixed",
    statement="training on long prompts reaches the optimal risk, and what parameters do",
    published="none; two accounts of what trained parameters do are put on one map",
    sizes=by_size(seeds=1, lengths=[6, 11, 17]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Relative distance of A or b, whichever is farther, in gradient flow on the exact risk of "
        "finite prompts, from where training on infinite ones ends. (a) Five independent inputs, "
        "balanced start of scale {scale:g}; (b, c) four, A = 0 and b = {value:.2f}, the task of a "
        "reproduction that trains heads without a value matrix to return {target:g} of the query, "
        "in other units of time. With the value b "
        "trained, flows on long prompts come near the head of infinite ones, and leave it along "
        "the curve of heads that predict exactly from these: b has gone nine tenths of the way at "
        "t = {drift[balanced]:.3f} L and {drift[trained]:.3f} L (dashed, from the leading order of "
        "the risk), and at the end they are {ends[balanced]:.0%} and {ends[trained]:.0%} off on a "
        "million tokens. With b fixed one head predicts exactly, and flows stay near it "
        "({ends[fixed]:.1e} off). Limits of length and time commute in (c) and not in (a) and (b). "
        "White: lengths and time of the reproduction (that of gradient flow which comes as near as "
        "its steps of Adam), and of the long flows of the figure order-of-limits."
    ),
)
