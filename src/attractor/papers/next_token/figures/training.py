"""Two-stage training: losses, directions and norms of both layers, from two starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from attractor.corpora.generators import order_first_corpus
from attractor.corpora.two_stages.two_stage import train_two_stages
from attractor.corpora.two_stages.two_stage_measures import measure_two_stages
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size, stacked
from attractor.plots.bands import band
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.results.paper import NEXT_TOKEN

STARTS = ("zero", "Gaussian")
"""The starts of both matrices."""
SCALES = (0.06, 0.058)
"""Standard deviations of Gaussian starts: what reproduces the norms of the published figure."""
_STYLES: dict[str, dict[str, Any]] = {
    "zero": {"color": COLORS["blue"], "linestyle": "-"},
    "Gaussian": {"color": COLORS["orange"], "linestyle": (0, (4, 1.6))},
}
_PANELS = (
    ("feed_forward_loss", "loss $L_0$, mean over tokens"),
    ("feed_forward_correlation", r"$\cos(W_{ov}, W_{ov}^*)$"),
    ("feed_forward_norm", r"$\|W_{ov}\|$"),
    ("sum_loss", "loss $L$, sum over sentences"),
    ("correlation", r"$\cos(W_{kq}, W_{kq}^*)$"),
    ("norm", r"$\|W_{kq}\|$"),
)


def _compute(request: Request) -> xr.Dataset:
    vocabulary, steps, count = (request.settings[name] for name in ("vocabulary", "steps", "seeds"))
    numbers = range(request.seed, request.seed + count)
    drawn = [order_first_corpus(seed=seed, vocabulary=vocabulary).corpus for seed in numbers]
    request.uses("training", **{f"tokens_{i}": corpus.tokens for i, corpus in enumerate(drawn)})
    run = train_two_stages(
        [*drawn, *drawn],  # from zero, and from Gaussian entries
        initial_scales=tuple(np.repeat([0.0, scale], count) for scale in SCALES),
        seed=request.seed,
        steps=(steps, steps),
        record=np.arange(0, steps + 1, request.settings["every"]),
        checkpoint=request.checkpoint("training"),
        progress=request.progress,
    )
    measured = measure_two_stages(run)
    parts = [measured.isel(instance=slice(i * count, (i + 1) * count)) for i in range(len(STARTS))]
    numbered = [part.assign_coords(instance=np.arange(count)) for part in parts]
    return stacked(numbered, "start", STARTS).assign_attrs(vocabulary=vocabulary, steps=steps)


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(step=-1, feed_forward_step=-1)
    zero, drawn = (last.sel(start=start) for start in STARTS)
    early = data["feed_forward_distance"].sel(start="zero").isel(feed_forward_step=slice(1, None))
    rate = 0.2 / data.attrs["vocabulary"] ** 0.5
    length = float(np.abs(zero["feed_forward_norm"] / (rate * data.attrs["steps"]) - 1).max())
    return Readings(
        at_most("zero start, feed-forward: largest 1 - cos at any step", early.max(), 1e-12),
        at_most("zero start, feed-forward: norm / (steps x step size) - 1", length, 1e-12),
        at_least("Gaussian start, feed-forward: smallest cosine in the end",
                 drawn["feed_forward_correlation"].min(), 0.999),
        at_least("zero start, attention: smallest cosine in the end", zero["correlation"].min(),
                 0.98),
        at_least("Gaussian start, attention: smallest cosine in the end",
                 drawn["correlation"].min(), 0.98, "least_cosine"),
        at_most("largest loss of the feed-forward layer in the end",
                last["feed_forward_loss"].max(), 0.01),
        at_most("largest sum of losses in the end", last["sum_loss"].max(), 0.5),
        cosine=drawn["correlation"].mean(),
        largest_cosine=drawn["correlation"].max(),
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 3.9))
    for axes, (name, label) in zip(figure.subplots(2, 3).flat, _PANELS, strict=True):
        along = str(data[name].dims[-1])
        for start in STARTS:
            band(axes, data[name].sel(start=start), along, label=start, look=_STYLES[start])
        axes.set_ylabel(label)
        axes.set_xlabel("step of stage 1" if along == "feed_forward_step" else "step of stage 2")
        axes.set_xlim(0, data.attrs["steps"])
    figure.axes[0].legend(title="start", loc="upper right")
    note = f"line: median over {data.sizes['instance']} corpora; band: 10th to 90th percentile"
    figure.supxlabel(note, fontsize=7, color="#555555")
    return figure


TRAINING = Figures(NEXT_TOKEN).figure(
    "training",
    "losses, directions and norms of both layers in two-stage training",
    statement="experiment: two-stage training on a random realizable data set",
    published="loss, cosine to the max-margin solution and norm of both layers, one run",
    sizes=by_size(seeds=[20, 20, 100], vocabulary=20, steps=900, every=[10, 10, 5]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Two-stage normalized gradient descent on {sizes[instance]} random realizable corpora of "
        "{attrs[vocabulary]} tokens: median, with a band from the 10th to the 90th percentile. "
        "Top: the feed-forward layer, compared with its max-margin solution. Bottom: attention, "
        "with the feed-forward layer frozen. From zero the feed-forward layer has its limit "
        "direction after one step. The published figure, whose norms begin at 1.2 and whose "
        "cosines begin near zero, starts from Gaussian entries. There the cosine of attention ends "
        "at {cosine:.3f} ({least_cosine:.3f} to {largest_cosine:.3f}). The sum of losses is over "
        "sentences in which attention has a choice."
    ),
)
