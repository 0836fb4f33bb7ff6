"""One solution of a margin problem: the matrix, its singular values, and its margins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PREDICTED, REACHED, panels_on_page
from attractor.plots.geometries import geometry_label, solution_map
from attractor.plots.logarithmic import plain_numbers
from attractor.support.errors import InvalidInputError

if TYPE_CHECKING:
    from attractor.margin import Solution

_FAR = 100.0
"""Ratio of the largest margin to the smallest from which on the axis of margins is logarithmic."""

_ROOM = 1.4
"""Height of the axis of margins over theirs: margins grow to the right, and a legend fits above."""
_LONG = 2
"""A side of a matrix over the other from which on its cells are not square."""


def _margin_curve(axes: Axes, solution: Solution) -> None:
    """Draws the margins of a matrix, the smallest first, and which constraints hold it.

    Margins are ``a_j^T W b_j`` over their bounds, or as they are where bounds are zero. Equalities
    are left out, as they are met by construction.

    Args:
        axes: Where to draw.
        solution: One solution, without an axis of instances.

    Raises:
        InvalidInputError: If it holds several, or no matrix.
    """
    _check(solution)
    problem = solution.problem
    given = problem.present & ~problem.equality
    bounds = np.where(problem.bounds > 0, problem.bounds, 1.0)
    margins = (problem.margins(solution.W) / bounds)[given]
    support = solution.support[given]
    order = np.argsort(margins, kind="stable")
    margins, support = margins[order], support[order]
    place = np.arange(1, margins.size + 1)
    size = 16 if margins.size <= 200 else 5
    for chosen, color, words in (
        (~support, REACHED, "others"), (support, PREDICTED, "support: at their bound"),
    ):  # fmt: skip
        style: Any = {"color": color, "s": size, "linewidths": 0}
        label = f"{words} ({int(chosen.sum()):,})"
        axes.scatter(place[chosen], margins[chosen], label=label, **style)
    if margins.size and margins.min() > 0 and margins.max() > _FAR * margins.min():
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
        axes.set_ylim(None, margins.max() ** _ROOM * margins.min() ** (1 - _ROOM))
    else:
        low, high = margins.min(initial=0.0), margins.max(initial=1.0)
        axes.set_ylim(low, low + _ROOM * (high - low))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set(xlabel="constraint, smallest margin first", ylabel=r"$a_j^\top W b_j$ over its bound")


def singular_values(axes: Axes, solution: Solution) -> None:
    """Draws the singular values of a matrix, those that make its rank filled.

    Args:
        axes: Where to draw.
        solution: One solution, without an axis of instances.

    Raises:
        InvalidInputError: If it holds several, or no matrix.
    """
    _check(solution)
    values = np.linalg.svd(solution.W, compute_uv=False)
    rank = int(solution.rank)
    place = np.arange(1, values.size + 1)
    counted = place <= (rank if rank >= 0 else values.size)
    axes.bar(place[counted], values[counted], color=COLORS["blue"], width=0.8)
    axes.bar(place[~counted], values[~counted], color=COLORS["gray"], width=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set(xlabel="number", ylabel="singular value")


def solution_figure(solution: Solution) -> Figure:
    """The matrix of a solution, its singular values, and the margins of all constraints.

    Args:
        solution: One solution, without an axis of instances.

    Raises:
        InvalidInputError: If it holds several, or no matrix.
    """
    _check(solution)
    figure, (matrix, values, margins) = panels_on_page(
        2.1, 1, 3, width_ratios=[1.25, 0.85, 1.2], squeeze=True
    )
    image = solution_map(matrix, xr.DataArray(solution.W, dims=("row", "column")))
    bar = figure.colorbar(image, ax=matrix, shrink=0.85, aspect=14, pad=0.04, ticks=[-1, 0, 1])
    bar.set_label(f"entry over the largest,\n{np.abs(solution.W).max():.3g}")
    if max(solution.W.shape) > _LONG * min(solution.W.shape):
        matrix.set_aspect("auto")
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    norm = geometry_label(solution.geometry.name)
    matrix.set_title(f"W, {norm} norm {solution.norm:.4g}")
    singular_values(values, solution)
    values.set_title(_rank_in_words(solution))
    _margin_curve(margins, solution)
    margins.set_title(f"margins; relative gap {solution.gap:.1e}")
    margins.legend(loc="upper left")
    return figure


def _rank_in_words(solution: Solution) -> str:
    rank, most = int(solution.rank), min(solution.problem.shape)
    if rank < 0:
        return ""
    exact = solution.rank_evidence is not None or rank in (0, most)
    return f"rank {rank}" if exact else f"rank at least {rank}"


def _check(solution: Solution) -> None:
    """Refuses what is not one solution with a matrix."""
    if solution.problem.instances is not None:
        raise InvalidInputError(
            "solution", f"it holds {len(solution)} instances", "Take one of them: solution[0]"
        )
    if not np.isfinite(solution.W).all():
        raise InvalidInputError(
            "solution",
            f"it is {solution.status} and has no matrix",
            "Its conflict says which constraints contradict each other",
        )
