"""Saturation of attention and prediction when head and attention are trained together."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attractor.papers.figure import Artifact, Figures, Readings, at_least, at_most, by_size
from attractor.papers.mirror_descent.data import EXPONENTS
from attractor.papers.mirror_descent.figures._two_sequences import EXACT, PUBLISHED, joint_runs
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.plots.design.roles import line_style
from attractor.results.paper import MIRROR_DESCENT

_SHOWN = 100
_PANELS = {
    "softmax_probability": "highest attention weight",
    "logistic_probability": "probability of the label",
}


def _readings(data: xr.Dataset) -> Readings:
    shown = data.isel(record=_SHOWN)
    found = [
        at_least(
            f"least {name} after {_SHOWN} iterations", shown[variable].sel(kernel=EXACT).min(), 0.99
        )
        for variable, name in _PANELS.items()
    ]
    if PUBLISHED in data["kernel"]:
        early = data.isel(record=slice(_SHOWN))["softmax_probability"]
        off = np.abs(early.sel(kernel=EXACT) - early.sel(kernel=PUBLISHED)).max()
        text = f"largest difference of attention from the published run's in {_SHOWN} iterations"
        found.append(at_most(text, off, 1e-6))
    short = data["softmax_probability"].sel(kernel=EXACT) < 0.99
    reach = ", ".join(f"{int(short.sel(p=p).sum())} for p = {p:g}" for p in EXPONENTS)
    return Readings(*found, iterations=_SHOWN, reach=reach)


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 2.5))
    for axes, (variable, name) in zip(
        figure.subplots(1, 2, sharey=True), _PANELS.items(), strict=True
    ):
        for p in EXPONENTS:
            run = data.sel(p=p).isel(record=slice(_SHOWN + 1))
            axes.plot(
                run["step"].sel(kernel=EXACT),
                run[variable].sel(kernel=EXACT),
                **line_style(f"l_{p:g}", label=f"$p = {p:g}$"),
            )
            if PUBLISHED in data["kernel"] and variable == "logistic_probability":
                shifted = run["published_logistic_probability"].sel(kernel=PUBLISHED)
                axes.plot(run["step"].sel(kernel=PUBLISHED)[1:] - 1, shifted[1:], **_PUBLISHED)
        axes.set(xlim=(0, _SHOWN), xlabel="iteration", title=name)
    figure.axes[0].set(ylim=(0.3, 1.02), ylabel="mean over sequences")
    if PUBLISHED in data["kernel"]:
        figure.axes[1].plot([], [], label="as published", **_PUBLISHED)
    figure.axes[1].legend(loc="lower right")
    return figure


_PUBLISHED = line_style("as_published", color=COLORS["gray"], linewidth=0.8)


JOINT_PROBABILITIES = Figures(MIRROR_DESCENT).figure(
    "joint-probabilities",
    "attention and prediction saturate when head and attention are trained together",
    statement="experiment: joint training of head and attention",
    published=(
        "softmax and logistic probability of two sequences over the first 100 iterations, for p = "
        "1.75, 2 and 3; both tend to 1"
    ),
    sizes=by_size(seeds=1),
    compute=joint_runs,
    draw=_draw,
    readings=_readings,
    caption=(
        "Joint mirror descent of head and attention from zero on two sequences: the highest "
        "attention weight, and the probability of the label at the token attended to, both means "
        "over sequences, in the first {iterations} iterations. The weight reaches 0.99 after "
        "{reach} iterations."
    ),
    artifact=Artifact(
        "the head is logged one step ahead of attention",
        "Gray: as published, where the probability is that of the head one step later than the "
        "attention it is logged with.",
    ),
)
