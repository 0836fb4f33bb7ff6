"""Linear decoders with more dimensions than contexts, trained by three optimizers."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from attractor.corpora.linear import finite_part, random_contexts
from attractor.papers import Figures, Readings, Request, at_least, at_most, by_size
from attractor.plots import panel_letters, panels_on_page, shared_legend
from attractor_further.linear_next_token import PAPER
from attractor_further.linear_next_token.runs import OPTIMIZERS, ends, panels, solved, trained

_DIMENSION = 60


def _compute(request: Request) -> xr.Dataset:
    contexts = random_contexts(request.seeds, dimension=_DIMENSION, seed=request.seed)
    request.uses(
        "random contexts", embeddings=contexts.embeddings, probabilities=contexts.probabilities
    )
    solution = solved(contexts)
    data = trained(request, contexts, solution, list(OPTIMIZERS), initial_scale=_DIMENSION**-0.5)
    data["entropy"] = ("instance", contexts.entropy)
    data["margin_norm"] = ("instance", solution.norm)
    data["gap"] = ("instance", solution.gap)
    data["finite_norm"] = ("instance", (finite_part(contexts) ** 2).sum((-1, -2)) ** 0.5)
    return data


def _readings(data: xr.Dataset) -> Readings:
    first, end = data.isel(step=0), data.isel(step=-1)
    found = [at_most("largest relative gap of the max-margin solutions", data["gap"].max(), 1e-9)]
    for name in data["optimizer"].values:
        start, stop = first.sel(optimizer=name), end.sel(optimizer=name)
        whole, without = stop["correlation"], stop["correlation_without_finite_part"]
        found += [
            at_most(f"{name}: largest loss above the entropy at the end, over that at the start",
                    (stop["excess_loss"] / start["excess_loss"]).max(), 0.1),
            at_least(f"{name}: smallest cosine with the max-margin solution at the end",
                     whole.min(), 0.6),
            at_least(f"{name}: what taking out the finite part adds to it, least",
                     (without - whole).min(), 0.0),
            at_most(f"{name}: relative distance from the finite part at the end, over that at the "
                    "start, mean",
                    (stop["relative_finite_error"] / start["relative_finite_error"]).mean(), 0.7),
            at_least(f"{name}: smallest norm at the end, over that at the start",
                     (stop["norm"] / start["norm"]).min(), 1.2),
        ]  # fmt: skip
    return Readings(
        *found,
        dimension=_DIMENSION,
        entropy=data["entropy"].mean(),
        margin_norm=data["margin_norm"].mean(),
        finite_norm=data["finite_norm"].mean(),
        ends=ends(data),
    )


def _draw(data: xr.Dataset) -> Figure:
    figure, axes = panels_on_page(2.2, 1, 4)
    panels(axes, data)
    panel_letters(axes)
    shared_legend(figure, axes[:3:2])
    return figure


LINEAR_OVERPARAMETERIZED = Figures(PAPER).figure(
    "overparameterized",
    "linear decoders on 50 contexts in R^60: loss, norm, direction, finite part",
    statement="experiment: overparameterized linear decoders, three optimizers",
    published="the same four panels of one run, 1e4 steps",
    sizes=by_size(seeds=[5, 5, 10], steps=[1000, 10_000, 10_000]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Linear decoders of 10 tokens on 50 contexts in R^{dimension}, each followed by 6 tokens, "
        "on {sizes[instance]} random data sets (medians, and 10th to 90th percentiles): embeddings "
        "N(0, I), probabilities uniform on the simplex, mean entropy {entropy:.3f}, norm of the "
        "max-margin solution {margin_norm:.2f} and of the finite part {finite_norm:.2f}. Learning "
        "rates .5 of gradient descent and .01 of the others, Adam with decays .9 and .99. "
        "Normalized steps of constant length bounce about the finite part at their own scale, and "
        "Adam descends in another norm, so that its direction is not to be the same. Means after "
        "{last[step]:,} steps: {ends}."
    ),
)
