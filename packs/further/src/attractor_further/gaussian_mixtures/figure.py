"""Attention on two clusters of tokens: linear when it can be, selective when it must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.papers import Figures, Readings, Request, at_least, at_most, by_size
from attractor.plots import COLORS, DASHED, DOTTED, SERIES, panel_letters, panels_on_page
from attractor.prompts.measures import Gaussian, Mixture
from attractor_further.gaussian_mixtures import PAPER
from attractor_further.gaussian_mixtures.denoising import both_heads, posterior_mean, residual
from attractor_further.gaussian_mixtures.denoising_data import noisy_points

_SEPARATIONS = (0.0, 0.5, 0.8, 0.98)
"""Half the distance of the clusters, where the variance of the tokens is one."""
_LARGEST = 4.0
_SPREAD, _NOISE = 1.0, 2.0
_MEAN = 3.0
_STEPS = 500
_DENOISERS = ("mean given what is seen", "two heads", "head and query", "linear attention")


def _compute(request: Request) -> xr.Dataset:
    count = request.settings["points"]
    return xr.merge([_outputs(count), _denoised(count, request), _iterated(count)])


def _outputs(count: int) -> xr.Dataset:
    """Output and gate of a head on two clusters on a line, by the tilt of the tokens' law."""
    tilts = np.linspace(-_LARGEST, _LARGEST, count)
    outputs, gates = np.empty((2, len(_SEPARATIONS), count))
    for place, m in enumerate(_SEPARATIONS):
        variance = [[1 - m**2]]
        law = Mixture([0.5, 0.5], [Gaussian([m], variance), Gaussian([-m], variance)])
        outputs[place] = np.asarray(law.tilt(tilts[:, None]).mean)[:, 0]
        gates[place] = np.asarray(law.responsibilities(tilts[:, None]))[:, 0]
    axes = ("separation", "tilt")
    return xr.Dataset(
        {"output": (axes, outputs), "gate": (axes, gates)},
        {"separation": list(_SEPARATIONS), "tilt": tilts},
    )


def _denoised(count: int, request: Request) -> xr.Dataset:
    """The outputs of denoisers at points on the line through the middles of both clusters."""
    case = noisy_points((_MEAN, 0.0), (0.0, _MEAN), _SPREAD, _NOISE)
    request.uses("clusters", **case.arrays())
    half = np.array([_MEAN, -_MEAN]) / 2
    middle = np.array([_MEAN, _MEAN]) / 2
    places = np.linspace(-4, 4, count)
    seen = middle + places[:, None] * half
    second = _SPREAD**2 + _NOISE**2
    moment = np.outer(half, half) + np.outer(middle, middle)
    linear = (_SPREAD**2 * np.eye(2) + moment) @ np.linalg.inv(second * np.eye(2) + moment)
    found = np.stack([
        posterior_mean(case, seen), both_heads(case, seen), residual(case, seen), seen @ linear.T,
    ])  # fmt: skip
    along = (found - middle) @ half / (half @ half)
    return xr.Dataset(
        {"denoised": (("denoiser", "seen"), along)},
        {"denoiser": list(_DENOISERS), "seen": places},
    )


def _iterated(count: int) -> xr.Dataset:
    """The limits of points denoised again and again, and the fixed points predicted."""
    ratios = np.linspace(0.5, 2.0, count // 2)
    ends = np.empty(len(ratios))
    for place, ratio in enumerate(ratios):
        # Of all that is seen half the distance of the means is ratio deviations.
        distance = ratio * np.hypot(_SPREAD, _NOISE)
        case = noisy_points((distance, 0.0), (-distance, 0.0), _SPREAD, _NOISE)
        point = np.array([[0.1 * distance, 0.0]])
        for _ in range(_STEPS):
            before, point = point, posterior_mean(case, point)
            if np.array_equal(point, before):  # and so it stays
                break
        ends[place] = point[0, 0] / distance
    return xr.Dataset(
        {"end": ("ratio", ends), "fixed_point": ("ratio", _fixed_points(ratios))},
        {"ratio": ratios},
    )


def _fixed_points(ratios: Float[np.ndarray, "ratio"]) -> Float[np.ndarray, "ratio"]:
    """The largest solutions of ``u = tanh(ratio^2 u)``."""
    found = np.zeros(len(ratios))
    for place, gain in enumerate(ratios**2):
        if gain > 1:
            low = np.sqrt(3 * (gain - 1) / gain**3) / 2
            found[place] = scipy.optimize.root_scalar(
                lambda u, gain: float(np.tanh(gain * u)) - u, args=(gain,), bracket=(low, 1.0)
            ).root
    return found


def _readings(data: xr.Dataset) -> Readings:
    m, tilt = data["separation"], data["tilt"]
    formula = m * np.tanh(m * tilt) + (1 - m**2) * tilt
    off = abs(data["denoised"] - data["denoised"].sel(denoiser=_DENOISERS[0])).max("seen")
    ends = abs(data["end"] - data["fixed_point"]).where(abs(data["ratio"] - 1) > 0.03, 0)
    return Readings(
        at_most("largest distance of the output from m tanh(m a) + (1 - m^2) a",
                np.abs(data["output"] - formula).max(), 1e-12),
        at_most("largest distance of two heads from the mean given what is seen",
                off.sel(denoiser="two heads"), 1e-6),
        at_most("that of one head added to a multiple of its query",
                off.sel(denoiser="head and query"), 1e-6),
        at_least("that of linear attention", off.sel(denoiser="linear attention"), 0.1),
        at_most("largest distance of ends from fixed points, away from the transition",
                ends.max(), 1e-4),
        distances=", ".join(f"{name} {off.sel(denoiser=name):.2g}" for name in _DENOISERS[1:]),
        steps=_STEPS,
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(4.9, 2, 2)
    panels = panels.ravel()
    for m, look in zip(_SEPARATIONS, SERIES, strict=True):
        one = data.sel(separation=m)
        panels[0].plot(data["tilt"], one["output"], label=f"$m$ = {m:g}", **look)
        panels[1].plot(data["tilt"], one["gate"], label=f"$m$ = {m:g}", **look)
    panels[0].set(xlabel="tilt $a = U z$", ylabel="output", title="two clusters at $\\pm m$")
    panels[1].set(xlabel="tilt $a = U z$", ylabel="weight of a cluster", title="gates")
    panels[1].legend(fontsize=7)
    _denoisers(panels[2], data)
    panels[3].plot(data["ratio"], data["fixed_point"], color=COLORS["black"], linestyle=DASHED,
                   label=r"$u = \tanh(\lambda^2 u)$")  # fmt: skip
    every = max(1, data.sizes["ratio"] // 40)
    panels[3].plot(data["ratio"][::every], data["end"][::every], "o", color=COLORS["blue"],
                   markersize=3, label=f"denoised {_STEPS} times")  # fmt: skip
    panels[3].axvline(1, color=COLORS["gray"], linewidth=0.8, linestyle=DOTTED)
    panels[3].set(xlabel="$\\lambda$, half the distance over the deviation seen",
                  ylabel="where points end", title="iterated denoising")  # fmt: skip
    panels[3].legend(fontsize=7)
    panel_letters(panels)
    return figure


def _denoisers(axes: Axes, data: xr.Dataset) -> None:
    wide: dict[str, Any] = {"color": "#bbbbbb", "linewidth": 4, "solid_capstyle": "butt"}
    looks: list[dict[str, Any]] = [wide, *(dict(look) for look in SERIES)]
    for name, look in zip(_DENOISERS, looks, strict=False):
        axes.plot(data["seen"], data["denoised"].sel(denoiser=name), label=name, **look)
    axes.set(xlabel="point seen", ylabel="point returned", title="denoising")
    axes.legend(fontsize=7)


MIXTURES = Figures(PAPER).figure(
    "outputs-and-denoising",
    "attention on two clusters: output, gates, denoising by two heads, iterated denoising",
    statement="softmax attention on two clusters: gates, denoising, iterated denoising",
    published="not reproduced panel by panel; statements on gates and denoisers, drawn",
    sizes=by_size(seeds=1, points=[81, 201, 401]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Softmax attention on infinite prompts of two Gaussian clusters. (a, b) On a line, means m "
        "and -m, tokens of variance one: output and gate by the tilt a. Without separation it is "
        "linear; the further apart, the more it selects. (c) Points of two clusters, at (3, 0) and "
        "(0, 3) with variance 1, seen with noise of variance 4: the mean of a point given what is "
        "seen, on the line through both clusters (which lie at 1 and -1), and what heads make of "
        "it; largest distances: {distances}. (d) Points denoised {steps} times: lambda is half the "
        "distance of the clusters over the standard deviation of what is seen around each; for "
        "lambda <= 1 they collapse to the middle, beyond they end at one of two attractors."
    ),
)
