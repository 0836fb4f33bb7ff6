"""Paths of a prompt vector in the plane: a global and a local direction."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.papers.figure import PaperFigure, Reading, Request, at_least
from attractor.papers.max_margin.data import one_sequence
from attractor.papers.measurements.directions import cosines
from attractor.papers.paper import MAX_MARGIN
from attractor.selection import Selection
from attractor.training import normalized_gradient_descent, train

STARTS = (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)
"""Second coordinates of the initial prompts; their first is zero."""


def _compute(request: Request) -> xr.Dataset:
    steps = request.settings["steps"]
    kinds = {"exact": {"optimizer": normalized_gradient_descent(0.1)}}
    if request.as_published:
        published: Any = {
            "optimizer": normalized_gradient_descent(0.1, eps=1e-9),
            "kernel": "plain",
            "dtype": "float32",
        }
        kinds["as published"] = published
    start = np.array([[[0.0, height] for height in STARTS]])
    panels = []
    for equal in (True, False):
        case = one_sequence(equal_scores=equal)
        request.uses(case.about, case.tokens, case.head)
        runs = [
            train(
                case.tokens,
                case.head,
                steps=steps,
                seeds=len(STARTS),
                initial=start,
                parameterization="p",
                record=np.arange(0, steps + 1, 10),
                **options,
            ).data["p"]
            for options in kinds.values()
        ]
        solutions = [
            case.solution(selection=Selection.from_index(case.tokens, [token])).W[:, 0]
            for token in (0, 1)
        ]
        panels.append(
            xr.Dataset(
                {
                    "path": (
                        ("kernel", "start", "step", "coordinate"),
                        np.stack([run.values[0] for run in runs]),
                    ),
                    "keys": (("token", "coordinate"), case.tokens.keys[0]),
                    "scores": (("token",), case.scores[0, 0]),
                    "solution": (("selected", "coordinate"), np.array(solutions)),
                },
                {"start": list(STARTS), "step": runs[0]["step"].values, "kernel": list(kinds)},
            )
        )
    return xr.concat(panels, dim="scores_of_others").assign_coords(
        scores_of_others=["equal", "unequal"]
    )


def _readings(data: xr.Dataset) -> list[Reading]:
    exact = data.sel(kernel="exact")
    ends = exact["path"].isel(step=-1).values[..., None]
    rays = exact["solution"].values[..., None]
    return [
        at_least("equal scores: least cosine to the global direction",
                 cosines(ends[0], rays[0, 0]).min(), 0.99),
        at_least("unequal scores, from above: cosine to the global direction",
                 cosines(ends[1, :4], rays[1, 0]).min(), 0.99),
        at_least("unequal scores, from below: cosine to the local direction",
                 cosines(ends[1, 4:], rays[1, 1]).min(), 0.99),
    ]  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(6.9, 3.0))
    for axes, kind in zip(figure.subplots(1, 2), data["scores_of_others"].values, strict=True):
        panel = data.sel(scores_of_others=kind, kernel="exact")
        axes.plot(panel["path"].sel(coordinate=0).T, panel["path"].sel(coordinate=1).T)
    return figure


def _caption(data: xr.Dataset) -> str:
    return (
        "Paths of a prompt vector under normalized gradient descent from six starts. With equal "
        "scores of the other tokens all go to the direction of the best token; with unequal scores "
        "those from below go to the locally optimal direction of the second token."
    )


GLOBAL_AND_LOCAL = PaperFigure(
    name="max-margin/global-and-local",
    paper=MAX_MARGIN,
    statement="experiment: global and local directions of one sequence",
    summary="paths of a prompt vector to the global and to a local max-margin direction",
    published="trajectories from six starts in the plane, first 200 steps, arrows every 10 steps",
    sizes={
        "quick": {"seeds": 1, "steps": 1000},
        "small": {"seeds": 1, "steps": 1000},
        "paper": {"seeds": 1, "steps": 1000},
    },
    compute=_compute,
    draw=_draw,
    caption=_caption,
    readings=_readings,
    artifact="single precision with a constant added to the norm: paths stop, and cross basins",
)
