"""Two-stage training where an assumption of the theory is not met."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.next_token.corpus import Corpus
from attractor.next_token.orders import partial_orders
from attractor.next_token.problems import complete_orders_solution
from attractor.next_token.two_stage_measures import (
    attention_solutions,
    direction_distance,
    measure_two_stages,
)
from attractor.next_token.two_stage_trajectory import TwoStageTrajectory
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.next_token.runs import log_spaced, train_drawn
from attractor.papers.paper import NEXT_TOKEN
from attractor.plots._style import COLORS, panels_on_page
from attractor.plots.roles import line_style

_FOLLOWS = (1, 2, 3, 4, 5, 0)
"""The collocation of all three corpora, of six tokens."""
_TIMES = 20


def repeated_corpus(times: int) -> Corpus:
    """Two sentences under one query; a non-optimal token of the frequent one is repeated."""
    contexts = [[0, *[1] * times, 5], [2, 3, 5]]
    return _corpus(contexts, [0, 2], [0.98, 0.02])


def incomplete_corpus() -> Corpus:
    """Two optimal tokens of one query, of which one is compared with the query alone."""
    return _corpus([[0, 2, 3, 4, 5], [1, 5]], [0, 1], [0.5, 0.5])


def _corpus(contexts: list[list[int]], explaining: list[int], counts: list[float]) -> Corpus:
    size = len(_FOLLOWS)
    return Corpus.from_samples(
        [*([token] for token in range(size)), *contexts],
        [*_FOLLOWS, *(_FOLLOWS[token] for token in explaining)],
        range(size),
        counts=[0.01] * size + counts,
    )


def _compute(request: Request) -> xr.Dataset:
    steps = request.settings["steps"]
    drawn = [repeated_corpus(1), repeated_corpus(_TIMES), incomplete_corpus()]
    record = np.union1d(log_spaced(steps, 60), np.arange(0, 200, 2))
    run = train_drawn(request, drawn, "assumptions", steps=(900, steps), record=record)
    measured = measure_two_stages(run, attention=attention_solutions(run))
    closed = complete_orders_solution(partial_orders(drawn[2], run.collocations[2]))
    trained = run.attention.data["W"].values[2, 0]
    return xr.Dataset(
        {
            "optimal_attention": (
                ("times", "sentence", "step"),
                np.stack([_optimal_attention(run, place) for place in (0, 1)]),
            ),
            "distance": (("corpus", "step"), measured["distance"].values),
            "closed_form_distance": ("step", direction_distance(trained, closed)),
            "solution_norm": ("corpus", measured["solution_norm"].values),
            "closed_form_norm": np.linalg.norm(closed),
        },
        {
            "times": [1, _TIMES],
            "sentence": ["frequent", "rare"],
            "corpus": ["not repeated", "repeated", "incomplete"],
            "step": run.attention.steps,
        },
    )


def _optimal_attention(run: TwoStageTrajectory, place: int) -> np.ndarray:
    """Attention of the two long sentences on the token that explains their label."""
    samples = run.samples[place]
    explains = samples.contexts == run.collocations[place].inverse[samples.labels][:, None]
    long = np.flatnonzero(samples.mask.sum(-1) > 1)
    found = []
    for W in run.attention.data["W"].values[place, 0]:
        scores = W[np.maximum(samples.contexts, 0), samples.queries[:, None]]
        weights = np.where(samples.mask, np.exp(scores - scores.max(-1, keepdims=True)), 0.0)
        found.append(((weights * explains).sum(-1) / weights.sum(-1))[long])
    return np.array(found).T


def _drop(data: xr.Dataset, times: int) -> float:
    """The largest fall of attention on an optimal token below an earlier value."""
    values = data["optimal_attention"].sel(times=times).values
    return float((np.maximum.accumulate(values, axis=-1) - values).max())


def _readings(data: xr.Dataset) -> Readings:
    last = data.isel(step=-1)
    return Readings(
        at_most("optimal token as frequent as any: largest fall of its attention",
                _drop(data, 1), 1e-12),
        at_least(f"outnumbered {_TIMES} to 1: largest fall of its attention",
                 _drop(data, _TIMES), 0.005, "fall"),
        at_most("outnumbered: 1 - cos in the end",
                last["distance"].sel(corpus="repeated"), 1e-3, "distance"),
        at_most("incomplete orders: 1 - cos to the margin solution",
                last["distance"].sel(corpus="incomplete"), 1e-3),
        at_least("incomplete orders: 1 - cos to the published closed form",
                 last["closed_form_distance"], 0.02),
        times=_TIMES,
        norm=last["solution_norm"].sel(corpus="incomplete"),
        closed_form_norm=data["closed_form_norm"],
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure, (left, right) = panels_on_page(3.0, 1, 2)
    dashes: dict[int, Any] = {1: "-", _TIMES: (0, (4, 1.6))}
    colors = {"frequent": COLORS["blue"], "rare": COLORS["orange"]}
    early = data.sel(step=slice(0, 200))
    for times, dash in dashes.items():
        for sentence, color in colors.items():
            label = f"{sentence}, " + ("once" if times == 1 else f"{times} times")
            curve = early["optimal_attention"].sel(times=times, sentence=sentence)
            left.plot(early["step"], curve, color=color, linestyle=dash, label=label)
    left.set(xlabel="step of stage 2", ylabel="attention on the optimal token", ylim=(0, 1))
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2)}
    left.legend(ncols=2, **below)
    right.set(xscale="log", yscale="log", xlabel="step of stage 2", ylabel=r"$1 - \cos$")
    margin = data["distance"].sel(corpus="incomplete")
    right.plot(data["step"], margin, label="to the margin solution", **line_style("frobenius"))
    published = data["closed_form_distance"]
    right.plot(
        data["step"], published, label="to the published closed form", **line_style("as_published")
    )
    right.set_title("incomplete orders")
    left.set_title("sentences whose non-optimal token occurs once, or often")
    right.legend(**below)
    return figure


ASSUMPTIONS = Figures(NEXT_TOKEN).figure(
    "assumptions",
    "what becomes of two-stage training where an assumption is not met",
    statement="assumptions: number of occurrences of the optimal token; closed form",
    published="none",
    sizes=by_size(seeds=1, steps=[10_000, 30_000, 100_000]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Two-stage training where an assumption is not met. Left: one non-optimal token occurs "
        "{times} times in the frequent sentence (98 %). Attention of the rare sentence on its "
        "optimal token then falls by {fall:.3f} before it rises, against a lemma that needs the "
        "optimal token to be as frequent as any; the direction still converges (1 - cos = "
        "{distance:.1e}). Right: one optimal token is compared with the query alone. Training goes "
        "to the solution of the margin problem, of norm {norm:.4f}, and not to the published "
        "closed form, of norm {closed_form_norm:.4f}, which does not satisfy its optimality "
        "conditions."
    ),
)
