"""Margins and errors of attention on unseen inputs, against how many it was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.attention import LinearHead
from attractor.geometry import Geometry
from attractor.margin import MarginProblem, solve
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, stacked
from attractor.papers.paper import TRANSFORMERS_AS_SVMS
from attractor.papers.transformers_as_svms.descent import GEOMETRIES, ROLES, descent
from attractor.papers.transformers_as_svms.planted import (
    DIMENSION,
    MARGIN,
    Inputs,
    planted_inputs,
    planted_matrices,
)
from attractor.plots._style import COLORS, panels_on_page
from attractor.plots.bands import band
from attractor.plots.pairs import panel_letters, shared_legend
from attractor.plots.roles import line_style, role_of
from attractor.selection import Selection
from attractor.tokens import Tokens
from attractor.training import train

RANKS = (1, DIMENSION)
TEST_INPUTS = 2000
_ONES = LinearHead(np.ones(1))
_QUANTILE = 0.01


def _compute(request: Request) -> xr.Dataset:
    counts = request.settings["counts"]
    seeds = range(request.seed, request.seed + request.seeds)
    found = []
    for rank in RANKS:
        planted = planted_matrices(rank, seeds)
        training = planted_inputs(planted, max(counts), seeds, "training")
        test = planted_inputs(planted, TEST_INPUTS, seeds, "test")
        request.uses(f"planted rank {rank}", training.tokens(), None, planted=planted)
        request.uses(f"planted rank {rank}, unseen inputs", test.tokens())
        trained = _trained(request, training, counts, rank)
        with request.bar(f"solving, planted rank {rank}", len(counts) * 2) as advance:
            sizes = []
            for place, count in enumerate(counts):
                seen = training.first(count)
                matrices = {}
                for name, geometry in GEOMETRIES.items():
                    matrices["solution", name] = _solution(seen, geometry)
                    matrices["training", name] = trained[name][place]
                    advance(1)
                sizes.append(_measured(matrices, planted, seen, test))
        found.append(stacked(sizes, "n", counts))
    return stacked(found, "planted_rank", RANKS).assign_coords(instance=list(seeds))


def _solution(seen: Inputs, geometry: Geometry) -> Float[np.ndarray, "instance d d"]:
    """The attention matrices of largest margin on these inputs."""
    tokens = seen.tokens()
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, seen.best))
    return solve(problem, geometry, tolerance=1e-6).W


def _trained(
    request: Request, training: Inputs, counts: list[int], rank: int
) -> dict[str, Float[np.ndarray, "n instance d d"]]:
    """Trains on the first inputs of every data set, side by side for every number of them."""
    parts = [training.tokens(count) for count in counts]
    names = ("keys", "queries", "labels", "mask", "values")
    arrays = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    # What a data set is called names its start: the same whatever else is trained beside it.
    seeds = np.arange(request.seed, request.seed + request.seeds)
    numbers = [1000 * seeds + count for count in counts]
    tokens = Tokens(*arrays, instance_numbers=np.concatenate(numbers))
    found = {}
    for name in GEOMETRIES:
        run = train(
            tokens,
            _ONES,
            steps=request.settings["steps"],
            weights="last",
            checkpoint=request.checkpoint(f"{name}, planted rank {rank}"),
            progress=request.progress,
            **descent(name),
        )
        found[name] = run.W()[:, 0].reshape(len(counts), request.seeds, DIMENSION, DIMENSION)
    return found


def _measured(
    matrices: dict[tuple[str, str], np.ndarray], planted: np.ndarray, seen: Inputs, test: Inputs
) -> xr.Dataset:
    """Errors, and margins in units of the margin of the planted matrix in the same norm."""
    error, train_error, margin, test_margin = (np.empty((2, 2, len(planted))) for _ in range(4))
    for (kind, name), W in matrices.items():
        place = ("solution", "training").index(kind), list(GEOMETRIES).index(name)
        geometry = GEOMETRIES[name]
        unit = MARGIN / geometry.norm(planted)
        on_seen, on_test = seen.margins(W, geometry), test.margins(W, geometry)
        train_error[place] = (on_seen <= 0).mean(1)
        error[place] = (on_test <= 0).mean(1)
        margin[place] = on_seen.min(1) / unit
        test_margin[place] = np.quantile(on_test, _QUANTILE, axis=1) / unit
    along = ("kind", "parameterization", "instance")
    return xr.Dataset(
        {
            "error": (along, error),
            "training_error": (along, train_error),
            "training_margin": (along, margin),
            "test_margin": (along, test_margin),
        },
        {"kind": ["solution", "training"], "parameterization": list(GEOMETRIES)},
    )


def _readings(data: xr.Dataset) -> Readings:
    error = data["error"].mean("instance")
    low, full = (error.sel(planted_rank=rank, kind="solution") for rank in RANKS)
    gain = low.sel(parameterization="W") - low.sel(parameterization="KQ")
    difference = full.sel(parameterization="W") - full.sel(parameterization="KQ")
    apart = abs(error.sel(kind="training") - error.sel(kind="solution"))
    seen = data["training_margin"].sel(kind="solution").mean("instance")
    wrong = data["training_error"].sel(kind="training").mean()
    most = int(data["n"][-1])
    return Readings(
        at_least("planted rank 1, n = 20: error of Frobenius less nuclear", gain.sel(n=20), 0.05),
        at_most("planted full rank: largest difference of both", abs(difference).max(), 0.06),
        at_most(f"largest error of a solution at n = {most}", error.isel(n=-1).max(), 0.06),
        at_most(
            "largest difference between errors of training and solution",
            apart.max(),
            0.04,
            "apart",
        ),
        at_most("training inputs that a trained layer gets wrong", wrong, 0.01),
        at_least("least training margin, relative to the planted one", seen.min(), 1.0),
        best_leads_by=MARGIN,
        unseen=TEST_INPUTS,
        low=low.sel(n=20),
        full=full.sel(n=20),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(4.6, 2, 2, sharex=True, sharey="row")
    for column, rank in enumerate(RANKS):
        part = data.sel(planted_rank=rank)
        _errors(panels[0, column], part["error"].mean("instance"))
        _margins(panels[1, column], part)
        panels[0, column].set_title(f"planted matrix of rank {rank}")
        panels[1, column].set_title("margins, relative to the planted one")
        panels[1, column].set_xlabel("training inputs $n$")
    panels[0, 0].set_ylabel("wrong token on unseen inputs")
    panels[1, 0].set_ylabel("normalized margin")
    panel_letters(panels.ravel())
    shared_legend(figure, [*panels[:, 0]], columns=4)
    return figure


def _errors(axes: Axes, error: xr.DataArray) -> None:
    axes.set(xscale="log", yscale="log")
    for name, (solution, training) in ROLES.items():
        one = error.sel(parameterization=name)
        shown = one.where(one > 0)
        label = role_of(solution).label
        axes.plot(one["n"], shown.sel(kind="solution"), label=label, **line_style(solution))
        axes.plot(one["n"], shown.sel(kind="training"), **_marks(training))
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    axes.set_xticks(error["n"].values, [str(n) for n in error["n"].values])
    axes.minorticks_off()


def _margins(axes: Axes, part: xr.Dataset) -> None:
    axes.axhline(1, color=COLORS["black"], linewidth=0.8, linestyle=(0, (1, 2)))
    for name, (solution, training) in ROLES.items():
        for measure, width in (("training_margin", 1.3), ("test_margin", 0.8)):
            values = part[measure].sel(parameterization=name)
            band(axes, values.sel(kind="solution"), "n", look=line_style(solution, linewidth=width))
            median = values.sel(kind="training").median("instance")
            axes.plot(median["n"], median, **_marks(training, label=""))
    axes.set_ylim(-7, 9)
    for height, text in ((0.93, "smallest on training inputs"), (0.05, "1st percentile, unseen")):
        axes.text(0.97, height, text, transform=axes.transAxes, ha="right", va="center")


def _marks(training: str, **changes: Any) -> dict[str, Any]:
    role = role_of(training)
    hollow = {"linestyle": "none", "marker": role.marker, "markerfacecolor": "white"}
    return {"color": role.color, "label": role.label, "markersize": 3.6} | hollow | changes


MARGINS_AND_SAMPLE_SIZE = Figures(TRANSFORMERS_AS_SVMS).figure(
    "margins-and-sample-size",
    "margins and errors on seen and unseen inputs, against the number of training inputs",
    statement="open problem: generalization of attention with the largest margin",
    published="none: it is our own experiment on a problem that the paper leaves open",
    sizes={
        "quick": {"seeds": 10, "counts": [5, 10, 20, 40, 80], "steps": 1000},
        "small": {"seeds": 20, "counts": [5, 10, 20, 40, 80], "steps": 2000},
        "paper": {"seeds": 30, "counts": [5, 10, 20, 40, 80, 160], "steps": 3000},
    },
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Our own experiment, not one of the paper. In every one of {sizes[instance]} data sets the "
        "best token of a sequence is that to which a planted matrix attends; it leads by "
        "{best_leads_by} or more where the matrix has norm 1. Attention is fitted to n training "
        "inputs: with the largest margin in the Frobenius or the nuclear norm (lines), and by "
        "normalized gradient descent on W or on keys and queries, where the best tokens have the "
        "highest scores (marks). Above: mean share of {unseen} unseen inputs on which another "
        "token wins; marks that miss are at zero. Below: margins over the norm of the matrix, in "
        "units of that of the planted one (dotted): the smallest on training inputs, which falls "
        "to it, and the first percentile on unseen ones, which rises; medians over data sets, with "
        "bands from the 10th to the 90th percentile. A planted matrix of rank 1 (left) is found "
        "from fewer inputs in the nuclear norm, {low[KQ]:.1%} wrong from 20 inputs against "
        "{low[W]:.1%}; of full rank (right) there is no such gain, {full[KQ]:.1%} against "
        "{full[W]:.1%}. Errors of training and of solutions differ by {apart:.3f} at most."
    ),
)
