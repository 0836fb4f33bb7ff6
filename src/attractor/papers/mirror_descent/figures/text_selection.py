"""Attention of the read-out of text classifiers on the words that tell the class."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from attractor.papers.figure import Figures, Readings, Request, at_least
from attractor.papers.mirror_descent.classifiers.experiment import experiment
from attractor.papers.mirror_descent.classifiers.styles import by_optimizer, in_words
from attractor.papers.mirror_descent.texts import SIZES, TAKES, task_of
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.plots.design.roles import DASHED
from attractor.results.paper import MIRROR_DESCENT


def _compute(request: Request) -> xr.Dataset:
    found = experiment(request, task_of(request), request.settings["optimizers"], kind="text")
    return found[
        ["attention", "attention_by_frequency", "attention_by_chance", "rescaled_attention"]
    ]


def _last(values: xr.DataArray) -> xr.DataArray:
    return values.isel(block=-1, drop=True)


def _readings(data: xr.Dataset) -> Readings:
    ratio = (_last(data["attention"]) / data["attention_by_chance"]).mean("seed")
    rescaled = data["rescaled_attention"].mean("seed")
    return Readings(
        *(
            at_least(f"attention of {name} in the last block on telling words over that by chance",
                     ratio.sel(optimizer=name), 1.0)
            for name in ("p = 1.1", "p = 2")
        ),
        at_least("published reading: rescaled attention of p = 1.1 less that of p = 2",
                 rescaled.sel(optimizer="p = 1.1") - rescaled.sel(optimizer="p = 2"), 0),
        chance=data["attention_by_chance"].mean(),
        in_last_block=in_words(_last(data["attention"])),
        rescaled=in_words(data["rescaled_attention"]),
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 2.7))
    parts = {"last block": _last}
    if data.sizes["block"] > 1:
        parts["all blocks"] = lambda values: values.mean("block")
    panels = figure.subplots(1, len(parts) + 1)
    for axes, (title, part) in zip(panels, parts.items(), strict=False):
        by_optimizer(axes, part(data["attention"]))
        _levels(axes, part(data["attention_by_frequency"]), "tokens of like frequency",
                {"color": COLORS["black"]})  # fmt: skip
        _levels(axes, data["attention_by_chance"], "chance",
                {"color": COLORS["gray"], "linestyle": DASHED})  # fmt: skip
        axes.set_title(title)
    for axes in panels[1:-1]:
        axes.sharey(panels[0])
        axes.tick_params(labelleft=False)
    panels[0].set_ylabel("attention on telling words")
    panels[0].set_ylim(0)
    by_optimizer(panels[-1], data["rescaled_attention"])
    panels[-1].set(ylim=(0, 1.05), ylabel="rescaled attention", title="last block, as published")
    panel_letters(panels)
    shared_legend(figure, panels[:1])
    return figure


def _levels(axes: Axes, values: xr.DataArray, label: str, look: dict[str, Any]) -> None:
    """A short line at the mean of each optimizer."""
    mean = values.mean("seed") if "seed" in values.dims else values
    for place, level in enumerate(np.atleast_1d(mean.values)):
        named = {"label": label} if place == 0 else {}
        axes.hlines(level, place - 0.3, place + 0.3, linewidth=1.2, **named, **look)


TEXT_SELECTION = Figures(MIRROR_DESCENT).figure(
    "text-selection",
    "attention of the read-out on words that tell the class, by optimizer",
    statement="experiment: sentiment of film reviews, token selection",
    published=(
        "one model each: rescaled attention on the pivotal word .4387 for p = 1.1, .3122 for p = 2"
    ),
    sizes=SIZES,
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Attention of the position that the class is read from on the words that tell it, in texts "
        "not seen, mean over heads: in the last block, over all blocks where there are several, "
        "and as published, in the last block with the attention of each text rescaled from 0 to 1 "
        "at its least and most attended token (means over {sizes[seed]} models with 95 % "
        "intervals; single models as dots). Solid lines: what the words would get as other tokens "
        "of like frequency do; dashed: by chance ({chance:.3f}). Last block: {in_last_block}. "
        "Published reading: {rescaled}."
    ),
    takes=TAKES,
)
