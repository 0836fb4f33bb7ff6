"""Three contexts in the plane: embeddings, both limits of training, and training."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.corpora.linear import finite_part
from attractor.papers import Figures, Readings, Request, at_least, at_most, by_size
from attractor.plots import COLORS, SEQUENCES, panel_letters, panels_on_page, shared_legend
from attractor.plots.plane import HALO, frame, separating_line
from attractor_further.linear_next_token import PAPER
from attractor_further.linear_next_token.planar import planar_contexts
from attractor_further.linear_next_token.runs import ends, panels, solved, trained

_NAMES = "ABC"
_OPTIMIZERS = ("gradient descent", "normalized")
_RATIO = 0.85
_SAME = 1e-6
"""Distance below which two rows are one, relative to the norm of all."""
_DRAW = 3
"""The first of the draws whose embeddings point apart, so that rows are distinct in the plot."""


def _compute(request: Request) -> xr.Dataset:
    contexts, rejected = planar_contexts(seed=_DRAW + request.seed)
    request.uses(
        "contexts in the plane",
        embeddings=contexts.embeddings,
        probabilities=contexts.probabilities,
    )
    solution = solved(contexts)
    starts = {"seeds": request.seeds, "initial_scale": contexts.dimension**-0.5}
    data = trained(request, contexts, solution, _OPTIMIZERS, **starts)
    data["embeddings"] = (("context", "axis"), contexts.embeddings)
    data["probabilities"] = (("context", "token"), contexts.probabilities)
    data["direction"] = (("token", "axis"), solution.W)
    data["finite"] = (("token", "axis"), finite_part(contexts))
    names = {"context": list(_NAMES), "token": np.arange(1, contexts.classes + 1)}
    found = {"entropy": float(contexts.entropy), "rejected": rejected, "gap": solution.gap}
    return data.assign_coords(names).assign_attrs(found)


def _readings(data: xr.Dataset) -> Readings:
    first, last = data.isel(step=0), data.isel(step=-1)
    found = [at_most("relative gap of the max-margin solution", data.attrs["gap"], 1e-9)]
    for name in _OPTIMIZERS:
        start, stop = first.sel(optimizer=name), last.sel(optimizer=name)
        found += [
            at_most(f"{name}: largest loss above the entropy at the end, over that at the start",
                    (stop["excess_loss"] / start["excess_loss"]).max(), 0.1),
            at_least(f"{name}: smallest norm at the end, over that at the start",
                     (stop["norm"] / start["norm"]).min(), 5.0),
            at_least(f"{name}: smallest cosine of W less the finite part with the max-margin "
                     "solution",
                     stop["correlation_without_finite_part"].min(), 0.95),
            at_most(f"{name}: largest distance from the finite part at the end, over that at the "
                    "start",
                    (stop["finite_error"] / start["finite_error"]).max(), 0.2),
        ]  # fmt: skip
    rejected = int(data.attrs["rejected"])
    return Readings(
        *found,
        drawn=f"{rejected} draw{'s' if rejected != 1 else ''}",
        ends=ends(data, " of its norm"),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, _ = panels_on_page(4.4)
    figure.clear()  # for panels of two heights
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(1.1, 1))[:, 0]
    plane = list(above.subplots(1, 3))
    _embeddings(plane[0], data)
    _rows(plane[1], data, data["direction"].values, "rows of $W_{mm}$")
    _rows(plane[2], data, data["finite"].values, "rows of $W^*$", lines=False)
    curves = list(below.subplots(1, 4))
    panels(curves, data)
    panel_letters([*plane, *curves])
    shared_legend(figure, [curves[0], curves[2], plane[0]], columns=4)
    return figure


def _embeddings(axes: Axes, data: xr.Dataset) -> None:
    """Arrows to the embeddings, labeled with the tokens that follow."""
    embeddings = data["embeddings"].values
    frame(axes, 1.45 * embeddings, ratio=_RATIO)
    for place, h in enumerate(embeddings):
        color, _ = SEQUENCES[place]
        tokens = data["token"].values[data["probabilities"].values[place] > 0]
        label = f"context {_NAMES[place]}, followed by {', '.join(map(str, tokens))}"
        axes.plot(*np.transpose([np.zeros(2), h]), color=color, linewidth=1.2, label=label)
        axes.plot(*h, marker="o", color=color, markersize=4)
        offset = 9 * h / np.linalg.norm(h)
        axes.annotate(_NAMES[place], h, offset, textcoords="offset points", color=color,
                      ha="center", va="center")  # fmt: skip
    axes.set_title("embeddings")


def _rows(
    axes: Axes,
    data: xr.Dataset,
    rows: Float[np.ndarray, "token 2"],
    title: str,
    *,
    lines: bool = True,
) -> None:
    """The rows as numbered points, and lines on which a context has its tokens."""
    frame(axes, rows, ratio=_RATIO, margin=0.14)
    if lines:
        for place, h in enumerate(data["embeddings"].values):
            anchor = data["probabilities"].values[place].argmax()
            color, _ = SEQUENCES[place]
            line = separating_line(axes, h, rows[anchor], "predicted")
            line.set(color=color, linestyle="-", linewidth=0.9)
    for row in rows:
        here = np.linalg.norm(rows - row, axis=1) < _SAME * np.linalg.norm(rows)
        names = ", ".join(map(str, data["token"].values[here]))
        axes.plot(*row, marker="o", color=COLORS["blue"], markersize=4, zorder=4)
        axes.annotate(names, row, (4, 4), textcoords="offset points", zorder=5, path_effects=HALO)
    axes.set_title(title)


LINEAR_TWO_DIMENSIONAL = Figures(PAPER).figure(
    "two-dimensional",
    "three contexts in the plane: embeddings, both limits of a linear decoder, training",
    statement="experiment: linear decoder in two dimensions",
    published="embeddings, rows of both limits, and curves of gradient descent of one run",
    sizes=by_size(seeds=[10, 10, 20], steps=[10_000, 100_000, 1_000_000]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Three contexts in the plane and five tokens: one token follows one context, the others "
        "two each, with random probabilities of entropy {attrs[entropy]:.4f} ({drawn} before them "
        "that could not be separated). Top: embeddings; rows of the max-margin solution, in which "
        "the tokens of a context lie on a line across its embedding and all others behind it; rows "
        "of the finite part. Bottom: {last[step]:,} steps of gradient descent with learning rate "
        ".5 and of normalized steps of .01, from {sizes[seed]} random starts (medians, and 10th to "
        "90th percentiles). Means at the end: {ends}."
    ),
)
