"""Training of linear decoders for the figures on them, and its four panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from attractor.corpora.linear import EmbeddedContexts, decoder_problem, measure_linear, train_linear
from attractor.margin import Solution, solve
from attractor.papers import Request, stacked
from attractor.plots import COLORS, DASH_DOTTED, DASHED, SOLID, band
from attractor.training import adam, gradient_descent, normalized_gradient_descent

OPTIMIZERS = {
    "gradient descent": gradient_descent(0.5),
    "normalized": normalized_gradient_descent(0.01),
    "Adam": adam(0.01, 0.9, 0.99, 1e-8),
}
"""The published optimizers and learning rates."""
STYLES: dict[str, dict[str, Any]] = {
    "gradient descent": {"color": COLORS["orange"], "linestyle": DASHED},
    "normalized": {"color": COLORS["blue"], "linestyle": SOLID},
    "Adam": {"color": COLORS["green"], "linestyle": DASH_DOTTED},
}
_RECORDS = 60


def solved(contexts: EmbeddedContexts) -> Solution:
    """The max-margin solutions of data sets."""
    return solve(decoder_problem(contexts))


def trained(
    request: Request,
    contexts: EmbeddedContexts,
    solution: Solution,
    optimizers: Sequence[str],
    **training: Any,
) -> xr.Dataset:
    """Trains by several optimizers and compares decoders with both limits.

    Args:
        request: The request for the figure, with ``steps`` among its settings.
        contexts: The data sets.
        solution: Their max-margin solutions.
        optimizers: Names of optimizers.
        **training: Further arguments of ``train_linear``.

    Returns:
        As ``measure_linear``, with a dimension ``optimizer``.
    """
    steps = request.settings["steps"]
    recorded = np.rint(np.geomspace(1, steps, _RECORDS)).astype(np.int64)
    runs = []
    for name in optimizers:
        run = train_linear(
            contexts,
            OPTIMIZERS[name],
            steps=steps,
            record=np.unique(recorded),
            seed=request.seed,
            checkpoint=request.checkpoint(name.replace(" ", "-")),
            progress=request.progress,
            **training,
        )
        runs.append(measure_linear(run, solution))
    return stacked(runs, "optimizer", optimizers)


def panels(axes: Sequence[Axes], data: xr.Dataset) -> None:
    """Draws loss above the entropy, norm, direction and finite part against the step.

    The first and the third have labels for a legend.

    Args:
        axes: Four of them.
        data: The data that ``trained`` returns.
    """
    loss, norm, direction, finite = axes
    for one in axes:
        one.set(xscale="log", xlabel="step")
    for one in (loss, finite):
        one.set_yscale("log")
    direction.axhline(1, linewidth=0.6, color=COLORS["gray"])
    for name in data["optimizer"].values:
        curves = data.sel(optimizer=name)
        band(loss, curves["excess_loss"], "step", label=str(name), look=STYLES[name])
        band(norm, curves["norm"], "step", look=STYLES[name])
        band(finite, curves["relative_finite_error"], "step", look=STYLES[name])
        band(direction, curves["correlation_without_finite_part"], "step", look=STYLES[name])
        faint: Any = STYLES[name] | {"linewidth": 0.8, "alpha": 0.7}
        center = curves["correlation"].median(("instance", "seed"))
        direction.plot(curves["step"], center, **faint)
    gray: Any = {"color": COLORS["gray"], "linestyle": SOLID}
    direction.plot([], [], label="cosine of $W - W^*$", **gray)
    direction.plot([], [], label="cosine of $W$", linewidth=0.8, alpha=0.7, **gray)
    norm.set_ylim(0, None)
    loss.set_title("loss above the entropy")
    norm.set_title(r"norm $\|W\|$")
    direction.set_title(r"cosine with $W_{mm}$")
    finite.set_title(r"$\|P_F W - W^*\| \; / \; \|W^*\|$")


def ends(data: xr.Dataset, unit: str = "") -> str:
    """Means of the measures of each optimizer at the last step, in words.

    Args:
        data: The data that ``trained`` returns.
        unit: Unit of the distance from the finite part, if it is to be named.
    """
    last = data.isel(step=-1)
    return "; ".join(
        f"{name}: cosine {end['correlation'].mean():.3f}, less the finite part "
        f"{end['correlation_without_finite_part'].mean():.3f}, loss above the entropy "
        f"{end['excess_loss'].mean():.1e}, finite part off by "
        f"{end['relative_finite_error'].mean():.3f}{unit}"
        for name in data["optimizer"].values
        for end in [last.sel(optimizer=name)]
    )
