"""How sparse attention gets while a prompt is trained on random data."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from attractor.analysis.sparsity import effective_support
from attractor.attention import LinearHead
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size, stacked
from attractor.papers.max_margin.data import random_prompt_data
from attractor.plots.design.look import panels_on_page
from attractor.plots.design.roles import ordered_line_styles
from attractor.results.paper import MAX_MARGIN
from attractor.tokens import Tokens
from attractor.training import normalized_gradient_descent, train

SEQUENCES, LENGTH = 6, 8
DIMENSIONS = (2, 3, 10, 40)


def _compute(request: Request) -> xr.Dataset:
    sets = [_one_dimension(request, d) for d in DIMENSIONS]
    return stacked(sets, "d", list(DIMENSIONS))


def _one_dimension(request: Request, d: int) -> xr.Dataset:
    numbers = range(request.seed, request.seed + request.seeds)
    cases = [random_prompt_data(number, SEQUENCES, LENGTH, d) for number in numbers]
    stacked = {
        name: np.stack([getattr(case.tokens, name) for case in cases])
        for name in ("keys", "queries", "labels")
    }
    tokens = Tokens(**stacked, instance_numbers=np.array(numbers))
    head = LinearHead(np.stack([np.asarray(case.head.weight) for case in cases]))
    request.uses(f"d = {d}", tokens, head)
    run = train(
        tokens,
        head,
        normalized_gradient_descent(0.1),
        steps=request.settings["steps"],
        initial=np.zeros(d),
        parameterization="p",
        progress=request.progress,
        checkpoint=request.checkpoint(f"d{d}"),
    )
    paths = run.data["p"].values[:, 0]
    scores = tokens.scores(paths.swapaxes(0, 1)[..., None]).swapaxes(0, 1)[..., 0, :]
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    variables = {
        "effective_support": (("instance", "step"), effective_support(weights).mean(-1) / LENGTH),
        "norm": (("instance", "step"), np.linalg.norm(paths, axis=-1)),
    }
    return xr.Dataset(variables, {"instance": list(numbers), "step": run.steps})


def _readings(data: xr.Dataset) -> Readings:
    support = data["effective_support"].sel(d=[10, 40]).median("instance")
    norms = data["norm"].sel(d=[10, 40]).median("instance")
    return Readings(
        at_least("effective support at the start, share of tokens",
                 support.isel(step=0).min(), 0.999),
        at_most("at the end, d = 10 and 40", support.isel(step=-1).max() * LENGTH, 1.01),
        at_least("norm of p at the end", norms.isel(step=-1).min(), 100.0),
        at_most("rank correlation of support and norm along training",
                _rank_correlation(support, norms), -0.95),
    )  # fmt: skip


def _rank_correlation(support: xr.DataArray, norms: xr.DataArray) -> float:

    moving = (support.sel(d=10) * LENGTH > 1.001).values
    chosen, beside = (array.sel(d=10).values[moving] for array in (support, norms))
    found: Any = spearmanr(chosen, beside)
    return float(found.statistic)


def _draw(data: xr.Dataset) -> Figure:
    figure, (left, right) = panels_on_page(2.7, 1, 2)
    panels = ((left, "effective_support"), (right, "norm"))
    for d, style in zip(DIMENSIONS, ordered_line_styles(len(DIMENSIONS)), strict=True):
        chosen = data.sel(d=d, step=slice(1, None))
        for axes, name in panels:
            low, middle, high = np.quantile(chosen[name], (0.1, 0.5, 0.9), axis=0)
            axes.plot(chosen["step"], middle, color=style["color"], label=f"d = {d}")
            axes.fill_between(
                chosen["step"], low, high, color=style["color"], alpha=0.15, linewidth=0
            )
    left.set(xscale="log", xlabel="iteration", ylabel="effective support / T", ylim=(0, 1.02))
    right.set(xscale="log", yscale="log", xlabel="iteration", ylabel=r"norm $\|p\|$")
    left.axhline(1 / LENGTH, color="#999999", linewidth=0.8, linestyle=":")
    right.legend(loc="upper left")
    return figure


SPARSITY = Figures(MAX_MARGIN).figure(
    "attention-sparsity",
    "attention gets sparse as weights grow: effective support against iterations",
    statement="experiment: attention gets sparse while attention weights grow",
    published="effective support of attention maps and norm of attention weights of a vision "
    "transformer while it is trained on images",
    sizes=by_size(seeds=[30, 100, 100], steps=[2000, 2000, 20_000]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Effective support of attention, (||s||_1 / ||s||_2)^2 over the number of tokens, and norm "
        "of the prompt along training on random data; medians and 10th to 90th percentiles over "
        "{sizes[instance]} data sets. As the norm grows attention goes from all tokens to one "
        "(dotted line); where the best tokens are infeasible (d = 2 and 3) it may stop short. The "
        "published figure measures this in a vision transformer: vision-transformer."
    ),
)
