"""Predictions on sentences that are not in the corpus."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure

from attractor.next_token.orders import partial_orders
from attractor.next_token.two_stage_trajectory import TwoStageTrajectory
from attractor.next_token.unseen import UnseenKind, draw_unseen, log_predictions
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.next_token.runs import corpora, log_spaced, train_drawn
from attractor.papers.paper import NEXT_TOKEN
from attractor.plots._style import panels_on_page
from attractor.plots.bands import band
from attractor.plots.roles import ordered_line_styles

_KINDS = {
    "non-comparable": UnseenKind.NON_COMPARABLE,
    "optimal and non-comparable": UnseenKind.OPTIMAL,
}
_LENGTHS = (0, 4, 8, 16)
"""Numbers of tokens of a sentence; 0 for sentences like those of the corpus."""
_DASHES = ("-", (0, (4, 1.6)), (0, (1, 1.4)), (0, (5, 1.5, 1, 1.5)))


def _compute(request: Request) -> xr.Dataset:
    settings = request.settings
    drawn = corpora(request.seeds, request.seed, vocabulary=settings["vocabulary"])
    record = np.union1d(log_spaced(settings["steps"], 20), settings["shown"])
    steps = (900, settings["steps"])
    run = train_drawn(request, drawn, "generalization", steps=steps, record=record)
    drawing = settings["sentences"], request.seed
    each = np.array(
        [
            [_measured(run, kind, length, *drawing) for length in _LENGTHS]
            for kind in _KINDS.values()
        ]
    )
    along = ("kind", "length", "instance", "step")
    return xr.Dataset(
        {
            "accuracy": (along, each[:, :, 0]),
            "probability": (along, each[:, :, 1]),
            "tie": (("instance", "step"), _measured(run, UnseenKind.TIE, 0, *drawing)[2]),
        },
        {"kind": list(_KINDS), "length": list(_LENGTHS), "step": run.attention.steps},
        {"shown": list(settings["shown"]), "sentences": settings["sentences"]},
    )


def _measured(
    run: TwoStageTrajectory, kind: UnseenKind, length: int, count: int, seed: int
) -> Float[np.ndarray, "3 instance step"]:
    """Accuracy, probability of the predicted token, and gap of the top two."""
    found = [_of_corpus(run, i, kind, length, count, seed) for i in range(len(run.corpora))]
    return np.stack(found, axis=1)


def _of_corpus(
    run: TwoStageTrajectory, instance: int, kind: UnseenKind, length: int, count: int, seed: int
) -> Float[np.ndarray, "3 step"]:
    known = run.collocations[instance]
    orders = partial_orders(run.corpora[instance], known)
    unseen = draw_unseen(
        orders, known, kind, count=count, length=length or None, seed=seed + instance
    )
    if not len(unseen.contexts):
        return np.full((3, len(run.attention.steps)), np.nan)
    logs = np.stack(
        [
            log_predictions(unseen.contexts, run.embeddings, run.feed_forward.W()[instance, 0], W)
            for W in run.attention.data["W"].values[instance, 0]
        ]
    )
    right = logs.argmax(-1) == unseen.predicted
    own = logs[:, np.arange(len(unseen.predicted)), np.maximum(unseen.predicted, 0)]
    top = np.partition(logs, -2, axis=-1)
    gap = (top[..., -1] - top[..., -2]).max(-1)
    return np.stack([right.mean(-1), np.exp(own).mean(-1), gap])


def _readings(data: xr.Dataset) -> Readings:
    early, late = data.attrs["shown"][0], data.attrs["shown"][-1]
    alike = data["accuracy"].sel(length=0, step=early)
    shown = data.sel(length=0, step=list(data.attrs["shown"])).mean("instance")
    ends = "; ".join(
        f"{kind}: accuracy {', '.join(f'{share:.0%}' for share in one['accuracy'].values)}, mean "
        f"probability {', '.join(f'{share:.2f}' for share in one['probability'].values)}"
        for kind in _KINDS
        for one in [shown.sel(kind=kind)]
    )
    return Readings(
        at_least(f"like the corpus: smallest accuracy at step {early}", alike.min(), 1.0),
        at_least(f"any length: smallest accuracy at step {late}",
                 data["accuracy"].sel(step=late).min(), 0.95),
        at_least(f"like the corpus: smallest mean probability at step {late}",
                 data["probability"].sel(step=late, length=0).min(), 0.95),
        at_most("two non-comparable tokens: largest difference of the log probabilities of "
                "what follows them", data["tie"].max(), 1e-6),
        steps=", ".join(map(str, data.attrs["shown"])),
        ends=ends,
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure, (left, right) = panels_on_page(2.6, 1, 2, sharex=True)
    looks = ordered_line_styles(len(_LENGTHS))
    for axes, kind in ((left, "non-comparable"), (right, "optimal and non-comparable")):
        axes.set(xscale="log", xlabel="step of stage 2", title=f"{kind}, else non-optimal tokens")
        for length, one, dash in zip(_LENGTHS, looks, _DASHES, strict=True):
            label = f"{length} tokens" if length else "like the corpus"
            drawn = data["accuracy"].sel(kind=kind, length=length)
            plain = {"color": one["color"], "linestyle": dash}
            band(axes, drawn, "step", center="mean", label=label, look=plain)
        axes.set_ylim(-0.03, 1.03)
    left.set_ylabel("accuracy")
    left.legend(loc="lower left")
    return figure


GENERALIZATION = Figures(NEXT_TOKEN).figure(
    "generalization",
    "predictions of a trained model on sentences that are not in its corpus",
    statement="generalization to unseen sentences",
    published="none",
    sizes=by_size(
        seeds=[20, 20, 100], vocabulary=20, steps=[3000, 3000, 10_000], sentences=100,
        shown=[(300, 900, 3000), (300, 900, 3000), (300, 900, 3000, 10_000)],
    ),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Accuracy on unseen sentences, {attrs[sentences]} of each kind for each of "
        "{sizes[instance]} corpora: mean and one standard deviation over corpora. Left: one "
        "non-comparable token decides; right: an optimal token among others. Sentences like those "
        "of the corpus hold every non-optimal token once; longer ones, drawn with repetition, are "
        "a shift of the data, and take longer training to distinguish one token from many. At "
        "steps {steps}, like the corpus: {ends}. Two different non-comparable tokens tie."
    ),
)  # fmt: skip
