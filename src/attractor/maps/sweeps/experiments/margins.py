"""Whether attention can select the optimal tokens, and by what margin: no training."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from attractor.geometry import get_geometry
from attractor.maps.sweeps.experiment import Experiment
from attractor.maps.sweeps.experiments.parameters import (
    check_axes,
    check_settings,
    check_sizes,
    draw_tokens,
    filled_in,
    one_seed,
    text,
    token_parameters,
)
from attractor.maps.sweeps.grid import Grid
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import optimal_tokens
from attractor.support.errors import AttractorWarning, Status

STATUSES = (Status.OPTIMAL, Status.INFEASIBLE, Status.STOPPED_EARLY, Status.OUT_OF_REACH)
"""How a margin problem ends, in the order of the numbers that measures have."""

PARAMETERS = {
    **token_parameters(6, 8, 10),
    "geometry": text("frobenius", get_geometry, "norm in which the margin is largest"),
}

MEASURES = {
    "feasible": ("i1", "whether some matrix selects the optimal token of every sequence"),
    "margin": (
        "f8",
        "largest margin of a matrix of norm 1 for the optimal tokens, 0 where infeasible (1)",
    ),
    "gap": ("f8", "relative duality gap certified of it (1)"),
    "support": ("f8", "constraints at the margin (1)"),
    "ties": ("i1", "whether some sequence has several optimal tokens"),
    "status": (
        "i1",
        "status of the margin problem: "
        + ", ".join(f"{number} {status}" for number, status in enumerate(STATUSES)),
    ),
}
"""What is measured of every data set."""


def margins(**settings: Any) -> Experiment:
    """Feasibility and margin of the optimal tokens of random data sets, without training.

    Args:
        **settings: Values of ``PARAMETERS``, which may also be axes of a grid.

    Raises:
        InvalidInputError: If one is not known, or cannot be used.
    """
    return Experiment(
        "margins",
        MEASURES,
        axes=tuple(PARAMETERS),
        settings=check_settings(PARAMETERS, settings, "margins"),
        check="check",
    )


def check(grid: Grid, **settings: Any) -> None:
    """Checks all that a sweep would solve, before any of it.

    Raises:
        InvalidInputError: If a value cannot be used, or there
            are several seeds, on which nothing depends.
    """
    check_axes(PARAMETERS, grid.axes)
    check_sizes(PARAMETERS, grid.axes, settings)
    one_seed(grid.seeds, "margins")


def run(
    point: Mapping[str, Any],
    instances: Int[np.ndarray, "instances"],
    seeds: range,
    **settings: Any,
) -> dict[str, np.ndarray]:
    """Solves the margin problem of the optimal tokens of every instance; see ``MEASURES``.

    Args:
        point: Values of the axes.
        instances: Numbers of the data sets.
        seeds: One seed, on which nothing depends.
        **settings: Values of other parameters.
    """
    given = filled_in(PARAMETERS, point, settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttractorWarning)
        tokens, head = draw_tokens(given, instances)
        optimal = optimal_tokens(tokens, head)
        problem = MarginProblem.from_selection(tokens, optimal, ties="equal")
        solution = solve(problem, given["geometry"])
    status = np.array([STATUSES.index(one) for one in solution.status], np.int8)
    solved = np.isfinite(solution.value)
    settled = solved | (status == STATUSES.index(Status.INFEASIBLE))
    margin = np.where(solved, 1 / solution.value, np.where(settled, 0.0, np.nan))
    found = {
        "feasible": np.where(settled, solved, -1).astype(np.int8),
        "margin": margin,
        "gap": np.where(solved, solution.gap, np.nan),
        "support": np.where(solved, solution.support.sum(-1), np.nan),
        "ties": optimal.tied.any((-1, -2)).astype(np.int8),
        "status": status,
    }
    return {name: np.repeat(array[:, None], len(seeds), axis=1) for name, array in found.items()}
