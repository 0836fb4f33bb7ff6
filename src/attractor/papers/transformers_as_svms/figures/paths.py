"""Paths of ``W(k) z_i`` in the plane, for training of W and of keys and queries."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.papers.figure import Artifact, Figures, Readings
from attractor.papers.transformers_as_svms.data import two_sequences_of_three
from attractor.papers.transformers_as_svms.plane_paths import (
    SIZES,
    draw_paths,
    draw_shortfall,
    end_readings,
    plane_paths,
)
from attractor.plots.design.look import panels_on_page
from attractor.plots.design.pairs import shared_legend
from attractor.plots.plane import frame, optimal_token_handle, plane_tokens
from attractor.results.paper import TRANSFORMERS_AS_SVMS

_NEAR = np.array([[-1.9, -1.9], [1.9, 1.9]])
_FAR = np.array([[-30.0, -100.0], [40.0, 100.0]])
"""Corners of what the panels show; the second is what the published figure shows."""


def _draw(data: xr.Dataset) -> Figure:
    figure, (near, far, distance) = panels_on_page(2.75, 1, 3)
    frame(near, _NEAR, margin=0)
    frame(far, _FAR, equal=False, margin=0, ratio=1)
    for name, arrows in (("W", 200), ("KQ", 20)):
        draw_paths(near, data, name, 5)
        draw_paths(far, data, name, arrows)
    plane_tokens(near, data["keys"].values, optimal=data["optimal"].values)
    near.set_title("first steps, beside the tokens")
    far.set_title("far out")
    for axes, right in ((near, 0.66), (far, 0.76)):
        for number, place, side in ((1, (right, 0.97), "top"), (2, (0.98 - right, 0.03), "bottom")):
            text = f"$i = {number}$"
            axes.text(*place, text, transform=axes.transAxes, ha="center", va=side)
    draw_shortfall(distance, data, "correlation")
    distance.set_title("distance in direction")
    shared_legend(figure, [near], columns=3, handles=[optimal_token_handle()])
    return figure


def _readings(data: xr.Dataset) -> Readings:
    last, solutions = data.isel(step=-1, start=0), data["solution"].values
    lengths = np.linalg.norm(solutions, axis=(1, 2))
    return Readings(
        *end_readings(data),
        cosine=(solutions[0] * solutions[1]).sum() / np.prod(lengths),
        correlation=last["correlation"].sel(kernel="exact"),
        norm=last["norm"],
    )


PATHS = Figures(TRANSFORMERS_AS_SVMS).figure(
    "paths",
    "paths of W(k) z_i, for training of W and of (K, Q), with the solutions they go to",
    statement="experiment: paths of gradient descent in the plane",
    published="paths of 2000 steps with arrows, rays to both solutions, tokens",
    sizes=SIZES,
    compute=lambda request: plane_paths(two_sequences_of_three(), request),
    draw=_draw,
    readings=_readings,
    caption=(
        "Two sequences of three tokens in the plane. Left and middle: the vectors W(k) z_i of "
        "training W from zero (solid), and K(k) Q(k)^T z_i of training keys and queries from a "
        "small start (dashed), by {last[step]} normalized steps of length 0.1, with rays to the "
        "solutions in the Frobenius norm (solid) and in the nuclear norm (dashed), whose own "
        "correlation is {cosine:.3f}. Arrows: every 5 steps on the left; every 200 steps of W and "
        "20 of (K, Q) in the middle. W ends with correlation {correlation[W]:.5f} to the Frobenius "
        "solution, (K, Q) with {correlation[KQ]:.5f} to the nuclear one."
    ),
    artifact=Artifact(
        "a penalty of 2.2e-16 on K and Q, at which training of (K, Q) converges",
        "Right, with circles: as published, with 2.2e-16 added to the norms that divide and a "
        "penalty of 2.2e-16 (||K||^2 + ||Q||^2) in the loss, which lets (K, Q) converge at "
        "norm {norm[as published][KQ]:.0f}, where exact descent without it has gone on to "
        "{norm[exact][KQ]:.0f}; nothing saturates in W (norm {norm[as published][W]:.0f}), whose "
        "two curves coincide.",
    ),
)
