"""Separating lines of trained attention in the plane, for training of W and of (K, Q)."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.papers.figure import Artifact, Figures, Readings, at_least
from attractor.papers.transformers_as_svms.data import two_sequences_of_five
from attractor.papers.transformers_as_svms.descent import ROLES
from attractor.papers.transformers_as_svms.plane_paths import (
    SIZES,
    draw_paths,
    draw_shortfall,
    end_readings,
    plane_paths,
)
from attractor.plots.design.look import panels_on_page
from attractor.plots.design.pairs import shared_legend
from attractor.plots.design.roles import DOTTED, SEQUENCES
from attractor.plots.plane import (
    frame,
    mid_margin_point,
    optimal_token_handle,
    plane_tokens,
    separating_line,
)
from attractor.results.paper import TRANSFORMERS_AS_SVMS

_NEAR = np.array([[-1.6, -1.7], [1.8, 1.7]])
_FAR = np.array([[-12.0, -36.0], [60.0, 36.0]])
"""Corners of what the upper and the lower panels show."""
_TITLES = {"W": "training $W$", "KQ": "training $(K, Q)$"}


def _draw(data: xr.Dataset) -> Figure:
    figure, panels = panels_on_page(5.3, 2, 3)
    for column, (name, arrows) in enumerate((("W", 100), ("KQ", 20))):
        near, far = panels[:, column]
        frame(near, _NEAR, margin=0)
        frame(far, _FAR, margin=0)
        draw_paths(near, data, name, 4, names=True)
        draw_paths(far, data, name, arrows, names=True)
        _separated_tokens(near, data, name)
        near.set_title(_TITLES[name])
    draw_shortfall(panels[0, 2], data, "correlation")
    draw_shortfall(panels[1, 2], data, "margin_ratio")
    panels[0, 2].set_title("distance from the solution")
    shared_legend(figure, [panels[0, 0], panels[0, 1]], columns=3, handles=[optimal_token_handle()])
    return figure


def _separated_tokens(axes: Axes, data: xr.Dataset, name: str) -> None:
    """Tokens, with the line of every sequence halfway between its optimal token and the rest."""
    keys, optimal = data["keys"].values, data["optimal"].values
    solution = data["solution"].sel(parameterization=name).values
    for i, query in enumerate(data["queries"].values):
        normal = solution @ query
        middle = mid_margin_point(keys[i], normal, int(optimal[i]))
        style = {"color": SEQUENCES[i][0], "linestyle": DOTTED}
        label = f"separating line, $i = {i + 1}$"
        separating_line(axes, normal, middle, ROLES[name][0], label=label, **style)
    labels = [f"other tokens, $i = {i + 1}$" for i in range(len(keys))]
    plane_tokens(axes, keys, optimal=optimal, labels=labels)


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(step=-1)
    least, mean = last["margin_ratio"].sel(kernel="exact").min("start"), last.mean("start")
    return Readings(
        *end_readings(data),
        at_least(
            "W: least margin at the end, relative to the largest possible in the Frobenius norm",
            least.sel(parameterization="W"),
            0.99,
        ),
        at_least("(K, Q): the same in the nuclear norm", least.sel(parameterization="KQ"), 0.99),
        correlation=mean["correlation"].sel(kernel="exact"),
        ratio=mean["margin_ratio"],
        norm=mean["norm"],
    )


SEPARATING_LINES = Figures(TRANSFORMERS_AS_SVMS).figure(
    "separating-lines",
    "lines that separate the optimal tokens from the others, and paths orthogonal to them",
    statement="experiment: attention separates optimal tokens in the plane",
    published="rays W z_i, lines through the middle of the margin orthogonal to them, first steps",
    sizes=SIZES,
    compute=lambda request: plane_paths(two_sequences_of_five(), request),
    draw=_draw,
    readings=_readings,
    caption=(
        "Two sequences of five tokens in the plane. Above: the rays W z_i of the solutions, the "
        "lines orthogonal to them halfway between each optimal token and the nearest other one, "
        "and the first steps of W(k) z_i, an arrow every 4 steps; below: the same paths farther "
        "out, an arrow every 100 steps of W and every 20 of (K, Q). Left: training W from zero and "
        "the Frobenius solution; middle: training keys and queries from a small start and the "
        "nuclear solution. After {last[step]} normalized steps of length 0.1 W has correlation "
        "{correlation[W]:.5f} with its solution and {ratio[exact][W]:.2%} of the largest margin, "
        "(K, Q) {correlation[KQ]:.5f} and {ratio[exact][KQ]:.2%}."
    ),
    artifact=Artifact(
        "gradients that cancel, eps and a penalty of 2.2e-16: training stalls on the way",
        "With circles: as published. Gradients that cancel in a saturated softmax, with 2.2e-16 "
        "added to the norms that divide, stall W at norm {norm[as published][W]:.0f} (exact: "
        "{norm[exact][W]:.0f}) and (K, Q), by its penalty of 2.2e-16 too, at "
        "{norm[as published][KQ]:.0f} (exact: {norm[exact][KQ]:.0f}), with "
        "{ratio[as published][W]:.2%} and {ratio[as published][KQ]:.2%} of the largest margin.",
    ),
)
