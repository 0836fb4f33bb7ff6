"""Attention under a general head: converging locally, to the tokens it settled on."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import softmax

from attractor.corpora.mechanics import (
    attention_limits,
    conflicting_corpora,
    local_limits,
    squared_miss,
    vocabulary_tokens,
)
from attractor.geometry import cosines
from attractor.papers import Figures, Readings, Request, at_least, at_most, by_size
from attractor.plots import (
    COLORS,
    DASHED,
    SOLID,
    band,
    panel_letters,
    panels_on_page,
    shared_legend,
)
from attractor.training import train
from attractor.training.optimizers import normalized_gradient_descent
from attractor_further.mechanics import PAPER

_STEP, _STEPS = 0.1, 2000
_LOCAL: dict[str, Any] = {"color": COLORS["orange"], "linestyle": SOLID}
_GLOBAL: dict[str, Any] = {"color": COLORS["blue"], "linestyle": DASHED}


def _compute(request: Request) -> xr.Dataset:
    drawn = conflicting_corpora(request.seeds, seed=request.seed)
    tokens, head = vocabulary_tokens(drawn.corpora, drawn.embeddings)
    request.uses("conflicting corpora", tokens, head)
    run = train(
        tokens, head, normalized_gradient_descent(_STEP), steps=_STEPS, loss=squared_miss,
        seed=request.seed, record=list(range(0, _STEPS + 1, 20)),
        checkpoint=request.checkpoint("run"), progress=request.progress,
    )  # fmt: skip
    W = run.data["W"].isel(seed=0).values
    probabilities = np.stack(
        [softmax(tokens.scores(one)[..., 0, :], axis=-1) for one in W.swapaxes(0, 1)], 1
    )
    everywhere = attention_limits(drawn.corpora, drawn.embeddings)
    near = local_limits(drawn.corpora, drawn.embeddings, probabilities[:, -1])
    kept = probabilities[:, -1] > 0.01
    outside = np.where(kept[:, None], 0.0, probabilities).sum(-1).mean(-1)
    along = ("data_set", "step")
    of_each = [
        (one.correlation(matrix), one.correlation_outside(matrix), cosines(matrix, far.direction.W))
        for matrix, one, far in zip(W, near, everywhere, strict=True)
    ]
    local, local_outside, globally = np.stack(of_each, axis=1)
    return xr.Dataset(
        {
            "local": (along, local),
            "local_outside": (along, local_outside),
            "global": (along, globally),
            "mass_outside": (along, outside),
            "norm": (along, run.data["norm"].isel(seed=0).values),
            "cycles": ("data_set", [one.subspace.dimension for one in near]),
            "ambiguous": ("data_set", [int(one.ambiguous.sum()) for one in near]),
        },
        {"data_set": np.arange(len(W)), "step": run.steps},
    )


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(step=-1)
    local, everywhere, norm = last["local"], last["global"], last["norm"]
    several = last["cycles"] > 0
    return Readings(
        at_least("median correlation with the local solution", local.median(), 0.999),
        at_least("least correlation with the local solution", local.min(), 0.94, "least_local"),
        at_most("median correlation with the global solution", everywhere.median(), 0.9),
        at_least("mean of the local less the global correlation", (local - everywhere).mean(), 0.1),
        at_most("mean mass on tokens given up", last["mass_outside"].mean(), 1e-3),
        steps=_STEPS,
        step=_STEP,
        ambiguous=int(last["ambiguous"].sum()),
        largest_local=local.max(),
        least_global=everywhere.min(),
        largest_global=everywhere.max(),
        several=int(several.sum()),
        norm_of_several=norm.where(several).median() if several.any() else 0.0,
        norm_of_one=norm.where(~several).median(),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(2.5, 1, 3)
    first, mass, ends = panels
    band(first, data["local"], "step", label="with the local solution", look=_LOCAL)
    band(first, data["global"], "step", label="with the global solution", look=_GLOBAL)
    first.set(title="correlation", xlabel="iteration", ylim=(None, 1.03))
    mass.set_yscale("log")
    band(mass, data["mass_outside"], "step", look=_LOCAL)
    mass.set(title="mass on tokens given up", xlabel="iteration")
    _ends(ends, data)
    panel_letters(panels)
    shared_legend(figure, [first, ends])
    return figure


def _ends(axes: Axes, data: xr.Dataset) -> None:
    """The last correlations of every data set, in the order of the local ones."""
    last = data.isel(step=-1)
    shown = last.isel(data_set=np.argsort(last["global"].values))
    places = np.arange(shown.sizes["data_set"]) + 1
    few = len(places) <= 20
    points: dict[str, Any] = {"linestyle": "none", "markersize": 4 if few else 2.2}
    axes.set_yscale("log")
    if few:
        axes.vlines(places, 1 - shown["local"], 1 - shown["global"], color="#cccccc", linewidth=0.8)
    for name, look, marker in (("global", _GLOBAL, "s"), ("local", _LOCAL, "o")):
        axes.plot(places, 1 - shown[name], color=look["color"], marker=marker, **points)
    several = shown["cycles"].values > 0
    hollow: dict[str, Any] = {"color": _LOCAL["color"], "marker": "o", "markerfacecolor": "white"}
    outside = 1 - shown["local_outside"].values[several]
    label = "the local one, less the cyclic part"
    axes.plot(places[several], outside, label=label, **hollow, **points)
    axes.set(title="1 \N{MINUS SIGN} correlation in the end", xlabel="data set, sorted")


MECHANICS_LOCAL = Figures(PAPER).figure(
    "local-convergence",
    "a general head: attention converges to the solution of the tokens it settled on",
    statement="experiment: local convergence of gradient descent",
    published=(
        "correlation with the solutions of local and global graphs, of 10 data sets, against the "
        "iteration"
    ),
    sizes=by_size(seeds=[10, 40, 100]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Attention under a head of logits, the rows of which are the embeddings, with the loss (1 "
        "- softmax probability)^2, on {sizes[data_set]} corpora with cycles: {steps:,} normalized "
        "steps of {step:g}. The loss is not convex. The local solution is that of graphs built "
        "from the tokens with more than 1 % of the mass in the end ({ambiguous} between .9 % and 1 "
        "% are ignored). (a) Medians over data sets, with the 10th to 90th percentiles, of the "
        "correlation with it and with the solution of the token-priority graphs. (b) Attention "
        "mass on tokens given up, mean over samples. (c) The end of every data set: "
        "{least_local:.4f} to {largest_local:.4f} with the local solution, {least_global:.2f} to "
        "{largest_global:.2f} with the global one. In {several} data sets some sample keeps "
        "several tokens: W then has a finite part besides, which the hollow points leave out, and "
        "steps of constant length are spent on it (median norm {norm_of_several:.3g} in the end, "
        "against {norm_of_one:.3g}), so that the direction converges slowly."
    ),
)
