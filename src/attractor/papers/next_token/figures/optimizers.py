"""Other ways to train the same predictor: plain gradient descent, and both layers at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.next_token.corpus import Corpus
from attractor.next_token.two_stage import train_jointly, train_two_stages
from attractor.next_token.two_stage_measures import (
    attention_solutions,
    direction_distance,
    feed_forward_solutions,
)
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.next_token.runs import corpora, log_spaced
from attractor.papers.paper import NEXT_TOKEN
from attractor.plots._style import COLORS, panels_on_page
from attractor.plots.bands import band
from attractor.training import gradient_descent, normalized_gradient_descent

_LOOKS: dict[str, dict[str, Any]] = {
    "normalized": {"color": COLORS["blue"], "linestyle": "-"},
    "plain": {"color": COLORS["orange"], "linestyle": (0, (4, 1.6))},
    "both at once": {"color": COLORS["green"], "linestyle": (0, (5, 1.5, 1, 1.5))},
}
_LABELS = {
    "normalized": "two stages, normalized descent",
    "plain": "two stages, plain descent",
    "both at once": "both layers at once, normalized",
}


def _compute(request: Request) -> xr.Dataset:
    settings = request.settings
    drawn = corpora(request.seeds, request.seed, vocabulary=settings["vocabulary"])
    request.uses("optimizers", **{f"tokens_{i}": c.tokens for i, c in enumerate(drawn)})
    recorded = log_spaced(settings["steps"], 50)
    attention, feed_forward = _trained(drawn, recorded, request)
    return xr.Dataset(
        {
            "distance": (("way", "instance", "step"), np.stack([a[0] for a in attention])),
            "norm": (("way", "instance", "step"), np.stack([a[1] for a in attention])),
            "feed_forward_distance": (("instance", "step"), feed_forward),
        },
        {"way": list(_LABELS), "step": recorded},
        {"learning_rate": settings["learning_rate"], "vocabulary": settings["vocabulary"]},
    )


def _trained(
    drawn: Sequence[Corpus], recorded: np.ndarray, request: Request
) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Distance and norm of attention for each way to train; distance of the layer beside it."""
    settings = request.settings
    size, steps = settings["vocabulary"], settings["steps"]
    first, second = (normalized_gradient_descent(rate / size**0.5) for rate in (0.2, 0.05))
    plain = gradient_descent(settings["learning_rate"])
    found = []
    for name, later in (("normalized", second), ("plain", plain)):
        run = train_two_stages(
            drawn,
            steps=(900, steps),
            optimizers=(first, later),
            record=np.append(recorded, 900),
            checkpoint=request.checkpoint(name),
            progress=request.progress,
        )
        found.append(_sized(run.attention.data, recorded, targets := attention_solutions(run)))
    joint = train_jointly(
        drawn, second, steps=steps, record=recorded, progress=request.progress
    ).data
    found.append(_sized(joint, recorded, targets))
    outputs = joint["head_weight"].isel(seed=0).sel(step=recorded).values
    aims = np.stack([solution.W for solution in feed_forward_solutions(run)])[:, None]
    return found, direction_distance(outputs, aims)


def _sized(
    data: xr.Dataset, recorded: np.ndarray, solutions: Sequence[Any]
) -> tuple[np.ndarray, np.ndarray]:
    W = data["W"].isel(seed=0).sel(step=recorded).values
    aims = np.stack([solution.W for solution in solutions])[:, None]
    return direction_distance(W, aims), np.linalg.norm(W, axis=(-1, -2))


def _growth(data: xr.Dataset) -> float:
    """Growth of the norm over a decade of steps of plain descent, late over early."""
    norm = data["norm"].sel(way="plain").median("instance")
    last = int(data["step"].max())
    marks = norm.sel(step=[last // 100, last // 10, last], method="nearest").values
    return float((marks[2] - marks[1]) / (marks[1] - marks[0]))


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(step=-1)
    return Readings(
        at_most("normalized descent: largest 1 - cos in the end",
                last["distance"].sel(way="normalized").max(), 5e-3),
        at_most("plain descent: largest 1 - cos in the end",
                last["distance"].sel(way="plain").max(), 0.1),
        at_most("plain descent: growth of the norm in the last decade of steps over that before",
                _growth(data), 3.0),
        at_least("normalized descent: norm over that of plain descent in the end",
                 (last["norm"].sel(way="normalized") / last["norm"].sel(way="plain")).min(), 2.0),
        at_most("both at once: largest 1 - cos of attention in the end",
                last["distance"].sel(way="both at once").max(), 0.1),
        at_most("both at once: largest 1 - cos of the feed-forward layer in the end",
                last["feed_forward_distance"].max(), 0.1),
        distance=last["distance"].median("instance"),
        feed_forward_distance=last["feed_forward_distance"].median(),
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure, (left, right) = panels_on_page(2.9, 1, 2)
    for axes, name, label in (
        (left, "distance", r"$1 - \cos(W_{kq}, W_{kq}^*)$"),
        (right, "norm", r"$\|W_{kq}\|$"),
    ):
        axes.set(xscale="log", yscale="log", xlabel="step of stage 2", ylabel=label)
        for way, words in _LABELS.items():
            band(axes, data[name].sel(way=way), "step", label=words, look=_LOOKS[way])
    right.set_ylim(1e-3, None)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=len(_LABELS))
    return figure


OPTIMIZERS = Figures(NEXT_TOKEN).figure(
    "optimizers",
    "plain descent, and both layers at once, against two-stage normalized descent",
    statement="two-stage training: the optimizer, and training both layers at once",
    published="none",
    sizes=by_size(
        seeds=[10, 20, 20],
        vocabulary=[10, 20, 20],
        steps=[3000, 20_000, 100_000],
        learning_rate=2.0,
    ),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "The same {sizes[instance]} corpora trained in other ways, from zero: median, with a band "
        "from the 10th to the 90th percentile. Plain gradient descent (learning rate "
        "{attrs[learning_rate]:g}) lets the norm grow like the logarithm of the step and turns to "
        "the limit as slowly. Both layers at once, with the step size of attention, go the same "
        "way, though no theory covers it. In the end 1 - cos is {distance[normalized]:.1e}, "
        "{distance[plain]:.1e} and {distance[both at once]:.1e}; that of the feed-forward layer "
        "trained beside attention is {feed_forward_distance:.1e}."
    ),
)
