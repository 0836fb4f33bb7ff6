"""A concave head: how many tokens attention keeps, and how well its two parts predict W."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.papers.figure import Artifact, Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.transformers_as_svms.data import orthonormal_tokens
from attractor.papers.transformers_as_svms.descent import descent
from attractor.papers.transformers_as_svms.parts import LABELS, STYLES, compared_with_parts
from attractor.papers.transformers_as_svms.side_by_side import uniform_starts
from attractor.plots.design.look import panels_on_page
from attractor.plots.design.pairs import panel_letters, shared_legend
from attractor.plots.design.roles import line_style
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.tokens import Tokens
from attractor.training import train

_DIMENSION = 10
_STEPS, _LONGER = 2001, 8000
"""Steps of the published runs, and steps after which no further token is given up."""
_PENALTIES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0)
_FINE = np.linspace(0, _PENALTIES[-1] ** 0.5, 61) ** 2
_PARTS = ("both parts", "direction")
_SHORT, _LONG, _PUBLISHED = f"{_STEPS} steps", f"{_LONGER} steps", "as published"
_KEPT = 1e-3
"""Smallest weight that counts as kept."""


def best_weights(
    scores: Float[np.ndarray, "*batch token"], penalty: Float[np.ndarray, "*#batch"]
) -> Float[np.ndarray, "*batch token"]:
    """The weights s that maximize ``gamma^T s - lambda ||s||^2`` on the simplex.

    They are the Euclidean projection of ``gamma / (2 lambda)``, ``(gamma - c)_+ / (2 lambda)``
    with the c for which they add up to one; without a penalty the best token has all the weight.

    Args:
        scores: Token scores gamma; no two of a row are the same.
        penalty: lambda >= 0.
    """
    slack = 2 * np.asarray(penalty, float)[..., None]
    falling = -np.sort(-scores, axis=-1)
    levels = (np.cumsum(falling, axis=-1) - slack) / np.arange(1, scores.shape[-1] + 1)
    count = np.maximum((falling > levels).sum(-1, keepdims=True), 1)
    weights = np.maximum(scores - np.take_along_axis(levels, count - 1, -1), 0)
    return np.where(slack > 0, weights / np.where(slack > 0, slack, 1), scores == falling[..., :1])


def _compute(request: Request) -> xr.Dataset:
    seeds = range(1 + request.seed, 1 + request.seed + request.seeds)
    tokens, head = orthonormal_tokens(_DIMENSION, seeds, _PENALTIES)
    request.uses("orthonormal tokens with concave head", tokens, head)
    shape = (len(_PENALTIES), len(seeds))
    once = Tokens(
        tokens.keys[: len(seeds)], tokens.queries[: len(seeds)], instance_numbers=np.array(seeds)
    )
    starts = {
        name: np.tile(array, (len(_PENALTIES), 1, 1))
        for name, array in uniform_starts(once, "W").items()
    }

    def trained(record: tuple[int, int], **how: Any) -> Float[np.ndarray, "instance step d d"]:
        run = train(
            tokens,
            head,
            steps=record[-1],
            initial=starts,
            record=record,
            checkpoint=request.checkpoint(how["kernel"]),
            progress=request.progress,
            **how,
        )
        return run.data["W"].isel(seed=0).values

    exact = trained((_STEPS, _LONGER), **descent("W"))
    measured = {
        _SHORT: compared_with_parts(tokens, exact[:, :1]),
        _LONG: compared_with_parts(tokens, exact[:, 1:]),
    }
    if request.as_published:
        W = trained((_STEPS - 1, _STEPS), **descent("W", as_published=True))
        # The published code takes attention from before its last step, and W from after it.
        measured[_PUBLISHED] = compared_with_parts(tokens, W[:, 1:], W[:, :1])
    runs = [_by_penalty(one.isel(step=0), shape) for one in measured.values()]
    found = xr.concat(runs, xr.IndexVariable("run", list(measured)))
    found = found.assign_coords(penalty=list(_PENALTIES), data_set=list(seeds))
    scores = np.einsum("itd,id->it", tokens.values[: len(seeds), 0], head.weight[: len(seeds)])
    for name, penalties in (("best", np.array(_PENALTIES)), ("best_between", _FINE)):
        counts = (best_weights(scores, penalties[:, None]) >= _KEPT).sum(-1)
        axis = "penalty" if name == "best" else "fine_penalty"
        found[name] = ((axis, "data_set"), counts)
    return found.assign_coords(fine_penalty=_FINE)


def _by_penalty(measured: xr.Dataset, shape: tuple[int, int]) -> xr.Dataset:
    """Instances as an axis of penalties and one of data sets."""
    axes = ("penalty", "data_set")
    arrays = {
        name: ((*axes, *one.dims[1:]), one.values.reshape(*shape, *one.shape[1:]))
        for name, one in measured.data_vars.items()
    }
    return xr.Dataset(arrays, {"prediction": measured["prediction"]})


def _readings(data: xr.Dataset) -> Readings:
    mean = data.mean("data_set")
    off = abs(mean["kept"] - mean["best"]).max("penalty")
    errors = mean["error"].sel(prediction="both parts")
    found, passing = [], {}
    for run in data["run"].values:
        one = data.sel(run=run)
        large = mean["error"].sel(run=run, penalty=slice(0.2, None))
        gain = large.sel(prediction="direction") / large.sel(prediction="both parts")
        found += [
            at_most(
                f"{run}: largest difference of mean tokens kept from the best attention",
                off.sel(run=run),
                0.3 if run == _LONG else 0.6,
            ),
            at_most(
                f"{run}: most tokens kept without a penalty", one["kept"].sel(penalty=0).max(), 1
            ),
            at_least(
                f"{run}: mean tokens kept with the largest penalty",
                one["kept"].isel(penalty=-1).mean(),
                9.5,
            ),
            at_most(
                f"{run}: largest mean of 1 - correlation with both parts",
                errors.sel(run=run).max(),
                0.07,
            ),
            at_least(
                f"{run}: penalty from 0.2 on, error of the directional part over that of both",
                gain.min(),
                1.1,
            ),
        ]
        counts = (one["outcome"] == 0).sum("data_set")
        passing[run] = ", ".join(
            f"{count} at {penalty:g}"
            for penalty, count in zip(data["penalty"].values, counts.values, strict=True)
            if count
        )
    passed = (
        data["error"]
        .sel(prediction="both parts", penalty=0)
        .where(data["outcome"].sel(penalty=0) == 0)
    )
    return Readings(
        *found,
        at_most("closed form of the correlation", data["closed_form"].max(), 1e-9),
        at_most("cosine between both parts", data["angle"].max(), 1e-9),
        tokens=_DIMENSION,
        steps=_STEPS,
        longer=_LONGER,
        off=off,
        error=errors.max("penalty"),
        error_without_penalty=errors.sel(penalty=0),
        passing=passing,
        passed_without_penalty=passed.mean("data_set"),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, (counts, by_penalty, by_count) = panels_on_page(2.7, 1, 3)
    _counts(counts, data)
    _errors(by_penalty, data, "penalty")
    _errors(by_count, data, "kept")
    by_count.sharey(by_penalty)
    by_count.set_ylabel("")
    counts.set_title("tokens kept")
    by_penalty.set_title("against the penalty")
    by_count.set_title("against tokens kept")
    panel_letters([counts, by_penalty, by_count])
    shared_legend(figure, [counts, by_penalty])
    return figure


def _counts(axes: Axes, data: xr.Dataset) -> None:
    _penalty_axis(axes)
    best = data["best_between"].mean("data_set")
    axes.plot(
        best["fine_penalty"],
        best,
        label="best attention, exactly",
        **line_style("predicted", zorder=3),
    )
    for run, fill in ((_SHORT, "white"), (_LONG, None)):
        kept = data["kept"].sel(run=run).mean("data_set")
        role = line_style("measured", linestyle="none", marker="o", markersize=4.5 if fill else 3)
        axes.plot(kept["penalty"], kept, mfc=fill, label=f"training, {run}", **role)
    axes.set(ylabel=f"tokens of {_DIMENSION}", ylim=(0, _DIMENSION + 0.5))


def _errors(axes: Axes, data: xr.Dataset, along: str) -> None:
    axes.set_yscale("log")
    if along == "penalty":
        _penalty_axis(axes)
    else:
        axes.set(xlabel="tokens kept", xticks=range(1, _DIMENSION, 2))
    exact = data.sel(run=_LONG)
    for part in _PARTS:
        one = exact.sel(prediction=part)
        every, passing = (_means(one, along, only_passing=only) for only in (False, True))
        role = STYLES[part]
        axes.plot(every[along], every, marker=".", label=LABELS[part], **role)
        pale = {"color": role["color"], "linestyle": "none", "marker": "D", "mfc": "white"}
        words = "both parts, trials that pass the filter" if part == _PARTS[0] else None
        axes.plot(passing[along], passing, markersize=4, label=words, **pale)
    if _PUBLISHED in data["run"]:
        one = data.sel(run=_PUBLISHED, prediction=_PARTS[0])
        published = _means(one, along, only_passing=True)
        role = line_style("as_published", marker="s", markersize=3)
        axes.plot(published[along], published, label="both parts, as published", **role)
    axes.set_ylabel("1 \N{MINUS SIGN} correlation")


def _means(data: xr.Dataset, along: str, *, only_passing: bool) -> xr.DataArray:
    """Mean errors of trials with a direction, or of those that pass the filter."""
    errors = data["error"].where(data["outcome"] == 0) if only_passing else data["error"]
    if along == "penalty":
        return errors.mean("data_set").dropna("penalty")
    trials = xr.Dataset({"error": errors, "kept": data["kept"]}).stack(
        trial=("penalty", "data_set")
    )
    known = trials.isel(trial=np.flatnonzero(trials["error"].notnull()))
    return known["error"].groupby(known["kept"]).mean()


def _penalty_axis(axes: Axes) -> None:
    """Small penalties, where the count rises, get most of the axis."""
    axes.set_xscale("function", functions=(_signed_root, lambda x: np.sign(x) * x**2))
    axes.set_xlim(-0.005, 1.05 * _PENALTIES[-1])
    ticks = (0, 0.1, 0.5, 1, 2, 3)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel(r"penalty $\lambda$")


def _signed_root(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.sqrt(np.abs(x))


CONCAVE_HEAD = Figures(TRANSFORMERS_AS_SVMS).figure(
    "concave-head",
    "concave head: tokens kept and correlation with both parts, against the penalty",
    statement="experiment: concave heads and attention that keeps several tokens",
    published="tokens kept against lambda; 1 - correlation against lambda and against their number",
    sizes=by_size(seeds=[25, 100, 100]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Training of W for one sequence of {tokens} orthonormal tokens under the concave head v^T "
        "x - lambda ||x||^2, {sizes[data_set]} data sets. Left: mean number of tokens with a "
        "weight of at least 1e-3, beside that of the weights that maximize the head, exactly a "
        "projection on the simplex; they differ by at most {off[2001 steps]:.2f} after {steps} "
        "normalized steps, when some tokens are still being given up, and {off[8000 steps]:.2f} "
        "after {longer}. Middle and right: mean of 1 - correlation of W with what its last "
        "attention predicts, the finite and directional part together and the latter alone, of "
        "every trial that gives up a token in {longer} steps; with both parts at most "
        "{error[8000 steps]:.3f} (after {steps}: {error[2001 steps]:.3f}). Diamonds: trials that "
        "pass the published filter, no weight between 1e-6 and 1e-3: {passing[8000 steps]} (after "
        "{steps}: {passing[2001 steps]})."
    ),
    artifact=Artifact(
        "gradients that stop at 1e-16, and the mean over the trials that pass a filter",
        "Squares, as published: trials that pass ({passing[as published]}), under gradients with "
        "2.2e-16 added to the norm that divides them, which stop early: "
        "{passed_without_penalty[as published]:.4f} without a penalty, where exact descent reaches "
        "{error_without_penalty[2001 steps]:.5f} in as many steps.",
        drawn=lambda data: _PUBLISHED in data["run"],
    ),
)
