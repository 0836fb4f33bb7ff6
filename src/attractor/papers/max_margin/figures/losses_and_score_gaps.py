"""The loss and the gap between scores bend the way, and not the direction."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float

from attractor.geometry.vectors import cosines
from attractor.papers.figure import Artifact, Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.max_margin.data import EXACT, kernels, two_scores
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import PAGE
from attractor.plots.design.roles import ordered_line_styles
from attractor.plots.plane import frame, ray, trajectory
from attractor.results.paper import MAX_MARGIN
from attractor.tokens import Tokens
from attractor.training import normalized_gradient_descent, train

SCORES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 100.0)
"""Scores of the best token of the first sequence; that of the second is 1."""
LOSSES = ("linear", "logistic", "exponential")
SHOWN = 200


def _compute(request: Request) -> xr.Dataset:
    steps = request.settings["steps"]
    cases = [two_scores(score) for score in SCORES]
    tokens = Tokens(
        np.stack([case.tokens.keys for case in cases]),
        np.ones((len(SCORES), 2, 1)),
        np.ones((len(SCORES), 2)),
        values=np.stack([case.tokens.values for case in cases]),
    )
    request.uses("scores", tokens, cases[0].head)
    optimizers = normalized_gradient_descent(0.1), normalized_gradient_descent(0.1, eps=1e-9)
    ways = kernels(*optimizers, both=request.as_published)
    early = np.arange(0, SHOWN, 2)
    late = np.round(np.geomspace(SHOWN, steps, 60))
    recorded = np.unique(np.concatenate([early, late])).astype(int)
    paths = [
        [
            train(
                tokens,
                cases[0].head,
                way.optimizer,
                steps=steps,
                loss=loss,
                initial=np.zeros(2),
                parameterization="p",
                kernel=way.kernel,
                dtype=way.dtype,
                record=recorded,
                progress=request.progress,
            )
            .data["p"]
            .values[:, 0]
            for loss in LOSSES
        ]
        for way in ways
    ]
    return xr.Dataset(
        {
            "path": (("kernel", "loss", "score", "step", "coordinate"), np.array(paths, float)),
            "predicted_offset": (("loss", "score"), np.stack([_offsets(name) for name in LOSSES])),
            "solution": (("coordinate",), cases[0].solution().W[:, 0]),
        },
        {
            "kernel": [way.name for way in ways],
            "loss": list(LOSSES),
            "score": list(SCORES),
            "step": recorded,
        },
    )


def _offsets(loss: str) -> Float[np.ndarray, "score"]:
    """The offset that remains: ``log(C |l'(C)| / |l'(1)|) / 2`` for scores C and 1."""
    scores = np.array(SCORES)
    log_slopes = {
        "linear": np.zeros_like(scores),
        "logistic": -np.logaddexp(0, scores),
        "exponential": -scores,
    }[loss]
    return (np.log(scores) + log_slopes - log_slopes[0]) / 2


def _readings(data: xr.Dataset) -> Readings:
    exact = data["path"].sel(kernel=EXACT)
    last = exact.isel(step=-1)
    ends = cosines(last.values[..., None], data["solution"].values[:, None])
    off = np.abs(last.sel(coordinate=1) - data["predicted_offset"]).max()
    early = exact.sel(step=SHOWN, loss="logistic", score=100.0).values
    return Readings(
        at_least("least cosine to the max-margin direction, all curves", ends.min(), 0.99),
        at_most("largest distance of an offset from its prediction", off, 1e-4, "off"),
        at_most(
            f"logistic loss, score 100: cosine after {SHOWN} steps, on a detour",
            cosines(early[:, None], data["solution"].values[:, None]),
            0.8,
        ),
    )


def _draw(data: xr.Dataset) -> Figure:
    names = [str(name) for name in data["kernel"].values]
    alone = len(names) == 1
    figure = Figure(figsize=(PAGE, 3.1 if alone else 6.3))
    places = figure.subplots(len(names), len(LOSSES), squeeze=False, sharey=True)
    for row, name in zip(places, names, strict=True):
        for axes, loss in zip(row, LOSSES, strict=True):
            panel = data["path"].sel(kernel=name, loss=loss, step=slice(0, SHOWN))
            frame(axes, [[0.0, -15.0], [20.0, 5.0]])
            ray(axes, data["solution"].values, "globally_optimal", label="max-margin direction")
            for score, style in zip(SCORES, ordered_line_styles(len(SCORES)), strict=True):
                trajectory(
                    axes, panel.sel(score=score).values, "train_p", steps=panel["step"].values,
                    start=False, label=f"{score:g}", color=style["color"],
                )  # fmt: skip
            axes.set_title(f"{loss} loss" if alone else f"{name}: {loss}")
            axes.set_xlabel("$p_1$")
        row[0].set_ylabel("$p_2$")
    handles, labels = places[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=6, title_fontsize=8,
        title="score of the best token of the first sequence (of the second: 1)",
    )  # fmt: skip
    return figure


LOSSES_AND_SCORE_GAPS = Figures(MAX_MARGIN).figure(
    "losses-and-score-gaps",
    "the loss and the gap between scores bend the path, and not its direction",
    statement="experiment: losses and score gaps",
    published="paths for scores 1 to 10 and 100, correlation and logistic loss",
    sizes=by_size(seeds=1, steps=[10_000, 10_000, 100_000]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Paths of a prompt vector from the origin, 200 normalized steps of 0.1, for two sequences "
        "whose best tokens are (1, 1) and (1, -1). The linear loss bends toward the sequence with "
        "the larger score, the others away from it, where the loss is small already; all end along "
        "the max-margin direction (1, 0), at an offset. After {last[step]:,} steps every offset is "
        "within {off:.1e} of its prediction. The path for score 100 under the logistic or "
        "exponential loss looks settled along (1, -1) for some 330 steps before it turns."
    ),
    artifact=Artifact(
        "plain gradients in single precision: zero after 119 to 492 steps",
        "As published: plain gradients in single precision, with 1e-9 added to the norm; they "
        "vanish after 119 to 492 steps, and the path for score 100 stops on its detour.",
    ),
)
