"""Paths of head and attention when they are trained together, beside the rays of the solutions."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.papers.figure import Artifact, Figures, Readings, at_least, at_most, by_size
from attractor.papers.mirror_descent.data import EXPONENTS
from attractor.papers.mirror_descent.figures._protocols import STOPPED, legend_of_exponents
from attractor.papers.mirror_descent.figures._two_sequences import EXACT, PUBLISHED, joint_runs
from attractor.plots.design.look import panels_on_page
from attractor.plots.plane import frame, ray, trajectory
from attractor.results.paper import MIRROR_DESCENT

W_ARROWS = {1.75: (20, 30, 38), 2.0: (20, 40, 60), 3.0: (15, 60, 130)}
V_ARROWS = {1.75: (15, 35, 50), 2.0: (25, 50, 75), 3.0: (50, 175, 400)}
"""Steps with arrowheads, as published."""


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(record=-1)
    ends = last.sel(kernel=EXACT)
    found = []
    for name, what in (("W", "attention"), ("v", "head")):
        for p in EXPONENTS:
            value = ends[f"{name}_divergence"].sel(p=p)
            text = f"p = {p:g}: divergence of the {what} from its solution, at the end"
            found.append(at_most(text, value, 2e-5 if p <= 2 else 1e-3))
    if PUBLISHED in data["kernel"]:
        ratio = (last["W_divergence"].sel(kernel=PUBLISHED) / ends["W_divergence"]).min()
        found.append(at_least("least divergence of W as published over the exact one", ratio, 10.0))
    ends_by_exponent = "; ".join(
        f"p = {p:g}: tokens ({', '.join(str(token + 1) for token in end['tokens'].values)}), "
        f"{end['W_divergence']:.2g} and {end['v_divergence']:.2g}, label margin "
        f"{end['label_margin']:.4f} of {end['best_label_margin']:.4f}"
        for p in EXPONENTS
        for end in [ends.sel(p=p)]
    )
    return Readings(
        *found,
        ends=ends_by_exponent,
        of_W=last["W_divergence"].transpose("kernel", "p"),
        of_v=last["v_divergence"].transpose("kernel", "p"),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(4.5, 2, 3)
    for (upper, lower), p in zip(panels.T, EXPONENTS, strict=True):
        run = data.sel(p=p)
        first_row = {"points": run["W"].isel(row=0), "solution": run["W_solution"].isel(row=0)}
        _panel(upper, run, p, W_ARROWS[p], **first_row)
        upper.set(title=f"attention, $p = {p:g}$", xlabel="$W_{11}$")
        _panel(lower, run, p, V_ARROWS[p], points=run["v"], solution=run["v_solution"])
        lower.set(title=f"head, $p = {p:g}$", xlabel="$v_1$")
    panels[0, 0].set_ylabel("$W_{12}$")
    panels[1, 0].set_ylabel("$v_2$")
    legend_of_exponents(figure, data, lambda p: f"training and solution, $p = {p:g}$")
    return figure


def _panel(
    axes: Axes,
    run: xr.Dataset,
    p: float,
    arrows: Sequence[int],
    *,
    points: xr.DataArray,
    solution: xr.DataArray,
) -> None:
    """The path, in a frame that reaches beyond the last arrow and the end as published."""
    steps = run["step"].sel(kernel=EXACT).values
    path = points.sel(kernel=EXACT).values
    published = points.sel(kernel=PUBLISHED).values if PUBLISHED in run["kernel"] else path[:1]
    frame(axes, path[steps <= 1.6 * arrows[-1]], 1.1 * published, ratio=0.78, equal=False)
    ray(axes, solution.sel(kernel=EXACT), f"l_{p:g}")
    trajectory(axes, path, f"l_{p:g}", steps=steps, arrows=arrows, start=False)
    if PUBLISHED in run["kernel"]:
        axes.plot(*published.T, zorder=3.5, **STOPPED)


JOINT_PATHS = Figures(MIRROR_DESCENT).figure(
    "joint-paths",
    "head and attention, trained together, against the rays of their solutions",
    statement="experiment: joint training of head and attention",
    published=(
        "paths of the first row of W and of the head v with the rays of both solutions, arrows at "
        "three steps"
    ),
    sizes=by_size(seeds=1),
    compute=joint_runs,
    draw=_draw,
    readings=_readings,
    caption=(
        "Joint mirror descent of head and attention from zero on two sequences of three tokens: "
        "first row of W and head v, with the rays of the max-margin solutions of the tokens that "
        "the run selects (pale); arrows at three steps. Tokens, divergences of W and of v from "
        "their solutions at the end of the run, beyond the frame, and label margin of the tokens "
        "against the best of any: {ends}."
    ),
    artifact=Artifact(
        "a constant added to the norms of gradients stops runs short of their limit",
        "Gray: as published, where a constant added to the norms of the gradients brings both to a "
        "halt (dots); divergences there are p = 1.75: {of_W[as published][1.75]:.2g} and "
        "{of_v[as published][1.75]:.2g}; p = 2: {of_W[as published][2.0]:.2g} and "
        "{of_v[as published][2.0]:.2g}; p = 3: {of_W[as published][3.0]:.2g} and "
        "{of_v[as published][3.0]:.2g}.",
    ),
)
