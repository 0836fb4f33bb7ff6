"""Training on a corpus, compared with the directions predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from attractor.plots.design.figure import Figure
from attractor.plots.design.look import panels_on_page
from attractor.plots.design.roles import line_style
from attractor.results import axis_of

_SHOWN = 1e-17
"""Smaller distances are rounding, and have no place on the axis."""


def two_stage_figure(data: xr.Dataset) -> Figure:
    """Both layers on their way to their directions, their losses, and the attention kept.

    Args:
        data: What ``measure_two_stages`` returns; its first instance is drawn.
    """
    one = data.isel(instance=0)
    figure, (distance, loss, attention) = panels_on_page(2.3, 1, 3)
    stages = (("feed_forward_", "feed_forward_step"), ("", "step"))
    for (prefix, along), role in zip(stages, ("feed_forward", "attention"), strict=True):
        steps = one[along].values
        style: Any = line_style(role)
        _curve(distance, steps, one[f"{prefix}distance"].values, **style)
        _curve(loss, steps, one[f"{prefix}loss"].values, label=_LABELS[role], **style)
    least = one["least_optimal_attention"].values
    attention.plot(one["step"].values, least, **line_style("attention"))
    attention.set_xscale("symlog", linthresh=1)
    attention.set_ylim(-0.03, 1.05)
    distance.set_title("1 \N{MINUS SIGN} cosine to the solution")
    loss.set_title("loss")
    attention.set_title("attention on optimal\ntokens, least of all samples")
    for axes in (distance, loss, attention):
        axes.set_xlabel("iteration of the stage")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def limits_figure(data: xr.Dataset) -> Figure:
    """Attention on its way to a direction and to a finite part, and the loss to its floor.

    Args:
        data: What ``measure_limits`` returns; its first trial is drawn.
    """
    one = data.isel(instance=0, seed=0)
    along = axis_of(one)
    steps = one[along].values
    figure, (distance, finite, loss) = panels_on_page(2.3, 1, 3)
    _curve(distance, steps, 1 - one["correlation"].values, label="whole matrix",
           **line_style("as_published"))  # fmt: skip
    _curve(distance, steps, 1 - one["correlation_outside"].values, label="without cyclic part",
           **line_style("attention"))  # fmt: skip
    distance.set_title("1 \N{MINUS SIGN} cosine to the direction")
    distance.legend()
    finite.plot(steps, one["cyclic_norm"].values, label="its norm", **line_style("as_published"))
    finite.plot(
        steps, one["finite_distance"].values, label="distance from the\npredicted finite part",
        **line_style("attention"),
    )  # fmt: skip
    finite.set_xscale("symlog", linthresh=1)
    finite.set_ylim(0, 1.5 * finite.get_ylim()[1])
    finite.set_title("part in the cyclic subspace")
    finite.legend(loc="upper center")
    _curve(loss, steps, np.exp(one["log_excess"].values), **line_style("attention"))
    loss.set_title("loss above its floor")
    for axes in (distance, finite, loss):
        axes.set_xlabel("iteration")
    return figure


_LABELS = {"feed_forward": "feed-forward layer (first stage)", "attention": "attention (second)"}


def _curve(axes: Axes, steps: np.ndarray, values: np.ndarray, **style: Any) -> None:
    """A curve on logarithmic axes; values too small for them are left out."""
    shown = (steps > 0) & (values > _SHOWN)
    axes.loglog(steps[shown], values[shown], **style)
