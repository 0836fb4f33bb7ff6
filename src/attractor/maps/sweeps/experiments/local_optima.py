"""How many selections training can end at: a census of the locally optimal ones, no training."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from attractor.geometry import get_geometry
from attractor.maps.sweeps.experiment import Experiment
from attractor.maps.sweeps.experiments.parameters import (
    SIZES,
    check_axes,
    check_settings,
    check_sizes,
    combinations,
    draw_tokens,
    filled_in,
    one_seed,
    text,
    token_parameters,
    token_sizes,
)
from attractor.maps.sweeps.grid import Grid
from attractor.margin import locally_optimal_selections
from attractor.margin.selection import optimal_tokens
from attractor.support.errors import AttractorWarning, InvalidInputError, Status

MOST = 100_000
"""Selections of a data set that a census takes."""

PARAMETERS = {
    **token_parameters(3, 4, 4),
    "geometry": text("frobenius", get_geometry, "norm of the margin problems"),
}

MEASURES = {
    "locally_optimal_selections": ("f8", "selections that are locally optimal (1)"),
    "feasible_selections": ("f8", "selections that some matrix makes (1)"),
    "locally_optimal_share": ("f8", "share of all selections that are locally optimal (1)"),
    "not_certified": ("f8", "selections that no certificate decided (1)"),
    "optimal_feasible": ("i1", "whether some matrix selects every optimal token"),
    "optimal_locally_optimal": ("i1", "whether the optimal selection is locally optimal"),
    "only_optimal": ("i1", "whether no other selection is locally optimal"),
}
"""What is measured of every data set."""


def local_optima(**settings: Any) -> Experiment:
    """The census of locally optimal selections of random data sets, without training.

    Args:
        **settings: Values of ``PARAMETERS``, which may also be axes of a grid.

    Raises:
        InvalidInputError: If one is not known, or cannot be used.
    """
    return Experiment(
        "local_optima",
        MEASURES,
        axes=tuple(PARAMETERS),
        settings=check_settings(PARAMETERS, settings, "local_optima"),
        check="check",
    )


def check(grid: Grid, **settings: Any) -> None:
    """Checks all that a sweep would solve, before any of it.

    Raises:
        InvalidInputError: If a value cannot be used, data sets
            have more selections than a census takes, or there are several seeds, on which nothing
            depends.
    """
    check_axes(PARAMETERS, grid.axes)
    check_sizes(PARAMETERS, grid.axes, settings)
    one_seed(grid.seeds, "local_optima")
    for point in combinations(grid.axes, SIZES):
        n, T, _ = token_sizes(filled_in(PARAMETERS, point, settings))
        selections = T**n
        if selections > MOST:
            raise InvalidInputError(
                "T",
                f"{n} sequences of {T} tokens have {selections:,} selections",
                f"Give sizes with T^n at most {MOST:,}, such as n = 3 and T = 8",
            )


def run(
    point: Mapping[str, Any],
    instances: Int[np.ndarray, "instances"],
    seeds: range,
    **settings: Any,
) -> dict[str, np.ndarray]:
    """Takes the census of every instance; see ``MEASURES``.

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
        rows = [
            _census(tokens[place], head.for_instances(place), given["geometry"])
            for place in range(len(instances))
        ]
    shape = (len(instances), len(seeds))
    return {
        name: np.broadcast_to(np.array([row[name] for row in rows])[:, None], shape).astype(dtype)
        for name, (dtype, _) in MEASURES.items()
    }


def _census(tokens: Any, head: Any, geometry: str) -> dict[str, float]:
    """The numbers of one data set."""
    census = locally_optimal_selections(tokens, head, geometry, most=MOST)
    best = (census.selections.mask == optimal_tokens(tokens, head).mask).all((-1, -2, -3))
    local, decided = census.locally_optimal, (Status.OPTIMAL, Status.INFEASIBLE)
    found: dict[str, float] = {
        "locally_optimal_selections": int(local.sum()),
        "feasible_selections": int(census.feasible.sum()),
        "locally_optimal_share": float(local.mean()),
        "not_certified": sum(status not in decided for status in census.statuses),
        "only_optimal": int(not local[~best].any()),
    }
    for name, flags in (("feasible", census.feasible), ("locally_optimal", local)):
        found[f"optimal_{name}"] = int(flags[best].any()) if best.any() else -1
    return found
