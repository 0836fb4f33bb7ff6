"""The time that attention takes to choose, for vocabularies and sentences of several sizes."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attractor.next_token.corpus import Corpus
from attractor.next_token.two_stage_measures import measure_two_stages
from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.next_token.runs import corpora, train_drawn
from attractor.papers.paper import NEXT_TOKEN
from attractor.plots._figure import Figure
from attractor.plots._style import PAGE
from attractor.plots.roles import line_style, ordered_line_styles
from attractor.training import normalized_gradient_descent

_CHOSEN = 0.99
"""Attention on the optimal token that counts as a choice."""
_RATE = 0.2
"""Step size of both stages, to be divided by the root of the dimension."""
_LENGTHS_OF = 20
"""Size of the vocabulary in which lengths are varied."""


def _compute(request: Request) -> xr.Dataset:
    settings = request.settings
    drawn: dict[tuple[str, int], tuple[int, list[Corpus]]] = {}
    for size in settings["vocabularies"]:
        drawn["vocabulary", size] = (size, _corpora(request, size, (1, 2)))
    for length in settings["lengths"]:
        drawn["length", length] = (_LENGTHS_OF, _corpora(request, _LENGTHS_OF, (length - 1,)))
    measured = {}
    for size in sorted({size for size, _ in drawn.values()}):  # one size, one batch
        groups = [group for group, (own, _) in drawn.items() if own == size]
        found = _measured(request, size, [c for group in groups for c in drawn[group][1]])
        for place, group in enumerate(groups):
            own = slice(place * request.seeds, (place + 1) * request.seeds)
            measured[group] = {name: values[own] for name, values in found.items()}
    swept = {"vocabulary": [*settings["vocabularies"]], "length": [*settings["lengths"]]}
    return xr.Dataset(
        {
            f"{quantity}_by_{name}": (
                (name, "instance"),
                np.stack([measured[name, value][quantity] for value in values]),
            )
            for name, values in swept.items()
            for quantity in ("solution_norm", "steps_to_choose")
        },
        swept,
    )


def _corpora(request: Request, vocabulary: int, non_optimal: tuple[int, ...]) -> list[Corpus]:
    return corpora(request.seeds, request.seed, vocabulary=vocabulary, non_optimal=non_optimal)


def _measured(request: Request, vocabulary: int, drawn: list[Corpus]) -> dict[str, np.ndarray]:
    """Norms of solutions, and the first recorded step at which attention has chosen."""
    steps, name = request.settings["steps"], f"vocabulary-{vocabulary}"
    step = normalized_gradient_descent(_RATE / vocabulary**0.5)
    record = np.arange(0, steps + 1, max(steps // 150, 1))
    training = {"steps": (900, steps), "optimizers": (step, step), "record": record}
    measured = measure_two_stages(train_drawn(request, drawn, name, **training))
    chosen = (measured["least_optimal_attention"] >= _CHOSEN).values
    first = measured["step"].values[chosen.argmax(-1)].astype(float)
    return {
        "solution_norm": measured["solution_norm"].values,
        "steps_to_choose": np.where(chosen.any(-1), first, np.nan),
    }


def _ratios(data: xr.Dataset, name: str) -> xr.DataArray:
    """Steps times step size over the norm of the solution: distances between tokens' scores."""
    size = data["vocabulary"] if name == "vocabulary" else _LENGTHS_OF
    return data[f"steps_to_choose_by_{name}"] * _RATE / size**0.5 / data[f"solution_norm_by_{name}"]


def _readings(data: xr.Dataset) -> Readings:
    by_size, by_length = _ratios(data, "vocabulary"), _ratios(data, "length")
    every = np.concatenate([by_size.values.ravel(), by_length.values.ravel()])
    return Readings(
        at_most("corpora whose attention has not chosen in the end", np.isnan(every).sum(), 0),
        at_most("score gap at which attention has chosen: largest over smallest",
                every.max() / every.min(), 2.0),
        at_least("norm of the solution: largest over smallest mean",
                 data["solution_norm_by_length"].mean("instance").max()
                 / data["solution_norm_by_vocabulary"].mean("instance").min(), 1.5),
        share=_CHOSEN,
        least_gap=np.nanmin(every),
        largest_gap=np.nanmax(every),
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 2.7))
    titles = {"vocabulary": "tokens in the vocabulary", "length": "longest context"}
    for axes, (name, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        values = data[name].values
        for value, one in zip(values, ordered_line_styles(len(values)), strict=True):
            size = float(value) if name == "vocabulary" else float(_LENGTHS_OF)
            norms, steps = (
                data[f"{quantity}_by_{name}"].sel({name: value})
                for quantity in ("solution_norm", "steps_to_choose")
            )
            points = {"linestyle": "none", "markersize": 3.5, "alpha": 0.8, "label": f"{value}"}
            axes.plot(norms, steps * _RATE / size**0.5, **points, **one)
        ends = np.array([0.0, float(data[f"solution_norm_by_{name}"].max()) * 1.08])
        gap = float(_ratios(data, name).median())
        axes.plot(ends, gap * ends, label=rf"${gap:.1f}\,\|W^*\|$", **line_style("fitted"))
        axes.set(xlim=(0, None), ylim=(0, None), xlabel=r"norm of the solution $\|W^*_{kq}\|$")
        axes.set_ylabel(rf"$t\,\eta$ until attention is {_CHOSEN:g}")
        axes.legend(title=title, loc="upper left")
    return figure


SIZES = Figures(NEXT_TOKEN).figure(
    "sizes",
    "how long attention takes to choose, for corpora of several sizes",
    statement="convergence of the second stage: dependence on the sizes of the data",
    published="none",
    sizes=by_size(
        seeds=[10, 20, 25],
        vocabularies=[(10, 20), (10, 20, 40), (10, 20, 40, 80)],
        lengths=[(2, 6), (2, 4, 8), (2, 3, 4, 6, 8, 12)],
        steps=[1200, 1500, 3000],
    ),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "How far normalized descent travels until every sentence has {share:.0%} of its attention "
        "on the token that explains its label, against the norm of the margin solution: "
        "{sizes[instance]} corpora of each size. Steps times step size are {least_gap:.1f} to "
        "{largest_gap:.1f} norms of the solution, whatever the vocabulary, and a little more for "
        "long contexts, whose many tokens a larger score gap has to outweigh; the bounds as "
        "printed grow with the fourth power of the length."
    ),
)  # fmt: skip
