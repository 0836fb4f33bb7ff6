"""Keys and queries of every width, compared with the nuclear solution of full width."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from attractor.datasets import unit_tokens
from attractor.geometry import Nuclear
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection
from attractor.papers.figure import Artifact, Figures, Readings, Request, at_least, at_most
from attractor.papers.transformers_as_svms.descent import descent
from attractor.papers.transformers_as_svms.side_by_side import (
    COMMON,
    DataSets,
    train_side_by_side,
    uniform_starts,
)
from attractor.plots.design.look import COLORS, PAGE
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.plots.design.roles import DOTTED, ordered_line_styles, role_of
from attractor.results.paper import TRANSFORMERS_AS_SVMS

_DIMENSION = 20
_PANELS = {"T": ((5, 5), (5, 10), (5, 15)), "n": ((5, 5), (10, 5), (15, 5))}
"""Sequences n and tokens T of the curves, by panel: which of the two it varies."""
_KERNELS = {"exact": "exact", "as published": "as_published"}
_MEASURES = {
    "correlation": "1 \N{MINUS SIGN} correlation",
    "margin_ratio": "1 \N{MINUS SIGN} margin ratio",
}


def _compute(request: Request) -> xr.Dataset:
    kernels = list(_KERNELS)[: 1 + request.as_published]
    runs = [_trained(request, kernel) for kernel in kernels]
    return xr.concat(runs, xr.IndexVariable("kernel", kernels))


def _trained(request: Request, kernel: str) -> xr.Dataset:
    pairs = sorted({pair for panel in _PANELS.values() for pair in panel})
    seeds = range(request.seed, request.seed + request.seeds)
    widths, steps = request.settings["widths"], request.settings["steps"]
    sets = []
    for n, T in pairs:
        tokens, head = unit_tokens(n, T, _DIMENSION, seeds=seeds)
        request.uses(f"unit tokens n={n} T={T} d={_DIMENSION}", tokens, head)
        sets += [DataSets(tokens, head, uniform_starts(tokens, "KQ", m)) for m in widths]
    published = kernel == "as published"
    ends = train_side_by_side(
        sets,
        request,
        kernel.replace(" ", "-"),
        common=None if published else COMMON,
        steps=steps,
        record=[steps],
        **descent("KQ", as_published=published),
    )
    measured = [compared_with_nuclear(one, end) for one, end in zip(sets, ends, strict=True)]
    along, shape = ("size", "width", "data_set"), (len(pairs), len(widths), len(seeds))
    return xr.Dataset(
        {name: (along, np.reshape([one[name] for one in measured], shape)) for name in measured[0]},
        {
            "n": ("size", [n for n, _ in pairs]),
            "T": ("size", [T for _, T in pairs]),
            "width": list(widths),
            "data_set": list(seeds),
        },
    )


def compared_with_nuclear(one: DataSets, end: xr.Dataset) -> dict[str, np.ndarray]:
    """Compares ``K Q^T`` with the nuclear solution for the tokens it attends to most.

    Args:
        one: The data sets.
        end: The records of training, the last of which counts.

    Returns:
        For each data set ``correlation`` and ``margin_ratio``, NaN without a solution; the ``rank``
        of the solution, -1 without one; and the Frobenius ``norm``.
    """
    selection = Selection.from_index(one.tokens, end["attended"].values[:, -1, :, 0])
    solution = solve(MarginProblem.from_selection(one.tokens, selection), Nuclear())
    solved = np.isfinite(solution.value)
    W = end["W"].values[:, -1]
    lengths = np.linalg.norm(W, axis=(-1, -2)) * np.linalg.norm(solution.W, axis=(-1, -2))
    smallest = solution.problem.margins(W).min(-1)
    ratio = np.where(solved, smallest / Nuclear().norm(W) * solution.value, np.nan)
    return {
        "correlation": (W * solution.W).sum((-1, -2)) / lengths,
        "margin_ratio": ratio,
        "rank": np.where(solved, solution.rank, -1),
        "norm": np.linalg.norm(W, axis=(-1, -2)),
    }


def _readings(data: xr.Dataset) -> Readings:
    found = []
    for kernel in data["kernel"].values:
        one = data.sel(kernel=kernel)
        wide = (one["rank"] > 0) & (one["width"] >= one["rank"])
        narrow = one["rank"] > one["width"]
        lost = 1 - one
        full, single = lost.isel(width=-1), lost.sel(width=1)
        correlation = lost["correlation"]
        reached = one["margin_ratio"].where(wide).median()
        falls = single["correlation"].mean() / full["correlation"].mean()
        most, least = (0.06, 0.95) if kernel == "exact" else (0.01, 0.9)
        expected = (
            (at_least, "median margin ratio, width at least the solution's rank", reached, least),
            (at_most, "median of 1 - correlation there", correlation.where(wide).median(), most),
            (
                at_least,
                "median of 1 - correlation with smaller widths",
                correlation.where(narrow).median(),
                0.1,
            ),
            (at_least, "mean of 1 - correlation of width 1 over that of full width", falls, 10.0),
        )
        found += [make(f"{kernel}: {text}", value, bound) for make, text, value, bound in expected]
    ranks = data.sel(kernel="exact")["rank"].isel(width=-1)
    ends = (1 - data).isel(width=-1).mean(("size", "data_set"))
    return Readings(
        *found,
        dimension=_DIMENSION,
        least_rank=int(ranks.min()),
        largest_rank=int(ranks.max()),
        correlation=ends["correlation"],
        ratio=ends["margin_ratio"],
        norm=data["norm"].isel(width=-1).median(("size", "data_set")),
    )


def _draw(data: xr.Dataset) -> Figure:
    kernels = [str(kernel) for kernel in data["kernel"].values]
    figure = Figure(figsize=(PAGE, 0.3 + 3.9 * len(kernels)))
    places = figure.subfigures(len(kernels), 1, squeeze=False)[:, 0]
    panels: list[Axes] = []
    lowest = (1 - data).quantile(0.1, "data_set").min()
    for part, kernel in zip(places, kernels, strict=True):
        grid = _grid(part, data.sel(kernel=kernel), kernel if len(kernels) > 1 else "")
        for row, measure in zip(grid, _MEASURES, strict=True):
            row[0].set_ylim(0.7 * float(lowest[measure]), 1.0)
            panels += list(row)
    panel_letters(panels)
    mark = {"color": COLORS["gray"], "linestyle": DOTTED, "label": "mean rank of the solution"}
    shared_legend(figure, panels, handles=[Line2D([], [], **mark)])
    return figure


def _grid(figure: SubFigure, data: xr.Dataset, kernel: str) -> np.ndarray:
    panels = figure.subplots(len(_MEASURES), len(_PANELS), sharex=True, sharey="row")
    for row, (measure, label) in zip(panels, _MEASURES.items(), strict=True):
        for axes, varied in zip(row, _PANELS, strict=True):
            _panel(axes, data, measure, varied)
            axes.set_title("n = 5 sequences" if varied == "T" else "T = 5 tokens")
            if kernel:
                axes.set_title(f"{axes.get_title(loc='left')}, {role_of(_KERNELS[kernel]).label}")
        row[0].set_ylabel(label)
    for axes in panels[-1]:
        axes.set_xlabel("width $m$ of keys and queries")
    return panels


def _panel(axes: Axes, data: xr.Dataset, measure: str, varied: str) -> None:
    axes.set(xscale="log", yscale="log")
    pairs = _PANELS[varied]
    for (n, T), look, shift in zip(pairs, ordered_line_styles(len(pairs)), (-1, 0, 1), strict=True):
        here = (data["n"].values == n) & (data["T"].values == T)
        one = data.isel(size=here).squeeze("size")
        lost = 1 - one[measure].values
        widths = one["width"].values * 1.025**shift
        low, high = np.nanquantile(lost, (0.1, 0.9), axis=-1)
        axes.plot(
            widths,
            np.nanmean(lost, axis=-1),
            label=f"${varied} = {n if varied == 'n' else T}$",
            markersize=4,
            markeredgecolor="white",
            markeredgewidth=0.4,
            **look,
        )
        axes.vlines(widths, low, high, color=look["color"], linewidth=0.8)
        rank = float(one["rank"].isel(width=-1).mean())
        axes.axvline(rank, color=look["color"], linestyle=DOTTED, linewidth=1.0, zorder=1)
    axes.set_xticks(data["width"].values, [str(width) for width in data["width"].values])
    axes.xaxis.set_minor_locator(NullLocator())


KEY_QUERY_WIDTH = Figures(TRANSFORMERS_AS_SVMS).figure(
    "key-query-width",
    "training of narrow keys and queries against the nuclear solution of full width",
    statement="experiment: keys and queries of varying width",
    published="1 - correlation with the nuclear solution against m, for several n and T",
    sizes={
        "quick": {"seeds": 10, "steps": 1500, "widths": (1, 2, 3, 4, 5, 20)},
        "small": {"seeds": 20, "steps": 3000, "widths": (1, 2, 3, 4, 5, 10, 20)},
        "paper": {"seeds": 100, "steps": 3000, "widths": (1, 2, 3, 4, 5, 7, 10, 15, 20)},
    },
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Training of keys and queries of width m on {sizes[data_set]} data sets of random unit "
        "tokens in dimension {dimension}, compared with the solution in the nuclear norm with no "
        "bound on the rank, for the tokens attended to most: means over data sets, lines from the "
        "10th to the 90th percentile. Dotted: mean rank of these solutions, which are of ranks "
        "{least_rank} to {largest_rank} and on average well below the number n of sequences. From "
        "there on nearly the full margin is reached; further columns speed up the convergence of "
        "the direction. With m = {last[width]}, on average 1 - correlation is "
        "{correlation[exact]:.4f} and 1 - margin ratio {ratio[exact]:.4f}."
    ),
    artifact=Artifact(
        "plain gradients and a penalty of 2.2e-16 on K and Q, at which training converges",
        "As published: plain gradients with 2.2e-16 added to their norms, and a penalty of 2.2e-16 "
        "(||K||^2 + ||Q||^2) that stops K Q^T at norm {norm[as published]:.0f}, where exact "
        "descent goes on to {norm[exact]:.0f}. It ends nearer by correlation, "
        "{correlation[as published]:.4f}, and farther by margin, {ratio[as published]:.4f}.",
    ),
)
