"""Attention over an infinite prompt of tokens that are not Gaussian: its output and gain."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_most, by_size, close_to
from attractor.papers.paper import LARGE_PROMPT
from attractor.plots._style import COLORS, panels_on_page
from attractor.plots.pairs import panel_letters, shared_legend
from attractor.plots.roles import DASH_DOT_DOTTED, DASH_DOTTED, DASHED, DOTTED, SOLID
from attractor.prompt.measures import Gaussian, Measure, Rademacher, Sphere, Uniform

_LAWS: dict[str, tuple[Measure, dict[str, Any]]] = {
    "Gaussian": (Gaussian.isotropic(8), {"color": COLORS["black"], "linestyle": SOLID}),
    "sphere, d = 64": (Sphere(64, 8.0), {"color": COLORS["blue"], "linestyle": DASHED}),
    "sphere, d = 8": (Sphere(8, 8.0**0.5), {"color": COLORS["sky"], "linestyle": DASH_DOTTED}),
    "uniform": (Uniform(3.0**0.5, 1), {"color": COLORS["green"], "linestyle": DASH_DOT_DOTTED}),
    "signs": (Rademacher(1), {"color": COLORS["orange"], "linestyle": DOTTED}),
}
"""Laws of unit covariance, along one of their axes."""
_KNOWN = {
    "sphere, d = 64": {1: 0.985, 2: 0.946, 4: 0.831},
    "sphere, d = 8": {1: 0.914, 2: 0.754, 4: 0.514},
    "signs": {1: 0.762, 2: 0.482},
}
_LARGEST = 5.0
_ON_CURVE = 400


def _compute(request: Request) -> xr.Dataset:
    scores = np.linspace(0, _LARGEST, request.settings["scores"])[1:]
    found = np.empty((len(_LAWS), len(scores), 2))
    for place, (law, _) in enumerate(_LAWS.values()):
        directions = scores[:, None] * np.eye(law.dimension)[0]
        tilt = law.tilt(directions)
        found[place, :, 0] = np.asarray(tilt.mean)[:, 0]
        found[place, :, 1] = np.asarray(tilt.covariance)[:, 0, 0]
    request.uses("scores", scores=scores)
    return xr.Dataset(
        {
            "output": (("law", "score_deviation"), found[..., 0]),
            "variance": (("law", "score_deviation"), found[..., 1]),
        },
        {"law": list(_LAWS), "score_deviation": scores},
    )


def _gain(data: xr.Dataset) -> xr.DataArray:
    return data["output"] / data["score_deviation"]


def _readings(data: xr.Dataset) -> Readings:
    gain = _gain(data)
    gaussian = float(np.abs(gain.sel(law="Gaussian") - 1).max())
    found = [at_most("largest distance of the Gaussian gain from 1", gaussian, 1e-12)]
    for law, values in _KNOWN.items():
        found += [
            close_to(f"gain, {law}, scores of deviation {score}",
                     gain.sel(law=law).interp(score_deviation=score), value, 6e-4)
            for score, value in values.items()
        ]  # fmt: skip
    two = gain.interp(score_deviation=2.0)
    gains = ", ".join(f"{law} {two.sel(law=law):.3f}" for law in data["law"].values)
    return Readings(*found, gains=gains)


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(2.8, 1, 3)
    scores = data["score_deviation"]
    curves = (data["output"], _gain(data), data["variance"])
    labels = ("output along the scores", "gain: output over $s$", "variance after the tilt")
    for axes, curve, label in zip(panels, curves, labels, strict=True):
        for name, (_, look) in _LAWS.items():
            axes.plot(scores, curve.sel(law=name), label=name, **look)
        axes.set(xlabel="deviation of the scores, $s$", ylabel=label, xlim=(0, _LARGEST), ylim=0)
    panel_letters(panels)
    shared_legend(figure, panels[:1], columns=5)
    return figure


GAINS = Figures(LARGE_PROMPT).figure(
    "gains",
    "output on infinite prompts of tokens on a sphere, uniform ones and signs: not linear",
    statement="affine identity for Gaussian tokens, and other laws of tokens",
    published="none",
    sizes=by_size(seeds=1, scores=_ON_CURVE + 1),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Softmax attention on infinite prompts of tokens of unit covariance, along one axis: (a) "
        "the output by the deviation s of the scores, (b) its ratio to s, which is 1 where "
        "attention is linear, (c) the variance of the tilted law, the slope of (a). Only Gaussian "
        "tokens make attention linear; others are linear for small scores. On a sphere, an "
        "elliptical law, the output keeps its direction, and its length is not linear. Gains at s "
        "= 2: {gains}."
    ),
)
