"""Paths of two entries of W under mirror descent, beside the rays of the solutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.attention import LinearHead
from attractor.geometry import Lp
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import optimal_tokens
from attractor.papers.figure import Artifact, Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.measurements.mirror_steps import divergences
from attractor.papers.mirror_descent.data import EXPONENTS, STEPS, random_data_sets
from attractor.papers.mirror_descent.figures import _protocols
from attractor.papers.mirror_descent.figures._protocols import STOPPED, legend_of_exponents, trained
from attractor.plots.design.look import panels_on_page
from attractor.plots.design.roles import role_of
from attractor.plots.plane import frame, ray, trajectory
from attractor.results.paper import MIRROR_DESCENT

ENTRIES = ((1, 2), (3, 4))
"""The entries drawn, counted from zero."""
ARROWS = {1.75: (140, 225, 310, 425), 2.0: (300, 500, 700, 900), 3.0: (1500, 4000, 8000, 13_000)}
"""Steps with arrowheads, as published."""
EXACT, PUBLISHED = _protocols.EXACT.name, _protocols.PUBLISHED.name
"""Labels of runs."""
_RECORDS = 401


def _compute(request: Request) -> xr.Dataset:
    several, heads = random_data_sets([1 + request.seed])
    tokens, head = several[0], LinearHead(np.asarray(heads.weight)[0])
    request.uses("random data", tokens, head)
    best = optimal_tokens(tokens, head)
    index = best.mask.argmax(-1)
    problem = MarginProblem.from_selection(tokens, best)
    protocols = [_protocols.EXACT, _protocols.PUBLISHED][: 1 + request.as_published]
    solutions = np.stack([solve(problem, Lp(p)).W for p in EXPONENTS])
    found = []
    for p, solution in zip(EXPONENTS, solutions, strict=True):
        steps = np.rint(np.linspace(0, STEPS[p], _RECORDS)).astype(int)
        for protocol in protocols:
            start = np.zeros(solution.shape)
            run = trained(request, protocol, tokens, head, p, initial=start, record=steps)
            W = run.data["W"].values[0, 0]
            found.append(
                xr.Dataset(
                    {
                        "path": (("record", "entry"), _entries(W)),
                        "ray": (("solution", "entry"), _entries(solutions)),
                        "divergence": ("record", divergences(W[None], solution[None], Lp(p))[0]),
                        "norm": ("record", run.data["norm"].values[0, 0]),
                        "step": ("record", steps),
                        "optimal": (run.data["attended"].values[0, 0, -1] == index).all(),
                    },
                    {"entry": [f"W{place}" for place in ENTRIES], "solution": list(EXPONENTS)},
                ).expand_dims(p=[p], kernel=[protocol.name])
            )
    return xr.combine_by_coords(found)  # pyright: ignore[reportReturnType]


def _entries(W: np.ndarray) -> np.ndarray:
    return np.stack([W[..., i, j] for i, j in ENTRIES], axis=-1)


def _slope(entries: xr.DataArray) -> xr.DataArray:
    return entries.isel(entry=1) / entries.isel(entry=0)


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(record=-1)
    exact = last.sel(kernel=EXACT)
    slope, of_ray = _slope(exact["path"]), _slope(exact["ray"])
    found = [
        at_least("share of runs that end on the optimal tokens", exact["optimal"].mean(), 1.0),
        at_most("largest divergence from the solution of the own norm, at the end",
                exact["divergence"].max(), 4e-3),
    ]  # fmt: skip
    off = abs(slope - of_ray)
    nearest = (off.idxmin("solution") == off["p"]).mean()
    text = "share of runs whose entries end nearest to the ray of their own norm"
    found.append(at_least(text, nearest, 1.0))
    if PUBLISHED in data["kernel"]:
        norms = last["norm"].sel(p=1.75)
        early = norms.sel(kernel=EXACT) / norms.sel(kernel=PUBLISHED)
        found.append(at_least("p = 1.75: norm at the end over that as published", early, 2.0))
    slopes = "; ".join(
        f"p = {p:g}: {slope.sel(p=p):.4f} against {of_ray.sel(p=p, solution=p):.4f}, divergence "
        f"{exact['divergence'].sel(p=p):.2g}, norm {exact['norm'].sel(p=p):.4g}"
        for p in EXPONENTS
    )
    return Readings(
        *found,
        slopes=slopes,
        norm=last["norm"].transpose("kernel", "p"),
        divergence=last["divergence"].transpose("kernel", "p"),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(4.3, 2, 3)
    for column, p in zip(panels.T, EXPONENTS, strict=True):
        start, whole = column
        _panel(start, data.sel(p=p), p, 1.25 * ARROWS[p][-1], ARROWS[p])
        start.set_title(f"$p = {p:g}$: the start of the run")
        _panel(whole, data.sel(p=p), p, STEPS[p], ())
        whole.set_title(f"$p = {p:g}$: the whole run")
        whole.set_xlabel("$W_{23}$")
    for axes in panels[:, 0]:
        axes.set_ylabel("$W_{45}$")
    legend_of_exponents(figure, data, lambda p: role_of(f"l_{p:g}").label)
    return figure


def _panel(axes: Axes, panel: xr.Dataset, p: float, end: float, arrows: Sequence[int]) -> None:
    kinds = [str(kind) for kind in panel["kernel"].values]
    paths = {kind: _until(panel.sel(kernel=kind), end) for kind in kinds}
    frame(axes, *(path["path"] for path in paths.values()), ratio=0.78, equal=False)
    for other in EXPONENTS:
        thin: dict[str, Any] = {} if other == p else {"linewidth": 1.2}
        ray(axes, panel["ray"].sel(solution=other, kernel=EXACT), f"l_{other:g}", **thin)
    exact = paths[EXACT]
    steps = exact["step"].values
    trajectory(axes, exact["path"], f"l_{p:g}", steps=steps, arrows=arrows, start=False)
    if PUBLISHED in paths:
        points = paths[PUBLISHED]["path"].transpose("entry", "record").values
        marked: dict[str, Any] = {} if end == STEPS[p] else {"marker": ""}
        axes.plot(*points, zorder=3.5, **(STOPPED | marked))


def _until(run: xr.Dataset, step: float) -> xr.Dataset:
    return run.isel(record=run["step"].values <= step)


ENTRY_PATHS = Figures(MIRROR_DESCENT).figure(
    "entry-paths",
    "two entries of W from zero, for three exponents, against the rays of the solutions",
    statement="experiment: paths of two entries of W from zero",
    published=(
        "the path of one run for each exponent with the ray of its solution, arrows at four steps"
    ),
    sizes=by_size(seeds=1),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Entries in row 2, column 3 and in row 4, column 5 of W under normalized mirror descent "
        "from W = 0 on one random data set, with the rays of the max-margin solutions (pale; that "
        "of the own norm wide); arrows at four steps. Slope of the two entries at the end of the "
        "run against that of the ray: {slopes}."
    ),
    artifact=Artifact(
        "a constant added to the norm of gradients stops runs short of their limit",
        "Gray: as published, with a constant added to the norm of the gradient; these runs all but "
        "stop (dots), at norms of {norm[as published][1.75]:.4g}, {norm[as published][2.0]:.4g}, "
        "{norm[as published][3.0]:.4g} and divergences of {divergence[as published][1.75]:.2g}, "
        "{divergence[as published][2.0]:.2g}, {divergence[as published][3.0]:.2g}.",
    ),
)
