"""Convergence of training from random starts to the solution for the tokens attended to."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attractor.analysis import verify
from attractor.analysis.predictions.reference import distinct_problems
from attractor.attention import LinearHead
from attractor.datasets import unit_tokens
from attractor.geometry import get_geometry
from attractor.margin import Solution, solve
from attractor.papers.figure import Artifact, Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.transformers_as_svms.descent import descent
from attractor.plots.bands import band
from attractor.plots.design.look import COLORS, panels_on_page
from attractor.plots.design.roles import DASH_DOTTED, line_style, role_of
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.support.threads import in_threads
from attractor.tokens import Tokens
from attractor.training import Trajectory, train

SHAPE = (6, 8, 10)
"""Sequences in a data set, tokens in a sequence, and their dimension."""
_RECORD = (
    *(0, 10, 20, 35, 50, 65, 80, 100, 130, 160, 200, 250, 300, 350, 400, 500, 600, 700, 800, 900),
    *(1000, 1400, 2000, 2800, 4000, 5000),
)
_RUNS = {"W": descent("W"), "KQ": descent("KQ"), "KQ with decay": descent("KQ", decay=True)}
_PUBLISHED = {
    "W as published": descent("W", as_published=True),
    "KQ as published": descent("KQ", as_published=True),
}
_PUBLISHED_STEPS = 2000
_SHOWN = 1000
"""Steps that the published panels show."""
_NORMS = ("frobenius", "nuclear")


def _compute(request: Request) -> xr.Dataset:
    seeds = range(request.seed, request.seed + request.seeds)
    tokens, head = unit_tokens(*SHAPE, seeds=seeds)
    request.uses("random unit tokens", tokens, head)
    steps = request.settings["steps"]
    lengths = {name: steps for name in _RUNS}
    if request.as_published:
        lengths |= {name: min(steps, _PUBLISHED_STEPS) for name in _PUBLISHED}
    found = {}
    with request.bar("training", len(lengths)) as bar:
        # Side by side, as each compiles a program of its own; the largest of these first.
        names = list(reversed(lengths))
        for name, run in in_threads(
            lambda name: _one(request, tokens, head, name, lengths[name]), names
        ):
            found[name] = run
            bar(1)
    runs = [found[name] for name in lengths]
    return xr.concat(runs, "run", join="outer").assign_coords(run=list(lengths))


def _one(request: Request, tokens: Tokens, head: LinearHead, name: str, steps: int) -> xr.Dataset:
    """Trains and compares the run with both solutions."""
    run = train(
        tokens,
        head,
        steps=steps,
        record=[step for step in _RECORD if step <= steps],
        checkpoint=request.checkpoint(name),
        **(_RUNS | _PUBLISHED)[name],
    )
    return measured(run, "reached at end" if name in _PUBLISHED else "reached at step")


def measured(run: Trajectory, selection: str) -> xr.Dataset:
    """Compares a run with both solutions.

    Args:
        run: The run, one start for every data set.
        selection: ``"reached at step"`` or ``"reached at end"``: the tokens that solutions are
            of; see ``verify``.

    Returns:
        ``correlation`` with the solution in either norm; ``margin_ratio`` in the norm that
        training descends; the mean over sequences of the largest attention weight,
        ``probability``; the ``length`` of W; and whether the tokens are those hoped for.
    """
    verdict = verify(run, selection=selection)
    own = verdict.data
    found = xr.Dataset(
        {
            "probability": run.data["attended_probability"].mean(("sequence", "query")),
            "length": (run.data["W"] ** 2).sum(("row", "column")) ** 0.5,
            "margin_ratio": own["margin_ratio"],
            "feasible": own["feasible"],
            "locally_optimal": own["locally_optimal"],
            "globally_optimal": own["selection_agreement"] == 1,
            "correlation": _correlations(run, selection, verdict.solution),
        }
    )
    return found.isel(seed=0, drop=True)


def _correlations(run: Trajectory, selection: str, own: Solution) -> xr.DataArray:
    """Cosines of every recorded matrix with the solutions in both norms, one of them known."""
    index = run.data["attended"].to_numpy()
    if selection == "reached at end":
        index = np.broadcast_to(index[:, :, -1:], index.shape)
    masks = index[..., None] == np.arange(run.tokens.length)
    problem, _, number = distinct_problems(run.tokens, np.indices(index.shape[:3])[0], masks)
    W = run.data["W"]
    lengths = np.linalg.norm(W, axis=(-1, -2))
    cosines = []
    for norm in _NORMS:
        known = own.geometry.name == norm and np.array_equal(own.problem.left, problem.left)
        solution = own if known else solve(problem, get_geometry(norm))
        assert isinstance(solution, Solution)
        best = solution.W / np.linalg.norm(solution.W, axis=(-1, -2), keepdims=True)
        cosines.append(np.einsum("...de,...de->...", W, best[number]) / lengths)
    along = ("norm", *W.dims[:-2])
    return xr.DataArray(np.stack(cosines), dims=along, coords={"norm": list(_NORMS)})


def _readings(data: xr.Dataset) -> Readings:
    last = int(data["step"][-1])
    at = data.sel(step=min(_SHOWN, last))  # where the published panels end
    mean, deviation = at["correlation"].mean("instance"), at["correlation"].std("instance")
    ratio = at["margin_ratio"].mean("instance")
    W, KQ, penalized = (mean.sel(run=run).values for run in _RUNS)
    distance = 1 - data["correlation"].sel(run="W", norm="frobenius", step=last)
    loss = ratio.sel(run="KQ") - ratio.sel(run="KQ with decay")
    local = data["locally_optimal"].sel(run="W").mean()
    by = f"after {int(at['step'])} steps, mean correlation with the"
    shown: dict[str, Any] = {}
    if "W as published" in data["run"]:
        length = data["length"].sel(run="W as published").dropna("step").isel(step=-1)
        shown["published_norm"] = length.mean()
    return Readings(
        at_least(f"W {by} Frobenius solution", W[0], 0.98),
        at_least(f"W {by} Frobenius less that with the nuclear solution", W[0] - W[1], 0.05),
        at_least(f"(K, Q), penalized, {by} nuclear solution", penalized[1], 0.98),
        at_least(f"(K, Q) {by} nuclear less that with the Frobenius", KQ[1] - KQ[0], 0.05),
        at_least(f"(K, Q) {by} nuclear: the penalty adds", penalized[1] - KQ[1], 0.0),
        at_least("(K, Q): what the penalty takes off the mean margin ratio", loss, 0.02),
        at_most(f"W: median of 1 - correlation after {last} steps", distance.median(), 5e-4,
                "distance"),
        at_least("W: share of data sets that end in locally optimal tokens", local, 0.9),
        shape=SHAPE,
        last=last,
        step=at["step"],
        share=data["globally_optimal"].mean("instance"),
        ratio=ratio,
        correlation={
            run: " and ".join(
                f"{mean.sel(run=run, norm=norm):.4f} \N{PLUS-MINUS SIGN} "
                f"{deviation.sel(run=run, norm=norm):.4f}"
                for norm in _NORMS
            )
            for run in data["run"].values
        },
        **shown,
    )  # fmt: skip


def _draw(data: xr.Dataset) -> Figure:
    pairs = [("W", "KQ")]
    if "W as published" in data["run"]:
        pairs.append(("W as published", "KQ as published"))
    figure, panels = panels_on_page(2.2 * (len(pairs) + 1), len(pairs) + 1, 3)
    for row, pair, kind in zip(panels, pairs, ("", ", as published"), strict=False):
        _probability(row[0], data, *pair)
        row[0].set_title(f"attention{kind}")
        for axes, run, trained in zip(row[1:], pair, ("$W$", "$(K, Q)$"), strict=True):
            for norm in _NORMS:
                values = data["correlation"].sel(run=run, norm=norm)
                _means(axes, values, line_style(norm), role_of(norm).label)
            axes.set(ylim=(0, 1.05), ylabel="correlation", title=f"training {trained}{kind}")
            axes.legend(loc="lower right")
    _distances(panels[-1], data)
    return figure


def _probability(axes: Axes, data: xr.Dataset, W: str, KQ: str) -> None:
    for run, role in ((W, "train_W"), (KQ, "train_KQ")):
        _means(axes, data["probability"].sel(run=run), line_style(role), role_of(role).label)
    axes.set(ylim=(0, 1.05), ylabel="largest attention weight", xlim=(-8, 400))
    axes.legend(loc="lower right")


def _means(axes: Axes, values: xr.DataArray, style: dict[str, Any], label: str) -> None:
    """Mean over data sets with a standard deviation to either side, as far as published."""
    band(axes, values.sel(step=slice(0, _SHOWN)), "step", center="mean", label=label, look=style)
    axes.set_xlabel("iteration")


def _distances(row: np.ndarray, data: xr.Dataset) -> None:
    W = 1 - data["correlation"].sel(norm="frobenius")
    KQ = 1 - data["correlation"].sel(norm="nuclear")
    curves = {"exact": (W.sel(run="W"), line_style("train_W"))}
    if "W as published" in data["run"]:
        curves["as published"] = (W.sel(run="W as published"), line_style("as_published"))
    _medians(row[0], curves)
    row[0].set(title="training $W$", ylabel="1 \N{MINUS SIGN} correlation, Frobenius")
    decayed = {"color": COLORS["purple"], "linestyle": DASH_DOTTED}
    for axes, values, words in (
        (row[1], KQ, "correlation"),
        (row[2], 1 - data["margin_ratio"], "margin ratio"),
    ):
        curves = {
            "no penalty": (values.sel(run="KQ"), line_style("train_KQ")),
            r"penalty $2.2 \cdot 10^{-16}$": (values.sel(run="KQ with decay"), decayed),
        }
        _medians(axes, curves)
        axes.set(title="training $(K, Q)$", ylabel=f"1 \N{MINUS SIGN} {words}, nuclear")


def _medians(axes: Axes, curves: dict[str, tuple[xr.DataArray, dict[str, Any]]]) -> None:
    axes.set(xscale="log", yscale="log", xlabel="iteration")
    for label, (values, style) in curves.items():
        band(axes, values.sel(step=slice(10, None)), "step", label=label, look=style)
    axes.set_ylim(bottom=axes.get_ylim()[0] / 4)  # room for the legend
    axes.legend(loc="lower left")


LOCAL_CONVERGENCE = Figures(TRANSFORMERS_AS_SVMS).figure(
    "local-convergence",
    "attention saturates, and W and (K, Q) go to the solutions in their own norms",
    statement="experiment: local convergence of gradient descent",
    published=(
        "mean of the largest attention weight, and correlation with the Frobenius and the nuclear "
        "solution, mean and standard deviation over 100 data sets, against 1000 iterations"
    ),
    sizes=by_size(seeds=[30, 40, 100], steps=5000),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Normalized gradient descent, steps of length 0.1, on {sizes[instance]} random data sets "
        "(n, T, d) = {shape} from random starts, without rounding errors of saturated attention. "
        "Above: mean over sequences of the largest attention weight, and correlation with the "
        "solutions for the tokens attended to at the step itself, mean and standard deviation over "
        "data sets. After {step} steps W has correlation {correlation[W]}, (K, Q) "
        "{correlation[KQ]} with the Frobenius and the nuclear solution; {share[W]:.0%} and "
        "{share[KQ]:.0%} of the runs end in the globally optimal tokens. Last row: medians, with "
        "bands from the 10th to the 90th percentile. Left: W comes ever nearer, 1 - correlation "
        "has median {distance:.1e} after {last} steps. Middle and right: a penalty of 2.2e-16 "
        "(||K||^2 + ||Q||^2) in the loss ranks runs oppositely by the two measures: after {step} "
        "steps the mean correlation with it is {correlation[KQ with decay]}, the mean margin ratio "
        "{ratio[KQ with decay]:.3f} against {ratio[KQ]:.3f} without it."
    ),
    artifact=Artifact(
        "gradients that cancel, 2.2e-16 added to norms, a penalty of 2.2e-16 on K and Q, and the "
        "selection read at the end of training",
        "As published (middle row, and gray): gradients that cancel, with 2.2e-16 added to the "
        "norms that divide, by which W stalls at norm {published_norm:.0f}; that penalty; "
        "solutions for the tokens attended to at the end of training, which some runs had not "
        "reached before. Correlations after {step} steps: W {correlation[W as published]}, (K, Q) "
        "{correlation[KQ as published]}.",
        drawn=lambda data: "W as published" in data["run"],
    ),
)
