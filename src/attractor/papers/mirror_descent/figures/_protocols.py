"""Protocols of the synthetic experiments, exact and as published, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attractor.attention import LinearHead
from attractor.papers.figure import Request
from attractor.papers.mirror_descent.data import EXPONENTS, LEARNING_RATE, PUBLISHED_EPS, STEPS
from attractor.plots.design.roles import line_style
from attractor.tokens import Tokens
from attractor.training import Trajectory, mirror_descent, train


class Protocol(NamedTuple):
    """A way to train.

    Attributes:
        name: Its name in figures.
        kernel: The kernel of gradients.
        eps: The constant added to the norm that divides them.
    """

    name: str
    kernel: str
    eps: float


EXACT = Protocol("exact", "exact", 0.0)
PUBLISHED = Protocol("as published", "plain", PUBLISHED_EPS)
EXACT_WITH_EPS = Protocol("exact with eps", "exact", PUBLISHED_EPS)
STOPPED = line_style("as_published", linewidth=1.0, marker="o", markevery=[-1], markersize=3.5)
"""The look of published runs, which stop short of their limit."""


def trained(
    request: Request,
    protocol: Protocol,
    tokens: Tokens,
    head: LinearHead,
    p: float,
    **arguments: Any,
) -> Trajectory:
    """Trains by mirror descent for the published number of steps of an exponent.

    Args:
        request: The request of a figure.
        protocol: The protocol.
        tokens: The data.
        head: Their head.
        p: The exponent.
        **arguments: Further arguments of ``train``.
    """
    return train(
        tokens,
        head,
        mirror_descent(LEARNING_RATE, p, eps=protocol.eps),
        steps=STEPS[p],
        kernel=protocol.kernel,
        checkpoint=request.checkpoint(f"{protocol.name} {p:g}".replace(" ", "-")),
        **{"progress": request.progress, **arguments},
    )


def legend_of_exponents(figure: Figure, data: xr.Dataset, label: Callable[[float], str]) -> None:
    """Draws a legend of every exponent, and of published runs where data have them.

    Args:
        figure: The figure.
        data: Over ``kernel``.
        label: The label of an exponent.
    """
    handles = [Line2D([], [], label=label(p), **line_style(f"l_{p:g}")) for p in EXPONENTS]
    if PUBLISHED.name in data["kernel"]:
        handles.append(Line2D([], [], label=PUBLISHED.name, **STOPPED))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
