"""The products that trained heads have learned, beside those of the best heads there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from attractor.papers.figure import Figures, Readings, Request, at_most, by_size
from attractor.papers.large_prompt.official import (
    TAKES,
    TRAINED,
    official_runs,
    optimizer_of,
    path_of,
)
from attractor.papers.paper import LARGE_PROMPT
from attractor.plots._figure import Figure
from attractor.plots._style import PAGE
from attractor.prompt.regression import (
    Blocks,
    RegressionTask,
    softmax_optimum,
    trained_limit,
)
from attractor.prompt.regression.runs import ATTENTIONS

_LENGTHS = (10, 100, 1000)
_LABEL_SHARE = 0.3
"""Share of labels in scores, and of inputs in values, that a settled head keeps at most."""
_ENTRIES = ("row", "column")
_COLORS = "RdBu_r"
_ENDINGS = {
    "settled": "trained",
    "still falling": "unfinished",
    "on the plateau": "stuck",
    "diverged": "diverged",
}
"""How training ended, in the title of a trained head."""


def _compute(request: Request) -> xr.Dataset:
    runs = official_runs(request, _LENGTHS)
    task = runs.task
    limit = trained_limit(task).blocks
    trained = []
    for run in runs.runs:
        kind, length = run.settings["attention"], int(run.length)
        ours = Blocks(*(block[0, 0] for block in run.blocks()))
        best = _best(task, kind, length)
        every = np.stack([_scores(head) for head in (ours, best, limit)])
        rows = np.stack([_values(head) for head in (ours, best, limit)])
        trained.append(
            xr.Dataset(
                {
                    "scores": (("head", *_ENTRIES), every),
                    "values": (("head", "row"), rows),
                    "verdict": run.verdict,
                },
                {"head": ["trained", "best", "limit"], "attention": kind, "length": length},
            )
        )
    data = xr.concat(trained, "run", data_vars="all", coords=["attention", "length"])
    labels = [*(f"x{number}" for number in range(1, task.dimension + 1)), "y"]
    data = data.assign_coords(row=labels, column=labels[:-1])
    product = data["scores"].isel(row=slice(None, -1))
    size = _norm(product)
    return data.assign(
        size=size / size.sel(head="limit"),
        to_best=_norm(product - product.sel(head="best")) / size.sel(head="best"),
        to_limit=_norm(product - product.sel(head="limit")) / size.sel(head="limit"),
        label_in_scores=_norm(data["scores"].sel(row=["y"])) / _norm(data["scores"]),
        inputs_in_values=(data["values"].isel(row=slice(None, -1)) ** 2).sum("row") ** 0.5,
    ).assign_attrs(
        path=path_of(runs), steps=int(runs.runs[0].steps[-1]), optimizer=optimizer_of(runs)
    )


def _best(task: RegressionTask, kind: str, length: int) -> Blocks:
    """The best head of a kind for prompts of a length."""
    if kind == "softmax":
        return softmax_optimum(task, length).blocks
    return trained_limit(task, length).blocks


def _scale(head: Blocks) -> float:
    """Norm of the value row, with the sign of what it gives to labels."""
    norm = float(np.hypot(np.linalg.norm(head.value_inputs), head.value_label))
    return norm if head.value_label >= 0 else -norm


def _scores(head: Blocks) -> Float[np.ndarray, "d+1 d"]:
    """``[A; c^T]`` times the scale of the value row: it is ``b A`` where only labels are summed.

    Heads with the score matrix over some number, and the value row times it, agree in it.
    """
    return _scale(head) * np.vstack([head.key_query, head.label_row])


def _values(head: Blocks) -> Float[np.ndarray, "d+1"]:
    """The value row ``(v, b)``, of norm one and with positive ``b``."""
    return np.append(head.value_inputs, head.value_label) / _scale(head)


def _norm(matrix: xr.DataArray) -> xr.DataArray:
    """The Frobenius norm."""
    return (matrix**2).sum(_ENTRIES) ** 0.5


def _readings(data: xr.Dataset) -> Readings:
    trained, limit = data.sel(head="trained"), data.sel(head="limit")
    product = data["scores"].isel(row=slice(None, -1))
    off_best = _norm(product.sel(head="trained") - product.sel(head="best"))
    nearer = off_best / _norm(product.sel(head="trained") - product.sel(head="limit"))
    growing = trained.assign(off=off_best, nearer=nearer)
    found = [
        at_most("size of the largest product of a best head, that on infinite prompts being 1",
                data["size"].sel(head="best").max(), 1.0),
    ]  # fmt: skip
    settled = growing.isel(run=data["verdict"].values == "settled")
    for kind in np.unique(settled["attention"]):
        ours = settled.isel(run=settled["attention"].values == kind).sortby("length")
        shortest = ours.isel(run=0)
        found += [
            at_most(f"{kind}, {int(shortest['length'])} tokens: distance from the best head over "
                    "that from the limit", shortest["nearer"], 1.0),
            at_most(f"{kind}: largest share of labels in scores", ours["label_in_scores"].max(),
                    _LABEL_SHARE),
            at_most(f"{kind}: largest share of inputs in values", ours["inputs_in_values"].max(),
                    _LABEL_SHARE),
        ]  # fmt: skip
        distances = ours["to_limit"].values
        if len(distances) > 1:
            steps = distances[1:] / distances[:-1]
            found.append(at_most(f"{kind}: distance from the limit over that of shorter prompts",
                                 steps.max(), 1.0))  # fmt: skip
    return Readings(
        *found,
        distances="; ".join(
            f"{one['attention'].values} {int(one['length']):,} tokens "
            f"{float(one['to_best']):.2f} and {float(one['to_limit']):.2f}"
            for number in range(trained.sizes["run"])
            for one in [trained.isel(run=number)]
        ),
        settled=settled.sizes["run"],
        runs=trained.sizes["run"],
        norm=float(_norm(limit["scores"].isel(run=0, row=slice(None, -1)))),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 4.3))
    kinds = [kind for kind in ATTENTIONS if kind in data["attention"].values]
    lengths = np.unique(data["length"].values).tolist()
    # Two maps for each length with a gap behind them, and the limit at the end.
    grid = figure.add_gridspec(
        len(kinds), 3 * len(lengths) + 1, width_ratios=[*([1, 1, 0.15] * len(lengths)), 1]
    )
    for run in range(data.sizes["run"]):
        one = data.isel(run=run)
        kind, length = str(one["attention"].values), int(one["length"])
        row, column = kinds.index(kind), 3 * lengths.index(length)
        how = _ENDINGS[str(one["verdict"].values).split(":")[0]]
        for number, head in enumerate(("trained", "best")):
            axes = figure.add_subplot(grid[row, column + number])
            _map(axes, one.sel(head=head), named=column + number == 0)
            words = how if head == "trained" else "best"
            axes.set_title(f"{words} {kind}\n$L$ = {length:,}", loc="center", fontsize=7, pad=3)
            axes.set_xlabel(_distances(one.sel(head=head), head), fontsize=6.5, labelpad=2)
    for row in range(len(kinds)):
        axes = figure.add_subplot(grid[row, -1])
        _map(axes, data.isel(run=0).sel(head="limit"), named=False)
        axes.set_title("limit\n$L$ = $\\infty$", loc="center", fontsize=7, pad=3)
        axes.set_xlabel("size 1", fontsize=6.5, labelpad=2)
    scale = ScalarMappable(Normalize(-1, 1), _COLORS)
    bar = figure.colorbar(scale, ax=figure.axes, location="bottom", shrink=0.4, aspect=40)
    bar.set_label("entry, over the largest of its matrix")
    bar.set_ticks([-1, -0.5, 0, 0.5, 1])
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    return figure


def _map(axes: Axes, head: xr.Dataset, *, named: bool) -> None:
    """The matrix of scores over the row of values, each over its largest entry."""
    scores, values = (
        matrix / (np.abs(matrix).max() or 1)
        for matrix in (head["scores"].values, head["values"].values)
    )
    rows, columns = scores.shape
    cells = np.full((rows + 2, columns + 1), np.nan)
    cells[:rows, :columns], cells[-1] = scores, values
    axes.imshow(cells, cmap=_COLORS, vmin=-1, vmax=1)
    frame: dict[str, Any] = {"fill": False, "linewidth": 0.4, "edgecolor": "#888888"}
    for corner, width, height in (
        ((-0.5, -0.5), columns, rows - 1),
        ((-0.5, rows - 1.5), columns, 1),
        ((-0.5, rows + 0.5), columns + 1, 1),
    ):
        axes.add_patch(Rectangle(corner, width, height, **frame, clip_on=False))
    axes.spines[:].set_visible(False)
    axes.grid(False)
    axes.set(xticks=[], yticks=[])
    if named:
        names = [f"${label[0]}_{label[1:]}$" if label != "y" else "$y$"
                 for label in head["row"].values.tolist()]  # fmt: skip
        axes.set_yticks([*range(rows), rows + 1], [*names, "$(v, b)$"])
        axes.tick_params(axis="y", labelsize=6.5, length=0, pad=1)


def _distances(head: xr.Dataset, name: str) -> str:
    """Size and distances under a pair of maps."""
    lines = [f"size {float(head['size']):.2f}", f"off limit {float(head['to_limit']):.2f}"]
    if name == "trained":
        lines.append(f"off best {float(head['to_best']):.2f}")
    return "\n".join(lines)


TRAINED_PRODUCTS = Figures(LARGE_PROMPT).figure(
    "trained-products",
    "products that trained softmax and linear heads have learned, beside those of the best heads",
    statement="experiment: in-context linear regression",
    published="helpers of its code draw products of trained heads; a figure was not seen",
    sizes=by_size(
        **TRAINED,
    ),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    takes=TAKES,
    caption=(
        "Products of heads trained by {attrs[optimizer]} for {attrs[steps]:,} steps on data "
        "{attrs[path]}, of the best head of the same kind and length, and of the head that is "
        "perfect on infinite prompts. Large maps: how the five inputs of the query (columns) score "
        "inputs and label of a token (rows), the matrix [A; c^T] times the norm of the value row; "
        "without c and v that is b A, which no rescaling of A and b changes, and on infinite "
        "prompts the inverse covariance of the inputs, of norm {norm:.2f}. Small maps: the value "
        "row (v, b). Colors show shapes: every matrix is over its largest entry. Sizes are norms "
        "of b A over that on infinite prompts, distances relative Frobenius norms. Trained heads "
        "are off the best and off the limit by: {distances}; {settled} of {runs} had settled, "
        "the others are marked as unfinished or stuck on the plateau of the start. On short "
        "prompts the best products are small and near a multiple of the identity; they grow into "
        "the inverse covariance as prompts grow."
    ),
)
