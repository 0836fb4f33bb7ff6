"""Ranks of the solutions of margin problems in the Frobenius and in the nuclear norm."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from attractor.datasets import unit_tokens
from attractor.geometry import Frobenius, Nuclear
from attractor.margin import MarginProblem, Solution, solve
from attractor.papers.figure import Artifact, Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.transformers_as_svms.data import first_best_tokens
from attractor.papers.transformers_as_svms.first_order import ABSOLUTE_CUT, ranks_when_stopped
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.plots.design.roles import DASHED, SOLID, ordered_line_styles
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.support.errors import DuplicateTokensWarning

SHAPES = ((5, 5), (10, 5), (15, 5), (5, 10), (5, 15))
"""Sequences in a data set, and tokens in a sequence."""
DIMENSIONS = (1, 2, 3, 4, 5, 10, 15, 20)
ACCURACIES = (1e-4, 1e-5, 1e-6)
"""Accuracies at which the first-order method stops; the published one is about the second."""

_TITLES = {"n": "more sequences, $T = 5$", "T": "longer sequences, $n = 5$"}
_LEGENDS = {"n": "upper left", "T": "lower right"}
_PANELS = (("n", [0, 1, 2]), ("T", [0, 3, 4]))
"""The number that varies between the curves of a panel, and their places among the shapes."""


def _compute(request: Request) -> xr.Dataset:
    seeds = range(request.seed, request.seed + request.seeds)
    total = len(SHAPES) * len(DIMENSIONS) * len(seeds)
    rows = []
    with request.bar("solving", total) as advance:
        for n, T in SHAPES:
            row = []
            for d in DIMENSIONS:
                tokens, head = unit_tokens(n, T, d, seeds=seeds)
                request.uses(f"n = {n}, T = {T}, d = {d}", tokens, head)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DuplicateTokensWarning)
                    problem = MarginProblem.from_selection(tokens, first_best_tokens(tokens, head))
                row.append(_ranks(problem, request.as_published))
                advance(len(seeds))
            rows.append(xr.concat(row, "d"))
    names = [f"n = {n}, T = {T}" for n, T in SHAPES]
    coordinates = {"shape": names, "d": list(DIMENSIONS), "instance": list(seeds)}
    return xr.concat(rows, "shape").assign_coords(coordinates)


def _ranks(problem: MarginProblem, as_published: bool) -> xr.Dataset:
    """Ranks of one shape; NaN where infeasible, or where the certificate cannot tell."""
    frobenius = solve(problem, Frobenius())
    feasible = np.isfinite(frobenius.value)
    places = np.flatnonzero(feasible)
    nuclear = solve(problem[places], Nuclear(), tolerance=1e-11)
    rank = np.full((2, len(problem)), np.nan)
    rank[0, places], rank[1, places] = _certified(frobenius)[places], _certified(nuclear)
    found = xr.Dataset(
        {"feasible": ("instance", feasible), "rank": (("norm", "instance"), rank)},
        {"norm": ["frobenius", "nuclear"]},
    )
    if as_published:
        published = np.ones((1 + len(ACCURACIES), len(problem)))
        values = np.linalg.svd(frobenius.W[places], compute_uv=False)
        published[0, places] = (values > ABSOLUTE_CUT).sum(-1)
        published[1:, places] = ranks_when_stopped(problem[places], ACCURACIES)
        found["published_frobenius"] = ("instance", published[0])
        found["published_nuclear"] = (("accuracy", "instance"), published[1:])
        found = found.assign_coords(accuracy=list(ACCURACIES))
    return found


def _certified(solution: Solution) -> np.ndarray:
    """Certified ranks, NaN where none could be certified."""
    return np.where(solution.rank < 0, np.nan, solution.rank)


def _readings(data: xr.Dataset) -> Readings:
    rank = data["rank"].mean("instance")
    frobenius, nuclear = rank.sel(norm="frobenius"), rank.sel(norm="nuclear")
    widest = {"shape": "n = 15, T = 5", "d": 20}
    large = data["feasible"].sel(d=[15, 20])  # d >= max(n, T - 1) in every shape
    more = nuclear - frobenius
    unsettled = (data["rank"].isnull() & data["feasible"]).mean()
    readings = [
        at_least("feasible share where d >= max(n, T - 1)", large.mean(), 1.0),
        at_least("mean Frobenius rank, n = 15, d = 20", frobenius.sel(widest), 14.9, "frobenius"),
        at_most("mean nuclear rank, n = 15, d = 20", nuclear.sel(widest), 6.0, "nuclear"),
        at_most("largest mean of nuclear less Frobenius rank", more.max(), 0.0),
        at_most("share of ranks that the certificate cannot tell", unsettled, 0.001),
    ]
    if "published_nuclear" not in data:
        return Readings(*readings)
    noise = data["published_nuclear"].mean("instance").sel(widest)
    for accuracy, least, most in ((1e-5, 13.0, 15.0), (1e-6, 5.0, 13.0)):
        value, text = noise.sel(accuracy=accuracy), f"as published, accuracy {accuracy:g}"
        readings.append(at_least(f"{text}: mean nuclear rank, n = 15, d = 20", value, least))
        readings.append(at_most(f"{text}: the same", value, most))
    counted = (f"{accuracy:.0e}: {noise.sel(accuracy=accuracy):.2f}" for accuracy in ACCURACIES)
    return Readings(*readings, counted="; ".join(counted))


def _draw(data: xr.Dataset) -> Figure:
    mean = data.mean("instance")
    kinds = {"certified": mean["rank"].transpose("norm", "shape", "d")}
    if "published_nuclear" in data:
        stopped = mean["published_nuclear"].sel(accuracy=1e-5)
        published = xr.concat([mean["published_frobenius"], stopped], "norm")
        kinds["as published"] = published.transpose("norm", "shape", "d")
    figure = Figure(figsize=(PAGE, 1.5 + 1.8 * len(kinds)))
    panels = figure.subplots(
        len(kinds) + 1, 2, sharex=True, height_ratios=[1.0] * len(kinds) + [0.45]
    )
    for column, (letter, places) in enumerate(_PANELS):
        looks = ordered_line_styles(len(places))
        for row, (kind, ranks) in enumerate(kinds.items()):
            axes = panels[row, column]
            _rank_curves(axes, ranks.isel(shape=places), looks)
            axes.set(ylim=(0, 15.6 if letter == "n" else 5.3), title=f"{kind}, {_TITLES[letter]}")
        axes = panels[-1, column]
        for share, look in zip(mean["feasible"].isel(shape=places), looks, strict=True):
            axes.plot(share["d"], share, **look)
        axes.set(xlabel="dimension $d$", xticks=DIMENSIONS, ylim=(-0.05, 1.09))
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        values = [SHAPES[place][0 if letter == "n" else 1] for place in places]
        entries = [
            Line2D([], [], label=f"${letter} = {value}$", **look)
            for value, look in zip(values, looks, strict=True)
        ]
        panels[0, column].legend(handles=entries, loc=_LEGENDS[letter])
    for row in range(len(kinds)):
        panels[row, 0].set_ylabel("mean rank")
    panels[-1, 0].set_ylabel("feasible")
    norms = [
        Line2D([], [], label=label, **{"color": COLORS["gray"], "linestyle": dash})
        for dash, label in ((SOLID, "Frobenius solution"), (DASHED, "nuclear solution"))
    ]
    figure.legend(handles=norms, loc="outside lower center", ncols=2)
    return figure


def _rank_curves(axes: Axes, ranks: xr.DataArray, looks: list[dict[str, Any]]) -> None:
    for norm, dash in zip(ranks, (SOLID, DASHED), strict=True):
        for curve, look in zip(norm, looks, strict=True):
            axes.plot(curve["d"], curve, linestyle=dash, **look)


RANK = Figures(TRANSFORMERS_AS_SVMS).figure(
    "rank",
    "ranks of Frobenius and nuclear solutions against dimension, sequences and tokens",
    statement="experiment: rank of the solutions",
    published="Frobenius rank min(n, d) solid, nuclear rank nearly as high dashed, against d",
    sizes=by_size(seeds=[20, 50, 100]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Mean rank of the solutions for the optimal tokens of {sizes[instance]} random data sets, "
        "feasible problems only, against the dimension; solid: Frobenius norm, dashed: nuclear "
        "norm. Ranks are certified: of Frobenius solutions the singular values proved not to "
        "vanish are counted, of nuclear ones the multiplicity of the unit singular values of the "
        "dual matrix. Below: the share of feasible problems. With 15 sequences in 20 dimensions "
        "the Frobenius solution has mean rank {frobenius:.2f}, the nuclear one {nuclear:.2f}."
    ),
    artifact=Artifact(
        "infeasible problems count as rank 1, and what a solver leaves over counts as rank",
        "As published: an infeasible problem, for which the solver returns nothing, counts as rank "
        "1, and every singular value above 1e-7 counts. Dashed is a nuclear solution of limited "
        "accuracy: the published one is that of a first-order conic solver (SCS, default "
        "settings); here an alternating direction method of multipliers of our own stands in for "
        "it, stopped at residuals of 1e-5. What it counts depends on where it is stopped: with 15 "
        "sequences in 20 dimensions {counted}.",
        drawn=lambda data: "published_nuclear" in data,
    ),
)
