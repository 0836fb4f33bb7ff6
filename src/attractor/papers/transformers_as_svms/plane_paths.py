"""Training on tokens of the plane: the paths of ``W(k) z_i``, and how near they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from attractor.analysis import verify
from attractor.files.case import Case
from attractor.papers.figure import Reading, Request, at_least, by_size
from attractor.papers.transformers_as_svms.descent import GEOMETRIES, ROLES, descent
from attractor.plots.design.look import COLORS
from attractor.plots.design.roles import line_style, role_of
from attractor.plots.plane import ray, trajectory
from attractor.training import train

SIZES = by_size(seeds=1, steps=2000)

_KERNELS: dict[str, dict[str, Any]] = {
    "exact": {},
    "as published": {"linewidth": 0.8, "marker": "o", "markersize": 2.2, "markevery": 7},
}


def plane_paths(case: Case, request: Request) -> xr.Dataset:
    """Trains W from zero, and (K, Q) from a small random K and Q = 0.

    Returns:
        ``path``, the vectors ``W(k) z_i`` by kernel, parameterization, start, step and sequence;
        ``correlation`` and ``margin_ratio`` of W(k) with the solution in the norm predicted,
        ``norm``; ``solution`` and what was trained on.
    """
    request.uses(case.about, case.tokens, case.head)
    kernels = ["exact"] + ["as published"] * request.as_published
    runs = xr.concat(
        [
            xr.concat(
                [_one(case, request, name, kernel == "as published") for name in GEOMETRIES],
                "parameterization",
            )
            for kernel in kernels
        ],
        "kernel",
    )
    solutions = [case.solution(geometry).W for geometry in GEOMETRIES.values()]
    data = {
        "solution": (("parameterization", "row", "column"), np.array(solutions)),
        "keys": (("sequence", "token", "coordinate"), case.tokens.keys),
        "queries": (("sequence", "coordinate"), case.tokens.queries[:, 0]),
        "optimal": (("sequence",), case.optimal.index),
    }
    return runs.assign(data).assign_coords(kernel=kernels, parameterization=list(GEOMETRIES))


def _one(case: Case, request: Request, name: str, as_published: bool) -> xr.Dataset:
    steps = request.settings["steps"]
    run = train(
        case.tokens,
        case.head,
        steps=steps,
        seeds=request.seeds,
        seed=request.seed,
        initial=_starts(name, request),
        record=np.union1d(np.arange(min(steps, 400) + 1), np.arange(0, steps + 1, 20)),
        checkpoint=request.checkpoint(f"{case.about}, {name}{', published' * as_published}"),
        progress=request.progress,
        **descent(name, as_published=as_published),
    )
    verdict = verify(run, case.solution(GEOMETRIES[name])).data.isel(instance=0, drop=True)
    W = run.data["W"].isel(instance=0, drop=True).transpose("seed", "step", "row", "column").values
    paths = np.einsum("ksde,ie->ksid", W, case.tokens.queries[:, 0])
    found = verdict[["correlation", "margin_ratio"]].drop_vars("instance", errors="ignore")
    found["path"] = (("seed", "step", "sequence", "coordinate"), paths)
    found["norm"] = (("seed", "step"), np.linalg.norm(W, axis=(-1, -2)))
    return found.rename(seed="start")


def _starts(name: str, request: Request) -> dict[str, np.ndarray]:
    if name == "W":
        return {"W": np.zeros((2, 2))}
    seeds = range(request.seed, request.seed + request.seeds)
    keys = [0.1 * np.random.default_rng(seed).standard_normal((2, 2)) for seed in seeds]
    return {"K": np.array(keys)[None], "Q": np.zeros((2, 2))}


def end_readings(data: xr.Dataset) -> list[Reading]:
    """Readings that W ends at the Frobenius and (K, Q) at the nuclear solution, from any start."""
    ends = data["correlation"].isel(step=-1).min("start")
    return [
        at_least(
            f"{words}, {kernel}: correlation with the {norm} solution at the end",
            float(ends.sel(kernel=kernel, parameterization=name)),
            bound,
        )
        for kernel in data["kernel"].values
        for name, words, norm, bound in (
            ("W", "W", "Frobenius", 0.9995),
            ("KQ", "(K, Q)", "nuclear", 0.999),
        )
    ]


def draw_paths(
    axes: Axes, data: xr.Dataset, name: str, arrows: int, *, names: bool = False
) -> None:
    """Draws the rays to a solution and the paths of its training, in a frame that is set.

    Args:
        axes: Where to draw.
        data: What ``plane_paths`` returned.
        name: ``"W"`` or ``"KQ"``.
        arrows: An arrowhead every so many steps.
        names: Whether to write the query beside each ray.
    """
    chosen = data.sel(kernel="exact", parameterization=name)
    solution, training = ROLES[name]
    star = r"_\star" if name == "KQ" else ""
    trained = r"$W$: $W(k)\,z_i$" if name == "W" else r"$(K, Q)$: $K(k) Q(k)^\top z_i$"
    for i, query in enumerate(chosen["queries"].values):
        predicted = rf"{role_of(solution).label}: $W^{{mm}}{star}\,z_i$" if i == 0 else None
        direction, written = chosen["solution"].values @ query, f"$z_{i + 1}$" * names
        ray(axes, direction, solution, label=predicted, name=written)
        path = chosen["path"].sel(sequence=i).transpose("start", "step", "coordinate")
        label = f"training {trained}" if i == 0 else None
        steps = path["step"].values
        trajectory(axes, path, training, steps=steps, arrows=arrows, label=label, start=False)


def draw_shortfall(axes: Axes, data: xr.Dataset, measure: str) -> None:
    """Draws how far training is from the predicted solution, against the step.

    Args:
        axes: Where to draw.
        data: What ``plane_paths`` returned.
        measure: ``"correlation"`` or ``"margin_ratio"``.
    """
    last = int(data["step"][-1])
    steps = np.unique(np.geomspace(1, last, 120).round())
    for name, (_, training) in ROLES.items():
        for kernel in data["kernel"].values:
            one = data[measure].sel(parameterization=name, kernel=kernel).mean("start")
            shown = one.sel(step=steps, method="nearest")
            axes.plot(shown["step"], 1 - shown, **line_style(training, **_KERNELS[kernel]))
    axes.set(xscale="log", yscale="log", xlabel="iteration", box_aspect=1)
    axes.set_ylabel(f"1 \N{MINUS SIGN} {measure.replace('_', ' ')}")
    if data.sizes["kernel"] > 1:
        for kernel, style in _KERNELS.items():
            axes.plot([], [], color=COLORS["gray"], label=kernel, **style)
        axes.legend(loc="lower left")
