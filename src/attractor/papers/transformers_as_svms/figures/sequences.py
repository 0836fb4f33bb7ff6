"""Self-attention with a label for every token: each run against the solution of its own tokens."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.attention import LinearHead
from attractor.datasets import unit_tokens
from attractor.margin import MarginProblem, check_local_optimality, solve
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.paper import TRANSFORMERS_AS_SVMS
from attractor.papers.transformers_as_svms.descent import GEOMETRIES, descent
from attractor.papers.transformers_as_svms.selections_reached import (
    DASHES,
    SETTLED,
    Size,
    training_handles,
)
from attractor.papers.transformers_as_svms.side_by_side import (
    DataSets,
    train_side_by_side,
    uniform_starts,
)
from attractor.plots._style import COLORS, panels_on_page
from attractor.plots.pairs import panel_letters, shared_legend
from attractor.plots.roles import ordered_line_styles
from attractor.plots.shares import fraction_curve
from attractor.randomness import generator
from attractor.selection import Selection, optimal_tokens
from attractor.tokens import Tokens

_SIZES: tuple[Size, ...] = ((2, 4, 4), (2, 4, 8), (3, 5, 16), (4, 6, 30))
"""Sequences n, tokens T and dimension d."""
_COMMON = (4, 6, 6, 30)
_KINDS = ("full", "causal")
_LOOKS = {"full": (COLORS["black"], "o"), "causal": (COLORS["purple"], "s")}


def labeled_sequences(size: Size, kind: str, seeds: range) -> tuple[Tokens, LinearHead]:
    """Random unit tokens, each of which is a query with a random label of its own.

    Args:
        size: Sequences n, tokens T and dimension d.
        kind: ``"full"``, or ``"causal"`` where a token sees itself and those before it.
        seeds: One data set each.
    """
    drawn, head = unit_tokens(*size, seeds=seeds)
    labels = np.stack(
        [generator(seed, purpose="labels").choice([-1.0, 1.0], size[:2]) for seed in seeds]
    )
    if kind == "causal":
        return Tokens.causal(drawn.keys, labels), head
    return Tokens(drawn.keys, drawn.keys, labels), head


def _compute(request: Request) -> xr.Dataset:
    seeds = range(request.seed, request.seed + request.seeds)
    data_sets = []
    for kind in _KINDS:
        for size in _SIZES:
            tokens, head = labeled_sequences(size, kind, seeds)
            request.uses("{} attention n={} T={} d={}".format(kind, *size), tokens, head)
            data_sets.append((tokens, head))
    runs = [_trained(name, data_sets, request) for name in GEOMETRIES]
    found = xr.concat(runs, xr.IndexVariable("parameterization", list(GEOMETRIES)))
    sizes = {name: ("size", [size[i] for size in _SIZES]) for i, name in enumerate("nTd")}
    return found.assign_coords(sizes | {"kind": list(_KINDS), "data_set": list(seeds)})


def _trained(name: str, data_sets: list[tuple[Tokens, LinearHead]], request: Request) -> xr.Dataset:
    sets = [DataSets(tokens, head, uniform_starts(tokens, name)) for tokens, head in data_sets]
    steps = request.settings["steps"]
    record = np.unique(np.geomspace(10, steps, 20).round().astype(int))
    ends = train_side_by_side(
        sets, request, name, common=_COMMON, steps=steps, record=record, **descent(name)
    )
    measured = [
        compared_with_own_tokens(one, end, name) for one, end in zip(sets, ends, strict=True)
    ]
    by_kind = [
        xr.concat(measured[first : first + len(_SIZES)], "size")
        for first in range(0, len(measured), len(_SIZES))
    ]
    return xr.concat(by_kind, "kind").assign_coords(step=record)


def compared_with_own_tokens(one: DataSets, end: xr.Dataset, name: str) -> xr.Dataset:
    """Compares every step with the solution for the tokens attended to most at the last one.

    Args:
        one: The data sets.
        end: The records of training.
        name: What was trained: ``"W"``, or ``"KQ"``.
    """
    geometry = GEOMETRIES[name]
    selection = Selection.from_index(one.tokens, end["attended"].values[:, -1])
    solution = solve(MarginProblem.from_selection(one.tokens, selection), geometry)
    best = optimal_tokens(one.tokens, one.head)
    W = end["W"].values.swapaxes(0, 1)
    margins = np.where(solution.problem.present, solution.problem.margins(W), np.inf).min(-1)
    value = np.where(np.isfinite(solution.value), solution.value, np.nan)
    products = (W * solution.W).sum((-1, -2)) / np.linalg.norm(W, axis=(-1, -2))
    correlation = products / np.linalg.norm(solution.W, axis=(-1, -2))
    settled = end["attended_probability"].values[:, -1].min((-1, -2)) >= SETTLED
    local = check_local_optimality(one.tokens, one.head, selection, solution).holds
    return xr.Dataset(
        {
            "margin_ratio": (("step", "data_set"), margins / geometry.norm(W) * value),
            "correlation": (("step", "data_set"), correlation),
            "optimal": ("data_set", (selection.mask == best.mask).all((-1, -2, -3))),
            "locally_optimal": ("data_set", local),
            "settled": ("data_set", settled),
        }
    )


def _readings(data: xr.Dataset) -> Readings:
    end = 1 - data.isel(step=-1)
    lost = end["margin_ratio"].median("data_set")
    turned = end["correlation"].median("data_set")
    optimal = data["optimal"].mean("data_set")
    roomy, tight = (optimal.isel(size=data["d"].values == d) for d in (8, 4))
    turned_of_W = turned.sel(parameterization="W")
    shares = "; ".join(
        f"{kind}, {name}: "
        + ", ".join(
            f"{share:.0%}" for share in optimal.sel(kind=kind, parameterization=name).values
        )
        for kind in _KINDS
        for name in GEOMETRIES
    )
    return Readings(
        at_least(
            "share of trials that have settled on one token a row", data["settled"].mean(), 0.95
        ),
        at_least("share of trials at locally optimal tokens", data["locally_optimal"].mean(), 0.9),
        at_most(
            "W: largest median of 1 - correlation with the Frobenius solution",
            turned_of_W.max(),
            0.02,
            "most_turned",
        ),
        at_most("largest median of 1 - margin ratio", lost.max(), 0.1, "most_lost"),
        at_least("2 sequences of 4 tokens, d = 8: least share at optimal tokens", roomy.min(), 0.6),
        at_least(
            "that share less the one for d = 4, least", (roomy.values - tight.values).min(), 0.1
        ),
        least_lost=lost.min(),
        least_turned=turned_of_W.min(),
        shares=shares,
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, (full, causal, shares) = panels_on_page(2.8, 1, 3)
    for axes, kind in ((full, "full"), (causal, "causal")):
        _curves(axes, data.sel(kind=kind))
        axes.set_title(f"{kind} attention")
    causal.sharey(full)
    full.set_ylabel("1 \N{MINUS SIGN} margin ratio, median")
    _shares(shares, data)
    panel_letters([full, causal, shares])
    shared_legend(figure, [full], handles=training_handles(COLORS["gray"]))
    return figure


def _curves(axes: Axes, data: xr.Dataset) -> None:
    axes.set(xscale="log", yscale="log", xlabel="iteration", ylim=(3e-3, 1.3))
    lost = 1 - data["margin_ratio"].median("data_set")
    for place, style in enumerate(ordered_line_styles(len(_SIZES))):
        for name, dash in DASHES.items():
            one = lost.isel(size=place).sel(parameterization=name)
            words = "$n, T, d = {}, {}, {}$".format(*_SIZES[place]) if name == "W" else None
            points = {"markersize": 3, "markevery": 3}
            axes.plot(one["step"], one, linestyle=dash, label=words, **points, **style)


def _shares(axes: Axes, data: xr.Dataset) -> None:
    shifts = iter((-3.0, -1.0, 1.0, 3.0))
    for kind, (color, marker) in _LOOKS.items():
        for name, dash in DASHES.items():
            one = data["optimal"].sel(kind=kind, parameterization=name).sum("data_set")
            fraction_curve(
                axes,
                one.drop_vars(("n", "T", "d")).assign_coords(size=range(len(_SIZES))),
                data.sizes["data_set"],
                "size",
                look={"color": color, "marker": marker, "linestyle": dash},
                label=kind if name == "W" else None,
                shift=next(shifts),
            )
    axes.set_xticks(range(len(_SIZES)), ["{}, {}, {}".format(*size) for size in _SIZES])
    axes.set_xlabel("$n, T, d$")
    axes.set_title("ends at the optimal tokens")
    axes.legend(loc="lower center")


SEQUENCES = Figures(TRANSFORMERS_AS_SVMS).figure(
    "sequences",
    "self-attention with a label for every token: margin ratio and shares at the optimum",
    statement="sequence-to-sequence and causal self-attention",
    published="none is known: our own experiment on the statement about sequences of outputs",
    sizes=by_size(seeds=[20, 40, 100], steps=[2000, 4000, 4000]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Self-attention with a random label for every token, each of them a query of one W, on "
        "{sizes[data_set]} data sets of random unit tokens; {last[step]} normalized steps of W "
        "(solid) and of (K, Q) (dashed). Left and middle: median of 1 - margin ratio, relative to "
        "the solution (in the Frobenius norm for W, in the nuclear norm for (K, Q)) for the tokens "
        "that the run itself attends to most at its end, of sequences that see all their tokens, "
        "and of tokens that see themselves and those before. At the end medians are "
        "{least_lost:.3f} to {most_lost:.3f}; 1 - correlation of W {least_turned:.5f} to "
        "{most_turned:.5f}. Right: runs that end at the optimal token of every row, with Wilson's "
        "95 % intervals, by n, T, d: {shares}. The paper has no such figure: the statement is "
        "about regularization paths, and this is how training behaves."
    ),
)
