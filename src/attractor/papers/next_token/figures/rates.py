"""The rate at which attention turns to its limit, beside the bounds as printed."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor.papers.figure import Figures, Readings, Request, at_least, at_most, by_size
from attractor.papers.next_token.figures.training import STYLES
from attractor.papers.next_token.runs import STARTS, corpora, log_spaced, train_from_both_starts
from attractor.papers.paper import NEXT_TOKEN
from attractor.plots._style import panels_on_page
from attractor.plots.bands import band
from attractor.plots.roles import line_style

_FROM = 1000
"""The step from which slopes are fitted."""


def _compute(request: Request) -> xr.Dataset:
    settings = request.settings
    drawn = corpora(request.seeds, request.seed, vocabulary=settings["vocabulary"])
    steps, record = (900, settings["steps"]), log_spaced(settings["steps"], 80)
    data = train_from_both_starts(request, drawn, "rates", steps=steps, record=record)
    late = data.sel(step=slice(_FROM, None))
    logs = xr.apply_ufunc(np.log, late["distance"])
    rate = 0.05 / settings["vocabulary"] ** 0.5 / data["solution_norm"]
    found = {"slope": _slope(logs.assign_coords(step=np.log(late["step"].values)))}
    for name in ("log_other_attention", "log_excess_loss"):
        found[f"{name}_rate"] = -_slope(late[name].where(np.isfinite(late[name]))) / rate
    samples = [len(corpus.positions) for corpus in drawn]
    longest = max(int(corpus.lengths.max()) - 1 for corpus in drawn)
    attributes = {"samples": float(np.mean(samples)), "longest": longest, **settings}
    return data.assign(found).assign_attrs(attributes)


def _slope(values: xr.DataArray) -> xr.DataArray:
    """The least-squares slope along the steps, of every corpus from every start."""
    return values.polyfit("step", 1)["polyfit_coefficients"].sel(degree=1, drop=True)


def _readings(data: xr.Dataset) -> Readings:
    steps, vacuous_until = data["step"].max(), _vacuous_until(data)
    return Readings(
        at_least("smallest slope of log(1 - cos) against log t",
                 data["slope"].min(), -2.2, "smallest_slope"),
        at_most("largest slope of log(1 - cos) against log t",
                data["slope"].max(), -1.8, "largest_slope"),
        at_most("attention on other tokens: largest |rate / (step size / norm of W*) - 1|",
                np.abs(data["log_other_attention_rate"] - 1).max(), 0.02),
        at_most("loss above its floor: largest |rate / (step size / norm of W*) - 1|",
                np.abs(data["log_excess_loss_rate"] - 1).max(), 0.02),
        at_least("step until which the printed bound on the cosine is vacuous, in runs",
                 vacuous_until / steps, 1.0),
        steps=steps,
        vacuous_until=vacuous_until,
    )  # fmt: skip


def _bound(data: xr.Dataset, step: np.ndarray) -> np.ndarray:
    """The printed bound on ``1 - cos``: ``54 N L^4 |W*|^4 log(t)^2 / (t eta)``."""
    norm = float(data["solution_norm"].mean())
    factor = 54 * data.attrs["samples"] * data.attrs["longest"] ** 4 * norm**4
    return factor * np.log(step) ** 2 / step / (0.05 / data.attrs["vocabulary"] ** 0.5)


def _vacuous_until(data: xr.Dataset) -> float:
    step = np.geomspace(10, 1e30, 4000)
    return float(step[np.flatnonzero(_bound(data, step) > 2).max()])


def _draw(data: xr.Dataset) -> Figure:
    figure, (left, middle, right) = panels_on_page(2.5, 1, 3)
    left.set(xscale="log", yscale="log")
    for start in STARTS:
        drawn = data["distance"].sel(start=start)
        band(left, drawn, "step", label=f"{start} start", look=STYLES[start])
    step = data["step"].values
    late = step[step >= 100]
    anchor = float(data["distance"].sel(start="Gaussian").isel(step=-1).median())
    left.plot(
        late, anchor * (late / late[-1]) ** -2.0 / 6, label="$t^{-2}$", **line_style("predicted")
    )
    envelope = np.log(late) ** 2 / late
    left.plot(late, envelope / envelope[0] * 0.8, label="$\\log^2 t / t$", **line_style("fitted"))
    left.set(xlabel="step of stage 2", ylabel=r"$1 - \cos(W_{kq}, W_{kq}^*)$")
    left.legend(loc="lower left")
    shown = int(min(step[-1], 20_000))
    titles = (
        (middle, "log_other_attention", "log of attention on other tokens"),
        (right, "log_excess_loss", "log of loss above its floor"),
    )
    for axes, name, label in titles:
        for start in STARTS:
            band(axes, data[name].sel(start=start), "step", look=STYLES[start])
        rate = 0.05 / data.attrs["vocabulary"] ** 0.5 / float(data["solution_norm"].mean())
        ends = np.array([0.0, shown])
        first = float(data[name].sel(start="zero").isel(step=0).median())
        axes.plot(
            ends, first - rate * ends, label=r"slope $-\eta / \|W^*\|$", **line_style("predicted")
        )
        axes.set(xlim=(0, shown), xlabel="step of stage 2", ylabel=label)
        axes.set_ylim(first - 1.1 * rate * shown, 2)
        axes.legend(loc="upper right")
    return figure


RATES = Figures(NEXT_TOKEN).figure(
    "rates",
    "how fast attention turns to its limit, against the bounds as printed",
    statement="convergence of the second stage: direction, attention and loss",
    published="none",
    sizes=by_size(seeds=5, vocabulary=20, steps=[5000, 30_000, 100_000]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "Rates of the second stage on {sizes[instance]} random realizable corpora of "
        "{attrs[vocabulary]} tokens, {steps:,} steps. Left: 1 - cos falls like t^-2 (slopes "
        "{smallest_slope:.3f} to {largest_slope:.3f}); the theorem promises log(t)^2 / t, drawn "
        "here without its constant, with which it says nothing before step {vacuous_until:.0e}. "
        "Middle and right: attention on tokens that do not explain the label, and the loss above "
        "what it is with all attention on those that do, fall exponentially, at the step size over "
        "the norm of the solution."
    ),
)
