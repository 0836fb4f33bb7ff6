"""Tokens at which training on random unit tokens ends, for many sizes of data sets at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Bool
from matplotlib.lines import Line2D

from attractor.attention import LinearHead
from attractor.datasets import unit_tokens
from attractor.margin import MarginProblem, check_local_optimality, solve
from attractor.margin.selection import Selection, optimal_tokens
from attractor.papers.figure import Request
from attractor.papers.transformers_as_svms.descent import GEOMETRIES, descent
from attractor.papers.transformers_as_svms.side_by_side import (
    DataSets,
    train_side_by_side,
    uniform_starts,
)
from attractor.plots.design.roles import DASHED, SOLID
from attractor.tokens import Tokens

SETTLED = 0.99
"""Attention on the selected token of every row above which a selection counts as settled."""

DASHES = {"W": SOLID, "KQ": DASHED}
"""Dashes of the training of each parameterization."""

Size = tuple[int, int, int]


def training_handles(color: str) -> list[Line2D]:
    """Entries of a legend for training of W and of keys and queries."""
    labels = ("training $W$", "training $(K, Q)$")
    return [
        Line2D([], [], color=color, linestyle=dash, label=label)
        for dash, label in zip(DASHES.values(), labels, strict=True)
    ]


def selections_reached(sizes: Sequence[Size], request: Request) -> xr.Dataset:
    """Trains W, and keys and queries, on data sets of every size from random starts.

    Args:
        sizes: Sequences n, tokens T and dimension d of data sets.
        request: The request of a figure: number of data sets of each size, first seed, steps.

    Returns:
        Booleans over (parameterization, size, data_set): ``optimal``, whether every row attends
        most to its optimal token; ``locally_optimal``, whether the tokens attended to most are
        locally optimal in the norm predicted; ``settled``. Over (size, data_set):
        ``separable``, whether the optimal tokens have a margin solution, and ``all_support``,
        whether all others are support tokens of the one in the Frobenius norm.
    """
    seeds = range(request.seed, request.seed + request.seeds)
    data_sets = [unit_tokens(*size, seeds=seeds) for size in sizes]
    for size, (tokens, head) in zip(sizes, data_sets, strict=True):
        request.uses("unit tokens n={} T={} d={}".format(*size), tokens, head)
    best = [optimal_tokens(tokens, head) for tokens, head in data_sets]
    found = xr.Dataset(
        coords={
            "parameterization": list(GEOMETRIES),
            **{name: ("size", [size[i] for size in sizes]) for i, name in enumerate("nTd")},
            "data_set": list(seeds),
        }
    )
    of_set = ("size", "data_set")
    for name, values in of_optimal_tokens(data_sets, best).items():
        found[name] = (of_set, values)
    reached = [_reached(name, data_sets, best, request) for name in GEOMETRIES]
    for name in ("optimal", "locally_optimal", "settled"):
        found[name] = (("parameterization", *of_set), [one[name] for one in reached])
    return found


def of_optimal_tokens(
    data_sets: Sequence[tuple[Tokens, LinearHead]], best: Sequence[Selection]
) -> dict[str, Bool[np.ndarray, "size data_set"]]:
    """Whether optimal tokens have a margin solution, and whether all others are support tokens.

    Args:
        data_sets: Tokens and heads of every size.
        best: Their optimal tokens.

    Returns:
        ``separable`` and ``all_support``, by the solutions in the Frobenius norm.
    """
    solutions = [
        solve(MarginProblem.from_selection(tokens, one))
        for (tokens, _), one in zip(data_sets, best, strict=True)
    ]
    separable = np.array([np.isfinite(solution.value) for solution in solutions])
    support = np.array([solution.support.all(-1) for solution in solutions])
    return {"separable": separable, "all_support": separable & support}


def _reached(
    name: str,
    data_sets: Sequence[tuple[Tokens, LinearHead]],
    best: Sequence[Selection],
    request: Request,
) -> dict[str, list[np.ndarray]]:
    sets = [DataSets(tokens, head, uniform_starts(tokens, name)) for tokens, head in data_sets]
    steps = request.settings["steps"]
    ends = train_side_by_side(sets, request, name, steps=steps, record=[steps], **descent(name))
    found: dict[str, list[np.ndarray]] = {"optimal": [], "locally_optimal": [], "settled": []}
    for one, end, optimal in zip(sets, ends, best, strict=True):
        attended = end["attended"].values[:, -1, :, 0]
        selection = Selection.from_index(one.tokens, attended)
        found["optimal"].append((selection.mask == optimal.mask).all((-1, -2, -3)))
        found["locally_optimal"].append(
            check_local_optimality(one.tokens, one.head, selection, geometry=GEOMETRIES[name]).holds
        )
        found["settled"].append(end["attended_probability"].values[:, -1].min((-1, -2)) >= SETTLED)
    return found
