"""Verdicts, rates, offsets, basins, bias and tuned matrices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tools.golden.collect import command, of
from tools.golden.drawn import head_on_tokens, selected, unit

Results = Iterator[tuple[str, Callable[[], Any]]]


@functools.cache
def run(name: str) -> Any:
    """A run of 400 steps on drawn data."""
    import attractor as at

    tokens, head = head_on_tokens()
    return at.train(tokens, head, getattr(at, name)(0.1), steps=400, seeds=2)


def verdicts() -> Results:
    """Runs compared with solutions, and the rates that they go at."""
    import attractor as at

    solution = selected()[3]
    for name in ("gradient_descent", "normalized_gradient_descent", "sign_descent", "muon"):
        yield name, lambda name=name: at.verify(run(name)).data
        yield f"{name}, given", lambda name=name: at.verify(run(name), solution).data
        yield (
            f"{name}, rates",
            lambda name=name: [
                of(rate, "quantity outcome exponent slope low high first last left_out")
                for rate in _rates(at.fit_rates(at.verify(run(name), solution)))
            ],
        )


def _rates(found: Any) -> list[Any]:
    """The rates of several quantities, in the order of their names."""
    by_name = found.by_name
    return [by_name[name] for name in sorted(by_name)]


def measures() -> Results:
    """What is measured of matrices and of data."""
    import attractor as at
    from attractor import analysis

    tokens, head, selection, solution = selected()
    W = np.stack([solution.W, unit(8, 6, 6)])
    yield "direction", lambda: analysis.measure_direction(W, solution)
    yield "bregman", lambda: analysis.directional_bregman_divergence(W, solution.W, at.Lp(1.5))
    yield (
        "offsets",
        lambda: [
            analysis.measured_offsets(10 * W, solution),
            analysis.predicted_offsets(tokens, head, solution),
        ],
    )
    yield "first-gradient", lambda: analysis.first_gradient_margin(tokens, head)
    yield "smoothness", lambda: analysis.smoothness_constant(tokens, head)
    yield (
        "label-constant",
        lambda: of(
            analysis.label_margin_constant(tokens, selection, samples=50),
            "value limit margin weights",
        ),
    )
    norms = [at.Frobenius(), at.Nuclear(), at.Lp(3)]
    yield "geometries", lambda: analysis.compare_geometries(solution.problem, norms)


def basins() -> Results:
    """Where training from many starts goes."""
    import attractor as at
    from attractor import maps

    tokens, head, *_ = selected()
    data = (tokens, head, at.normalized_gradient_descent(0.1))
    yield "shares", lambda: maps.basin_shares(*data, starts=16, steps=200).data
    plane = (unit(9, 6, 6), unit(10, 6, 6))
    yield "map", lambda: maps.basin_map(*data, plane=plane, steps=200, resolution=4).data


def matrices() -> Results:
    """Which norm's margin optimizers maximize."""
    import attractor as at
    from attractor import maps

    data = head_on_tokens(3)
    yield "which-norm", lambda: maps.which_norm(*data, at.sign_descent(0.1), steps=200).data
    yield "bias", lambda: maps.bias_matrix(*data, steps=200).data
    for name in ("sign descent", "muon"):
        yield (
            f"tuned, {name}",
            functools.partial(
                command, "matrix", "--optimizer", name, "--data-sets", 2, "--steps", 200
            ),
        )


ADAPTERS = {"verdict": verdicts, "measure": measures, "basins": basins, "matrix": matrices}
