"""How concentrated the attention of trained softmax heads is: norms of their weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes

from attractor.errors import InvalidInputError
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
from attractor.plots._style import COLORS, PAGE
from attractor.plots.pairs import panel_letters, shared_legend
from attractor.plots.roles import DASHED, DOTTED, SOLID
from attractor.prompt.finite_length import error_table
from attractor.prompt.regression import (
    Blocks,
    RegressionTask,
    finite_prompt_limit,
    softmax_optimum,
)
from attractor.prompt.regression.runs import OFFICIAL_LENGTHS, InContextRuns
from attractor.randomness import generator

_SHOWN = (10, 100, 1000)
"""Lengths with a histogram."""
_ENTRIES_AT_ONCE = 2**22
_HEADS = ("trained", "best")
_STANDARD_ERRORS = 4.0
_MIDPOINT = -0.5
"""Power of the length halfway from selection, whose norm stays, to averaging, whose is 1/L."""
_QUANTILES = (0.1, 0.5, 0.9)
_QUERIES = 2**16
_LOOKS = {
    "squares": (
        "sum of squared weights",
        COLORS["blue"],
        {"histtype": "stepfilled", "alpha": 0.55},
    ),
    "largest": ("largest weight", COLORS["orange"], {"histtype": "step", "linewidth": 1.1}),
}


class _Weights(NamedTuple):
    """What is measured of the softmax weights of each prompt.

    Attributes:
        squares: ``sum_l p_l^2``.
        largest: The largest weight.
        deviation: Standard deviation of the scores, given weights of the task and query.
    """

    squares: Float[np.ndarray, "prompt"]
    largest: Float[np.ndarray, "prompt"]
    deviation: Float[np.ndarray, "prompt"]


def _compute(request: Request) -> xr.Dataset:
    wanted = request.settings["lengths"]
    runs = official_runs(request, wanted)
    softmax = tuple(run for run in runs.runs if run.settings["attention"] == "softmax")
    if not softmax:
        raise InvalidInputError("data", "none of its runs is of softmax", "Give some that are")
    task, prompts = runs.task, request.settings["prompts"]
    found = []
    for run in softmax:
        length = int(run.length)
        heads = {
            "trained": Blocks(*(block[0, 0] for block in run.blocks())),
            "best": softmax_optimum(task, length).blocks,
        }
        measured = []
        for name, head in heads.items():
            draws = generator(request.seed, length, purpose=f"prompts of the {name} head")
            weights = _weights(task, head, length, prompts, draws)
            table = error_table(length, max(1.0, float(weights.deviation.max()) * 1.01))
            exact = np.asarray(table.sum_of_squared_weights(weights.deviation))
            measured.append([weights.squares, weights.largest, weights.deviation, exact])
        found.append(measured)
    names = ("squares", "largest", "deviation", "exact")
    each = np.moveaxis(np.array(found), 2, 0)
    axes = ("length", "head", "prompt")
    return xr.Dataset(
        {
            **{name: (axes, values) for name, values in zip(names, each, strict=True)},
            "verdict": ("length", [run.verdict for run in softmax]),
        },
        {"length": [int(run.length) for run in softmax], "head": list(_HEADS)},
        {
            "limit_share": _limit_share(task),
            "path": path_of(runs),
            "steps": int(runs.runs[0].steps[-1]),
            "optimizer": optimizer_of(InContextRuns(softmax)),
        },
    )


def _weights(
    task: RegressionTask, head: Blocks, length: int, prompts: int, draws: np.random.Generator
) -> _Weights:
    """The weights of a head on prompts of the task, token by token."""
    d = task.dimension
    factor, queries_factor = np.linalg.cholesky(task.covariance), task.query_factor
    found = []
    block = max(1, _ENTRIES_AT_ONCE // (length * (d + 1)))
    for start in range(0, prompts, block):
        count = min(block, prompts - start)
        w = np.sqrt(task.weight_variance) * draws.standard_normal((count, d))
        x_q = draws.standard_normal((count, d)) @ queries_factor.T
        x = draws.standard_normal((count, length, d)) @ factor.T
        noise = np.sqrt(task.label_noise) * draws.standard_normal((count, length))
        y = np.einsum("pld,pd->pl", x, w) + noise
        functional = np.column_stack([x_q @ head.key_query.T, x_q @ head.label_row])
        scores = np.einsum("pld,pd->pl", x, functional[:, :-1]) + y * functional[:, -1:]
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        variance = np.einsum("pi,pij,pj->p", functional, task.token_covariance(w), functional)
        found.append([(p**2).sum(axis=1), p.max(axis=1), np.sqrt(np.maximum(variance, 0))])
    return _Weights(*np.concatenate(found, axis=1))


def _limit_share(task: RegressionTask) -> float:
    """Median share ``e^{-s^2}`` of the tokens that the best heads of ever longer prompts attend to.

    They tend to ``A = S^{-1} / b`` with ``b`` the ``finite_prompt_limit``, whose scores of a query
    have the variance ``x_q^T S^{-1} x_q / b^2``.
    """
    draws = generator(0, purpose="queries of the limit")
    queries = draws.standard_normal((_QUERIES, task.dimension)) @ task.query_factor.T
    square = np.einsum("qi,ij,qj->q", queries, np.linalg.inv(task.covariance), queries)
    return float(np.exp(-np.median(square) / finite_prompt_limit(task) ** 2))


def _share(data: xr.Dataset) -> xr.DataArray:
    """Effective sample size over the number of tokens, ``1 / (L sum_l p_l^2)``."""
    return 1 / (data["squares"] * data["length"])


def _readings(data: xr.Dataset) -> Readings:
    off = data["squares"] - data["exact"]
    error = off.std("prompt", ddof=1) / np.sqrt(data.sizes["prompt"])
    # Where all scores are zero every sum is 1/L and nothing is random.
    apart = np.abs(off.mean("prompt")) / error.where(error > 0, 1e-12)
    found = [
        at_most("mean of the sum of squared weights less the exact one, in standard errors",
                apart.max(), _STANDARD_ERRORS)
    ]  # fmt: skip
    powers: dict[str, float] = {}
    settled = data["verdict"].values == "settled"
    mean = data["exact"].mean("prompt")
    for head in _HEADS:
        one = mean.sel(head=head).isel(length=settled) if head == "trained" else mean.sel(head=head)
        if one.sizes["length"] < 2:
            continue
        first, last = one.isel(length=[0, -1]).values
        short, long = one["length"].values[[0, -1]]
        powers[head] = np.log(last / first) / np.log(long / short)
        found += [
            at_most(f"{head} heads: power of the length in the mean sum of squared weights",
                    powers[head], _MIDPOINT),
            at_most(f"{head} heads: mean sum over that of equal weights, longest over shortest",
                    last * long / (first * short), 1.0),
        ]  # fmt: skip
    share = 100 * _share(data).median("prompt")
    return Readings(
        *found,
        prompts=data.sizes["prompt"],
        shares="; ".join(
            f"{int(length):,} tokens {float(one.sel(head='trained')):.0f} % "
            f"({float(one.sel(head='best')):.0f} %)"
            for length in data["length"].values if length in _SHOWN
            for one in [share.sel(length=length)]
        ),
        limit=100 * data.attrs["limit_share"],
        settled=int(settled.sum()),
        runs=settled.size,
        powers=", ".join(f"{power:.2f} of {head} heads" for head, power in powers.items()),
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    figure = Figure(figsize=(PAGE, 4.4))
    shown = [length for length in data["length"].values.tolist() if length in _SHOWN]
    grid = figure.add_gridspec(2, 6)
    width = 6 // max(1, len(shown))
    histograms = []
    for place, length in enumerate(shown):
        part = grid[0, place * width : (place + 1) * width]
        histograms.append(figure.add_subplot(part, sharey=histograms[0] if histograms else None))
        _histograms(histograms[-1], data.sel(length=length, head="trained"))
    if histograms:
        histograms[0].set_ylabel("share of prompts")
    panels = [figure.add_subplot(grid[1, :3]), figure.add_subplot(grid[1, 3:])]
    lengths = data["length"].values
    mean = data["exact"].mean("prompt")
    panels[0].plot(lengths, mean.sel(head="trained"), "o", color=COLORS["blue"], markersize=3.5,
                   label="trained softmax heads")  # fmt: skip
    panels[0].plot(lengths, mean.sel(head="best"), color=COLORS["black"], linewidth=1,
                   linestyle=SOLID, label="best softmax heads")  # fmt: skip
    panels[0].plot(lengths, 1 / lengths, color=COLORS["gray"], linestyle=DOTTED)
    panels[0].axhline(1, color=COLORS["gray"], linestyle=DOTTED)
    panels[0].set(yscale="log", ylabel=r"mean of $\Vert p\Vert^2$")
    low, middle, high = _share(data).quantile(_QUANTILES, "prompt").transpose("quantile", ...)
    panels[1].fill_between(lengths, low.sel(head="trained"), high.sel(head="trained"),
                           color=COLORS["blue"], alpha=0.18, linewidth=0)  # fmt: skip
    panels[1].plot(lengths, middle.sel(head="trained"), "o", color=COLORS["blue"], markersize=3.5)
    panels[1].plot(lengths, middle.sel(head="best"), color=COLORS["black"], linewidth=1)
    panels[1].axhline(data.attrs["limit_share"], color=COLORS["gray"], linestyle=DASHED,
                      linewidth=0.9)  # fmt: skip
    panels[1].set(ylim=(0, 1.02), ylabel=r"effective share, $1 / (L \Vert p\Vert^2)$")
    _words(panels[0], 1.0, "one token takes all", -9)
    _words(panels[1], data.attrs["limit_share"], "median, best heads as $L \\to \\infty$", 3)
    for axes in panels:
        axes.set(xscale="log", xlabel="tokens in the prompt, $L$")
        axes.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])
        axes.minorticks_off()
    panel_letters([*histograms, *panels])
    shared_legend(figure, [*histograms[:1], panels[0]], columns=3)
    return figure


def _histograms(axes: Axes, data: xr.Dataset) -> None:
    """Norms of one head over prompts and queries, on a logarithmic axis from 1/L to 1."""
    length = int(data["length"])
    bins = np.geomspace(0.85 / length, 1.0, 46)
    for name, (label, color, look) in _LOOKS.items():
        values = np.clip(data[name].values, bins[0], bins[-1])
        weights = np.full(len(values), 1 / len(values))
        axes.hist(values, bins.tolist(), weights=weights, color=color, label=label, **look)
    axes.axvline(1 / length, color=COLORS["black"], linestyle=DOTTED, linewidth=1,
                 label="equal weights, $1/L$")  # fmt: skip
    axes.axvline(float(data["exact"].mean()), color=COLORS["blue"], linestyle=DASHED, linewidth=1.1,
                 label="exact mean of the sum of squares")  # fmt: skip
    axes.set(xscale="log", xlabel="norm of the weights")
    axes.set_title(f"trained on $L$ = {length:,}")


def _words(axes: Axes, level: float, words: str, offset: float) -> None:
    """A level's name, above or below its left end."""
    axes.annotate(words, (0.03, level), (0, offset), fontsize=6.5, color="#555555",
                  xycoords=("axes fraction", "data"), textcoords="offset points")  # fmt: skip


SOFTMAX_NORMS = Figures(LARGE_PROMPT).figure(
    "softmax-norms",
    "how concentrated trained softmax attention is: norms of its weights over prompts, by length",
    statement="experiment: in-context linear regression",
    published="helpers of its code draw histograms of softmax norms; a figure was not seen",
    sizes=by_size(
        **TRAINED,
        prompts=[2000, 4000, 10_000],
        lengths=[_SHOWN, OFFICIAL_LENGTHS, OFFICIAL_LENGTHS],
    ),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    takes=TAKES,
    caption=(
        "Weights p of softmax heads trained by {attrs[optimizer]} for {attrs[steps]:,} steps on "
        "data {attrs[path]}, over {prompts:,} prompts with a query each. Top: the sum |p|^2 of "
        "squared weights, whose inverse is the effective sample size, and the largest weight; from "
        "equal weights (dotted) to one token that takes all (right end). Dashed: mean of the exact "
        "expectation over prompts given the deviation of each query's scores. Bottom left: exact "
        "means by length; their power of the length is {powers}, where selection has 0 and equal "
        "weights -1. Bottom right: effective share of the tokens, medians and the middle 80 % of "
        "trained heads (band). Medians of trained (best) heads: {shares}; the best heads tend to "
        "{limit:.0f} %. {settled} of {runs} trained heads had settled. The longer the prompts, the "
        "more evenly the best heads attend: they average."
    ),
)
