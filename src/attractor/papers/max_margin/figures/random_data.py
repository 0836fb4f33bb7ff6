"""Random data: which tokens training selects, and how sparse attention gets on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.analysis.sparsity import effective_support
from attractor.analysis.wilson import wilson_interval
from attractor.attention import LinearHead
from attractor.geometry._lengths import cosines
from attractor.margin import MarginProblem, check_local_optimality, solve
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size, stacked
from attractor.papers.max_margin.data import random_prompt_data
from attractor.papers.paper import MAX_MARGIN
from attractor.plots._style import panels_on_page
from attractor.plots.roles import line_style, ordered_line_styles
from attractor.selection import attended_tokens, optimal_tokens
from attractor.tokens import Tokens
from attractor.training import normalized_gradient_descent, train

SEQUENCES, LENGTH = 6, 8
DIMENSIONS = (2, 3, 10, 40)
SHARES = {
    "optimum_feasible": ("best tokens feasible", "predicted"),
    "saturated": ("all softmax above .99", "not_settled"),
    "locally_optimal": ("end locally optimal", "locally_optimal"),
    "globally_optimal": ("end globally optimal", "globally_optimal"),
}


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
    W = run.W()[:, 0]
    reached, best = attended_tokens(tokens, W), optimal_tokens(tokens, head)
    optimum = solve(MarginProblem.from_selection(tokens, best))
    there = solve(MarginProblem.from_selection(tokens, reached))
    local = check_local_optimality(tokens, head, reached, there).holds
    variables = {
        "optimum_feasible": (("instance",), np.isfinite(optimum.value)),
        "saturated": (("instance",), (weights[:, -1].max(-1) > 0.99).all(-1)),
        "locally_optimal": (("instance",), local),
        "globally_optimal": (("instance",), (reached.mask == best.mask).all((-1, -2, -3))),
        "cosine": (("instance",), np.where(local, cosines(W, np.nan_to_num(there.W)), np.nan)),
        "effective_support": (("instance", "step"), effective_support(weights).mean(-1) / LENGTH),
        "norm": (("instance", "step"), np.linalg.norm(paths, axis=-1)),
    }
    return xr.Dataset(variables, {"instance": list(numbers), "step": run.steps})


def _selection_readings(data: xr.Dataset) -> Readings:
    shares = data[list(SHARES)].mean("instance")
    largest = shares.sel(d=40)
    return Readings(
        at_least("d = 40: runs that end locally optimal", largest["locally_optimal"], 0.85),
        at_most("d = 40: runs that end globally optimal", largest["globally_optimal"], 0.7),
        at_least("d = 40: best tokens feasible", largest["optimum_feasible"], 1.0),
        at_most("d = 2: best tokens feasible", shares["optimum_feasible"].sel(d=2), 0.2),
        at_least("median cosine to the direction of the tokens reached, where locally optimal",
                 data["cosine"].median(), 0.995),
        sequences=SEQUENCES,
        tokens=LENGTH,
        percent_best=100 * float(largest["globally_optimal"]),
    )  # fmt: skip


def _sparsity_readings(data: xr.Dataset) -> Readings:
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
    from scipy.stats import spearmanr  # a second to load

    moving = (support.sel(d=10) * LENGTH > 1.001).values
    chosen, beside = (array.sel(d=10).values[moving] for array in (support, norms))
    found: Any = spearmanr(chosen, beside)
    return float(found.statistic)


def _draw_selection(data: xr.Dataset) -> Figure:
    figure, (left, right) = panels_on_page(3.0, 1, 2, width_ratios=(1.5, 1))
    count, width = data.sizes["instance"], 0.19
    for place, (name, (label, role)) in enumerate(SHARES.items()):
        hits = data[name].sum("instance").values.astype(int)
        intervals = wilson_interval(hits, count, 0.95)
        where = np.arange(len(DIMENSIONS)) + (place - 1.5) * width
        errors = np.abs(intervals.T - hits / count)
        left.bar(
            where, hits / count, 0.9 * width, label=label, color=line_style(role)["color"],
            yerr=errors, error_kw={"linewidth": 0.8, "ecolor": "#444444"},
        )  # fmt: skip
    left.set_xticks(range(len(DIMENSIONS)), [str(d) for d in DIMENSIONS])
    left.set(xlabel="dimension d", ylabel="share of data sets", ylim=(0, 1.02))
    figure.legend(loc="outside upper center", ncols=4)
    shown = [1 - data["cosine"].sel(d=d).values for d in DIMENSIONS]
    shown = [np.maximum(values[np.isfinite(values)], 1e-12) for values in shown]
    right.boxplot(
        shown, tick_labels=[str(d) for d in DIMENSIONS], whis=(5, 95), showfliers=False,
        widths=0.45, patch_artist=True, medianprops={"color": "black", "linewidth": 1.4},
        boxprops={"facecolor": line_style(SHARES["locally_optimal"][1])["color"], "linewidth": 0.8},
    )  # fmt: skip
    right.set(yscale="log", xlabel="dimension d")
    right.set_ylabel("$1 -$ cosine with the predicted direction")
    return figure


def _draw_sparsity(data: xr.Dataset) -> Figure:
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


_SIZES = by_size(seeds=[30, 100, 100], steps=[2000, 2000, 20_000])

SELECTION = Figures(MAX_MARGIN).figure(
    "random-data",
    "which tokens training selects on random data: locally, and seldom globally, optimal",
    statement="random data, after the published recipe for training and comparing",
    published="none: random data trained and compared after the recipe of the published code",
    sizes=_SIZES,
    compute=_compute,
    draw=_draw_selection,
    readings=_selection_readings,
    caption=(
        "{sizes[instance]} random data sets for each dimension ({sequences} sequences of {tokens} "
        "unit tokens), a prompt vector trained from 0 by {last[step]:,} normalized steps of 0.1. "
        "Left: shares with 95 % Wilson intervals. Right: distance from the direction of the tokens "
        "reached, where these are locally optimal (boxes: quartiles, whiskers: 5 to 95 %). "
        "Training ends at locally optimal tokens nearly always, and at the best ones in "
        "{percent_best:.0f} % at d = 40, though they are feasible in all."
    ),
)
SPARSITY = Figures(MAX_MARGIN).figure(
    "attention-sparsity",
    "attention gets sparse as weights grow: effective support against iterations",
    statement="experiment: attention gets sparse while attention weights grow",
    published="effective support of attention maps and norm of attention weights of a vision "
    "transformer while it is trained on images",
    sizes=_SIZES,
    compute=_compute,
    draw=_draw_sparsity,
    readings=_sparsity_readings,
    caption=(
        "Effective support of attention, (||s||_1 / ||s||_2)^2 over the number of tokens, and norm "
        "of the prompt along training on random data; medians and 10th to 90th percentiles over "
        "{sizes[instance]} data sets. As the norm grows attention goes from all tokens to one "
        "(dotted line); where the best tokens are infeasible (d = 2 and 3) it may stop short. The "
        "published figure measures this in a vision transformer: vision-transformer."
    ),
)
