"""Solutions and certificates: every geometry and family of problems, and what is made of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools.golden.collect import of
from tools.golden.drawn import head_on_tokens, selected, unit

Results = Iterator[tuple[str, Callable[[], Any]]]
SOLUTION = (
    "W multipliers status value norm margin dual_value dual_norm gap kkt_residual "
    "equality_residual farkas_residual norm_lower_bound support rank uniqueness other_solution "
    "conflict"
)
GEOMETRIES = (
    *("frobenius", "nuclear", "spectral", "schatten_1.5", "schatten_3"),
    *("l_1", "l_1.01", "l_1.5", "l_3", "l_inf"),
)


def geometries() -> dict[str, Any]:
    """Norms by name; those of blocks are for matrices of two rows or more."""
    import attractor as at
    from attractor.geometry import Block, get_geometry

    blocks = [Block("l_1", rows=(0, 1)), Block("frobenius", rows=(1, None), weight=2.0)]
    found = {name: get_geometry(name) for name in GEOMETRIES}
    return found | {"maximum": at.BlockMaximum(*blocks), "sum": at.BlockSum(*blocks)}


def families() -> Results:
    """A problem of each family, in every geometry."""
    import attractor as at
    from fuzzing.margin_families import FAMILIES, make

    for family in sorted(FAMILIES):
        for name, geometry in geometries().items():

            def solved(family: str = family, geometry: Any = geometry) -> Any:
                one = make(family, 1)
                problem = at.MarginProblem(one.left, one.right, one.bounds, one.equality)
                return of(at.solve(problem, geometry), SOLUTION)

            if len(make(family, 1).left.T) > 1 or name not in ("maximum", "sum"):
                yield f"{family}, {name}", solved


def norms() -> Results:
    """A batch of drawn data in every geometry, with its certificates as files."""
    import attractor as at

    tokens, head = head_on_tokens(3)
    problem = at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head))
    single = selected()[3].problem
    for name, geometry in geometries().items():

        def certified(geometry: Any = geometry) -> Any:
            file = Path("certificate.json")
            solution = at.solve(single, geometry)
            solution.save_certificate(file)
            return of(solution, SOLUTION), json.loads(file.read_text())

        solve = functools.partial(at.solve, problem, geometry)
        yield f"batch, {name}", lambda solve=solve: of(solve(), SOLUTION)
        yield f"certificate, {name}", certified


def selections() -> Results:
    """What is asked about selections of one data set."""
    import attractor as at

    tokens, head, selection, solution = selected()
    data = (tokens, head, selection)
    yield (
        "local-optimality",
        lambda: of(
            at.check_local_optimality(*data), "holds support_tokens score_advantage worst_advantage"
        ),
    )
    yield (
        "cone",
        lambda: of(
            at.attracting_cone(*data), "opening radius delta reach score_gap score_range uncovered"
        ),
    )
    yield "tie-classes", lambda: at.tie_classes(*data)
    yield "label", lambda: of(at.solve(at.label_problem(tokens, selection)), SOLUTION)
    small = at.Tokens(keys=unit(4, 3, 3, 4), queries=unit(5, 3, 4), labels=[1, -1, 1])
    few = at.LinearHead(unit(6, 4))
    best = at.optimal_tokens(small, few)
    census = "feasible locally_optimal worst_advantage worst_token support_tokens norms gaps"
    yield "census", lambda: of(at.locally_optimal_selections(small, few), census)
    yield (
        "several",
        lambda: of(
            at.solve_several(small, best),
            "value gap lower_bound solved combinations uniqueness status",
        ),
    )
    for width in (1, 2):
        factorized = functools.partial(
            at.solve_factorized, at.MarginProblem.from_selection(small, best), width
        )
        yield (
            f"factorized, {width}",
            lambda one=factorized: of(one(), f"{SOLUTION} K Q first_order_residual"),
        )
    for ratio in (0.5, 2.0):
        direction = functools.partial(at.rate_ratio_direction, tokens, selection, ratio)
        yield (
            f"rate-ratio, {ratio}",
            lambda one=direction: of(
                one(), "direction value gain gap violation weights barrier_weights critical_ratio"
            ),
        )
    weights = np.random.default_rng(7).dirichlet([0.2] * 5, size=(4, 1))
    yield "decomposition", lambda: (
        lambda one: (
            of(one.directional, SOLUTION), of(one.finite, SOLUTION), one.ambiguous,
            one.predict(2.0), one.correlation(solution.W),
        )
    )(at.decompose(tokens, weights))  # fmt: skip
    yield (
        "relaxed",
        lambda: of(
            at.solve(
                at.relaxed_problem(tokens, selection, np.array([[True], [False], [True], [True]]))
            ),
            SOLUTION,
        ),
    )
    heads = functools.partial(at.MarginProblem.from_heads, tokens, [selection, selection])
    yield "several-heads", lambda: of(at.solve(heads()), SOLUTION)


ADAPTERS = {"family": families, "norm": norms, "selection": selections}
