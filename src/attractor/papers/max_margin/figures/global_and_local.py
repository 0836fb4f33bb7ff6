"""Paths of a prompt vector in the plane: a global and a local direction."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.geometry.vectors import cosines
from attractor.margin.selection import Selection
from attractor.papers.figure import Artifact, Figures, Readings, Request, at_least, by_size, stacked
from attractor.papers.max_margin.data import EXACT, kernels, one_sequence, run
from attractor.plots.design.look import panels_on_page
from attractor.plots.plane import frame, optimal_token_handle, plane_tokens, ray, trajectory
from attractor.results.paper import MAX_MARGIN
from attractor.training import normalized_gradient_descent

STARTS = (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)
"""Second coordinates of the initial prompts; their first is zero."""
SHOWN = 200
"""Steps drawn; from there on runs stay on the rays."""
CLOSE = ((-5.0, -2.5), (9.0, 11.0))
FAR = ((-13.0, -4.0), (24.0, 30.0))
"""Corners of the frames."""


def _compute(request: Request) -> xr.Dataset:
    steps = request.settings["steps"]
    optimizers = normalized_gradient_descent(0.1), normalized_gradient_descent(0.1, eps=1e-9)
    ways = kernels(*optimizers, both=request.as_published)
    start = np.array([[[0.0, height] for height in STARTS]])
    panels = []
    for equal in (True, False):
        case = one_sequence(equal_scores=equal)
        request.uses(case.about, case.tokens, case.head)
        recorded = np.concatenate([np.arange(0, SHOWN, 2), np.arange(SHOWN, steps + 1, 10)])
        runs = run(case, ways, steps=steps, seeds=len(STARTS), initial=start, record=recorded)
        solutions = [
            case.solution(selection=Selection.from_index(case.tokens, [token])).W[:, 0]
            for token in (0, 1)
        ]
        variables = {
            "path": (("kernel", "start", "step", "coordinate"), runs["p"].values),
            "keys": (("token", "coordinate"), case.tokens.keys[0]),
            "scores": (("token",), case.scores[0, 0]),
            "solution": (("selected", "coordinate"), np.array(solutions)),
        }
        coordinates = {"start": list(STARTS), "step": recorded, "kernel": runs["kernel"].values}
        panels.append(xr.Dataset(variables, coordinates))
    return stacked(panels, "other_scores", ["equal", "unequal"])


def _readings(data: xr.Dataset) -> Readings:
    ends = data["path"].sel(kernel=EXACT).isel(step=-1).values[..., None]
    rays = data["solution"].values[..., None]
    above = np.array(STARTS) > -1
    expected = (
        ("equal scores: least cosine to the global", ends[0], rays[0, 0]),
        ("unequal scores, from above: least cosine to the global", ends[1, above], rays[1, 0]),
        ("unequal scores, from below: least cosine to the local", ends[1, ~above], rays[1, 1]),
    )
    return Readings(
        *(
            at_least(f"{text} direction", cosines(reached, direction).min(), 0.999)
            for text, reached, direction in expected
        )
    )


def _draw(data: xr.Dataset) -> Figure:
    names = [str(name) for name in data["kernel"].values]
    alone = len(names) == 1
    figure, places = panels_on_page(3.7 if alone else 6.9, len(names), 2, squeeze=False)
    # What single precision does to the paths begins where the published frame ends.
    last, corners = (SHOWN, CLOSE) if alone else (int(data["step"].max()), FAR)
    for row, name in zip(places, names, strict=True):
        for axes, kind in zip(row, data["other_scores"].values, strict=True):
            panel = data.sel(other_scores=kind, kernel=name)
            frame(axes, corners)
            _panel(axes, panel.sel(step=slice(0, last)), local=str(kind) == "unequal")
            title = f"other scores {kind}"
            axes.set_title(title if alone else f"{name}: {title}")
    handles, labels = places[0, 1].get_legend_handles_labels()
    handles.append(optimal_token_handle())
    labels.append("optimal token")
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _panel(axes: Axes, panel: xr.Dataset, *, local: bool) -> None:
    path, steps = panel["path"].values, panel["step"].values
    role = "train_p" if str(panel["kernel"].values) == EXACT else "as_published"
    ray(axes, panel["solution"].values[0], "globally_optimal", label="global direction")
    if local:
        ray(axes, panel["solution"].values[1], "locally_optimal", label="local direction")
    names = [[f"{score:g}" for score in panel["scores"].values]]
    near = steps[-1] <= SHOWN
    names_here = names if near else None  # from afar they would lie on each other
    plane_tokens(axes, panel["keys"].values[None], optimal=[0], names=names_here)
    trajectory(
        axes, path, role, steps=steps, arrows=30 if near else 60,
        label=f"training $p$, {steps[-1]:,} steps",
    )  # fmt: skip
    axes.set(xlabel="$p_1$", ylabel="$p_2$")


GLOBAL_AND_LOCAL = Figures(MAX_MARGIN).figure(
    "global-and-local",
    "paths of a prompt vector to the global and to a local max-margin direction",
    statement="experiment: global and local directions of one sequence",
    published="trajectories from six starts in the plane, first 200 steps of 1,000, with arrows",
    sizes=by_size(seeds=1, steps=1000),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Paths of a prompt vector under normalized gradient descent (step 0.1) from six starts (0, "
        "y); one sequence of three tokens, with its scores written beside them. Left: with equal "
        "scores of the other tokens, all go to the direction of the best token. Right: with a "
        "worse third token, the second is locally optimal, and the starts below y = -0.5 go to its "
        "direction."
    ),
    artifact=Artifact(
        "plain gradients in single precision: paths stop, or leave their direction",
        "Bottom row, as published: plain gradients in single precision, with 1e-9 added to the "
        "norm they are divided by; once the softmax has saturated, paths stop or turn into "
        "rounding noise.",
    ),
)
