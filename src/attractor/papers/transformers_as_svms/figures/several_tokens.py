"""Attention under a ReLU head that keeps several tokens, with and without the published filter."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from attractor.attention import ReLUHead
from attractor.papers.figure import Artifact, Figures, Readings, Request, at_least, at_most
from attractor.papers.transformers_as_svms.data import relu_data_sets
from attractor.papers.transformers_as_svms.descent import descent
from attractor.papers.transformers_as_svms.parts import (
    compared_with_parts,
    error_curves,
    outcome_bars,
    outcome_scatter,
)
from attractor.papers.transformers_as_svms.side_by_side import (
    DataSets,
    train_side_by_side,
    uniform_starts,
)
from attractor.plots.design.look import PAGE
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.tokens import Tokens

_SIZE = (3, 4)
"""Sequences and tokens of a data set."""
_DIMENSIONS = (4, 6, 8, 10)
_STEPS = 2000
_CURVE = range(1, _STEPS + 2, 100)
_LAST = range(_STEPS - 9, _STEPS + 2)
"""Steps at which units of the head are looked at."""
_KERNELS = ("exact", "as published")


def _compute(request: Request) -> xr.Dataset:
    data_sets = []
    for d, share in zip(_DIMENSIONS, request.settings["shares"], strict=True):
        count = max(1, round(share * request.seeds))
        tokens, head = relu_data_sets(*_SIZE, d, count, first=1 + request.seed)
        request.uses(f"unit tokens with ReLU head d={d}", tokens, head)
        data_sets.append(DataSets(tokens, head, uniform_starts(tokens, "W")))
    kernels = list(_KERNELS[: 1 + request.as_published])
    runs = [_trained(data_sets, request, kernel == "as published") for kernel in kernels]
    return xr.concat(runs, xr.IndexVariable("kernel", kernels))


def _trained(sets: list[DataSets], request: Request, as_published: bool) -> xr.Dataset:
    ends = train_side_by_side(
        sets,
        request,
        "published" if as_published else "exact",
        common=(_SIZE[0], 1, _SIZE[1], max(_DIMENSIONS)),
        steps=_STEPS + 1,
        record=sorted({*_CURVE, *_LAST}),
        **descent("W", as_published=as_published),
    )
    found = []
    for one, end in zip(sets, ends, strict=True):
        assert isinstance(one.head, ReLUHead) and one.tokens.labels is not None
        curve = end["W"].sel(step=list(_CURVE)).values
        # The published code takes attention from before its last step, and W from after it.
        before = end["W"].sel(step=[_STEPS]).values if as_published else None
        measured = compared_with_parts(one.tokens, curve, before)
        # Under a label of 1 the head is convex, and one token is best; some give up others slowly.
        several = measured["several"].values & (one.tokens.labels[..., 0] < 0)
        nonsmooth = at_nonsmooth_points(one.tokens, one.head, end["W"].sel(step=list(_LAST)).values)
        measured["several"] = ("data_set", several.any(-1))
        measured["nonsmooth"] = ("data_set", (nonsmooth | ~several).all(-1))
        trial = np.arange(measured.sizes["data_set"])
        labeled = measured.drop_vars("data_set").rename(data_set="trial")
        found.append(labeled.assign_coords(step=list(_CURVE), trial=trial))
    dimensions = xr.IndexVariable("d", list(_DIMENSIONS))
    joined = xr.concat(found, dimensions, join="outer", fill_value=_NONE)
    assert isinstance(joined, xr.Dataset)
    return joined


_NONE: dict[str, Any] = {"outcome": -1, "several": False, "nonsmooth": False}
"""Fill values where a dimension has fewer data sets than another; NaN in other variables."""


def at_nonsmooth_points(
    tokens: Tokens, head: ReLUHead, W: Float[np.ndarray, "instance step d d"]
) -> Bool[np.ndarray, "instance sequence"]:
    """Whether a unit of the head changes sides within the steps, or no unit is ever active.

    In between, the head is linear in the weights of attention, so that one token of a sequence is
    better than any average: attention that keeps several is at a kink, or where the head is flat.

    Args:
        tokens: The data sets, of one query a sequence.
        head: Their heads.
        W: Attention matrices at the steps.
    """
    scores = np.stack([tokens.scores(one)[..., 0, :] for one in W.swapaxes(0, 1)], 1)
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    outputs = np.einsum("isnt,intd->isnd", weights, tokens.values)
    active = np.einsum("isnd,idk->isnk", outputs, head.hidden) > 0
    crosses = (active.any(1) & ~active.all(1)).any(-1)
    return crosses | ~active.any((1, 3))


def _readings(data: xr.Dataset) -> Readings:
    found, passing = [], {}
    for kernel in data["kernel"].values:
        one = data.sel(kernel=kernel)
        passes = one["outcome"] == 0
        ends = one["error"].isel(step=-1)
        filtered = ends.where(passes).mean("trial")
        every = ends.median("trial")
        both, direction, single = (filtered.sel(prediction=name) for name in filtered["prediction"])
        total = (one["outcome"] >= 0).sum("trial")
        share = passes.sum("trial") / total
        several = passes & one["several"]
        passing[kernel] = "; ".join(
            f"d = {d}, {int(passes.sel(d=d).sum())} of {int(total.sel(d=d))} trials, "
            + " / ".join(f"{value:.4f}" for value in filtered.sel(d=d).values)
            for d in _DIMENSIONS
        )
        found += [
            at_most(f"{kernel}: largest share of trials that pass the filter", share.max(), 0.4),
            at_most(f"{kernel}: that share at d = {_DIMENSIONS[-1]}", share.isel(d=-1), 0.08),
            at_most(
                f"{kernel}: passing trials, mean of 1 - correlation with both parts",
                both.max(),
                0.15,
            ),
            at_most(
                f"{kernel}: the same over that with the single token's solution",
                (both / single).max(),
                0.8,
            ),
            at_most(
                f"{kernel}: passing trials, both parts less the direction alone",
                (both - direction).max(),
                0.002,
            ),
            at_least(
                f"{kernel}: every trial with a direction, both parts over the direction alone",
                (every.sel(prediction="direction") / every.sel(prediction="both parts")).min(),
                3.0,
            ),
            at_least(
                f"{kernel}: passing trials that keep several tokens under a label of -1, share at "
                "a kink or where the head is flat",
                (several & one["nonsmooth"]).sum() / several.sum(),
                0.99,
            ),
        ]
    exact = data.sel(kernel="exact")
    several = (exact["outcome"] == 0) & exact["several"]
    found.append(at_most("closed form of the correlation", exact["closed_form"].max(), 1e-9))
    found.append(at_most("cosine between both parts", data["angle"].max(), 1e-9))
    return Readings(
        *found,
        sequences=_SIZE[0],
        tokens=_SIZE[1],
        steps=_STEPS + 1,
        passing=passing,
        several=several.sum(),
        nonsmooth=(several & exact["nonsmooth"]).sum(),
    )


def _draw(data: xr.Dataset) -> Figure:
    kernels = [str(kernel) for kernel in data["kernel"].values]
    heights = [1.55] * (1 + len(kernels)) + [2.15]
    figure = Figure(figsize=(PAGE, sum(heights) + 0.4))
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    exact = data.sel(kernel="exact")
    first = _row(parts[0], exact, "every trial with a direction", filtered=False)
    rows = [first, _row(parts[1], exact, "passing the published filter", filtered=True)]
    if len(kernels) > 1:
        published = data.sel(kernel=kernels[1])
        rows.append(_row(parts[2], published, "as published, filtered", filtered=True))
    for axes in rows[-1]:
        axes.set_xlabel("iteration")
    bars, scatter = parts[-1].subplots(1, 2, width_ratios=(1.15, 1))
    outcome_bars(bars, data, "d")
    bars.set(title="trials, by what the filter says", xlabel="dimension $d$")
    outcome_scatter(scatter, exact, "d")
    scatter.set_title("end of every trial with a direction")
    panel_letters([*(axes for row in rows for axes in row), bars, scatter])
    shared_legend(figure, [rows[0][0], bars])
    return figure


def _row(part: SubFigure, data: xr.Dataset, title: str, *, filtered: bool) -> list[Axes]:
    panels = part.subplots(1, len(_DIMENSIONS), sharey=True)
    for axes, d in zip(panels, _DIMENSIONS, strict=True):
        one = data.sel(d=d)
        chosen = (
            one["outcome"] == 0 if filtered else one["error"].notnull().all(("step", "prediction"))
        )
        error_curves(axes, one["error"].where(chosen), chosen.sum().item())
        axes.set_title(f"$d = {d}$")
    part.suptitle(title, fontsize=8)
    panels[0].set_ylabel("1 \N{MINUS SIGN} correlation")
    return list(panels)


SEVERAL_TOKENS = Figures(TRANSFORMERS_AS_SVMS).figure(
    "several-tokens",
    "ReLU head: training against finite and directional parts, filtered and not",
    statement="experiment: nonlinear heads and attention that keeps several tokens",
    published="three curves of 1 - correlation for four d, of 500 trials that pass a filter",
    sizes={
        "quick": {"seeds": 600, "shares": (0.1, 0.15, 0.5, 1.0)},
        "small": {"seeds": 1000, "shares": (0.2, 0.3, 0.5, 1.0)},
        "paper": {"seeds": 1500, "shares": (1.0, 1.0, 1.0, 1.0)},
    },
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Training of W under a head of ReLU units, on data sets of {sequences} sequences of "
        "{tokens} tokens with labels of both signs, by {steps} normalized steps: means of 1 - "
        "correlation with what the attention of the last step predicts, the finite and the "
        "directional part together, the directional part alone, and the solution for the token "
        "attended to most. Top: every trial that gives up a token. Below: those that pass the "
        "published filter, no weight between 1e-6 and 1e-3: {passing[exact]}. Bottom left: why "
        "trials do not pass. Right: the largest weight of a token given up, and the last 1 - "
        "correlation with both parts, whose finite part has the weights of W itself. Of the "
        "{several} passing trials that keep several tokens of a sequence of label -1, {nonsmooth} "
        "do so at a kink of the head or where it is flat: in between it is linear, and one token "
        "is best."
    ),
    artifact=Artifact(
        "gradients that stop at 1e-16, and the mean over the trials that pass a filter",
        "As published, with gradients that cancel and 2.2e-16 added to the norm that divides them: "
        "{passing[as published]}; exact descent does not stop where the head is flat, and goes on.",
    ),
)
