"""The products that trained heads have learned, beside those of the best heads there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_most, by_size
from attractor.papers.large_prompt.official import TAKES, official_runs, optimizer_of, path_of
from attractor.papers.paper import LARGE_PROMPT
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
    data = xr.concat(trained, "run")
    labels = [*(f"x{number}" for number in range(1, task.dimension + 1)), "y"]
    data = data.assign_coords(row=labels, column=labels[:-1])
    product = data["scores"].isel(row=slice(None, -1))
    size = _norm(product)
    return data.assign(
        size=size / size.sel(head="limit"),
        to_best=_norm(product - product.sel(head="best")) / size.sel(head="best"),
        to_limit=_norm(product - product.sel(head="limit")) / size.sel(head="limit"),
        label_in_scores=_norm(data["scores"].sel(row=["y"])) / _norm(data["scores"]),
        inputs_in_values=np.sqrt((data["values"].isel(row=slice(None, -1)) ** 2).sum("row")),
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
    return np.sqrt((matrix**2).sum(_ENTRIES))


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
    off = growing.isel(run=[not word.startswith("on the") for word in data["verdict"].values])
    for kind in np.unique(off["attention"]):
        ours = off.isel(run=off["attention"].values == kind).sortby("length")
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
        norm=float(_norm(limit["scores"].isel(run=0, row=slice(None, -1)))),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 4.7))
    kinds = [kind for kind in ATTENTIONS if kind in data["attention"].values]
    lengths = np.unique(data["length"].values).tolist()
    # Two maps for each length with a gap behind them, and the limit at the end.
    grid = figure.add_gridspec(
        2 * len(kinds), 3 * len(lengths) + 1, height_ratios=[6, 1.6] * len(kinds),
        width_ratios=[*([1, 1, 0.12] * len(lengths)), 1], wspace=0.02, hspace=0.02,
    )  # fmt: skip
    for place, kind in enumerate(kinds):
        for column, length in enumerate(lengths):
            chosen = (data["attention"].values == kind) & (data["length"].values == length)
            if not chosen.any():
                continue
            run = data.isel(run=int(np.flatnonzero(chosen)[0]))
            words = "plateau" if str(run["verdict"].values).startswith("on the") else "trained"
            shown = {"trained": f"{words}", "best": "best"}
            last = {"limit": "infinite"} if column == len(lengths) - 1 else {}
            for number, (head, title) in enumerate({**shown, **last}.items()):
                at = 3 * column + number + (head == "limit")
                panels = [figure.add_subplot(grid[2 * place + part, at]) for part in (0, 1)]
                _maps(panels[0], panels[1], run.sel(head=head), named=at == 0)
                panels[0].set_title(title, loc="center", fontsize=7, pad=2)
                if head == "trained":
                    panels[0].annotate(
                        f"{kind}, $L$ = {length:,}", (1.05, 1), (0, 15), ha="center",
                        xycoords="axes fraction", textcoords="offset points", fontsize=8,
                    )  # fmt: skip
                panels[1].set_xlabel(_distances(run.sel(head=head), head), fontsize=6.5, labelpad=2)
    scale = ScalarMappable(Normalize(-1, 1), _COLORS)
    bar = figure.colorbar(scale, ax=figure.axes, location="bottom", shrink=0.45, aspect=40, pad=0.02)
    bar.set_label("entry, over the largest of its matrix")
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    return figure


def _maps(scores: Axes, values: Axes, head: xr.Dataset, *, named: bool) -> None:
    """The matrix of scores over the row of values."""
    for axes, matrix in ((scores, head["scores"].values), (values, head["values"].values[None])):
        largest = np.abs(matrix).max()
        axes.imshow(matrix / (largest or 1), cmap=_COLORS, vmin=-1, vmax=1)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(visible=True, linewidth=0.4, color="#999999")
        axes.grid(False)
    scores.axhline(len(head["column"]) - 0.5, color="#999999", linewidth=0.4)
    if named:
        look: dict[str, Any] = {"fontsize": 6, "length": 0}
        names = [f"${label[0]}_{label[1]}$" if len(label) > 1 else f"${label}$"
                 for label in head["row"].values.tolist()]  # fmt: skip
        scores.set_yticks(range(len(names)), names)
        values.set_yticks([0], ["$(v, b)$"])
        for axes in (scores, values):
            axes.tick_params(axis="y", labelsize=look["fontsize"], length=look["length"], pad=1)


def _distances(head: xr.Dataset, name: str) -> str:
    """Size and distances under a pair of maps."""
    lines = [f"size {float(head['size']):.2f}"]
    if name == "trained":
        lines.append(f"off best {float(head['to_best']):.2f}")
    if name != "limit":
        lines.append(f"off limit {float(head['to_limit']):.2f}")
    return "\n".join(lines)


TRAINED_PRODUCTS = Figures(LARGE_PROMPT).figure(
    "trained-products",
    "products that trained softmax and linear heads have learned, beside those of the best heads",
    statement="experiment: in-context linear regression",
    published="helpers of its code draw products of trained heads; a figure was not seen",
    sizes=by_size(
        seeds=1,
        steps=[1000, 20_000, 300_000],
        optimizer=["Adam", "as published", "as published"],
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
        "are off the best and off the limit by: {distances}. On short prompts best and trained "
        "products are small and near a multiple of the identity; they grow into the inverse "
        "covariance as prompts grow."
    ),
)
