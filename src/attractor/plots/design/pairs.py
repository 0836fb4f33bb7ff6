"""Panels that belong together: "exact" beside "as published", letters, one legend for all."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend

from attractor.plots.design.roles import ROLES
from attractor.support.errors import InvalidInputError


def beside(
    figure: Figure | SubFigure,
    exact: Callable[[Axes], None],
    as_published: Callable[[Axes], None],
    *,
    subject: str = "",
    letters: str = "",
) -> tuple[Axes, Axes]:
    """Draws two panels on the same axes, the exact one to the left of the published one.

    For several such rows, give a subfigure of ``figure.subfigures(rows)`` at a time.

    Args:
        figure: Where to put them.
        exact: Draws the exact panel.
        as_published: Draws the other.
        subject: What both show; written before "exact" and "as published".
        letters: Two panel letters, such as ``"ab"``; none if empty.
    """
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, draw, role in ((left, exact, "exact"), (right, as_published, "as_published")):
        draw(axes)
        title = f"{subject}, {ROLES[role].label}" if subject else ROLES[role].label
        axes.set_title(title, loc="left")
    right.set_ylabel("")
    if letters:
        panel_letters((left, right), letters)
    return left, right


def panel_letters(panels: Iterable[Axes], letters: str = string.ascii_lowercase) -> None:
    """Puts (a), (b), ... in bold before the titles of panels, in the order given.

    Args:
        panels: The panels.
        letters: The letters.
    """
    for axes, letter in zip(panels, letters, strict=False):
        axes.set_title(
            rf"$\mathbf{{({letter})}}$ {axes.get_title(loc='left')}".rstrip(), loc="left"
        )


def shared_legend(
    figure: Figure | SubFigure,
    panels: Iterable[Axes],
    *,
    where: Literal["lower", "upper"] = "lower",
    columns: int | None = None,
    handles: Iterable[Artist | Container] = (),
) -> Legend:
    """One legend of all that panels show, each entry once, outside of them.

    Args:
        figure: Where to put it.
        panels: Whose entries it has.
        where: ``"lower"`` or ``"upper"``.
        columns: Entries in a row; as many as fit if None.
        handles: Further entries.

    Raises:
        InvalidInputError: If there is no entry.
    """
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    entries |= {str(handle.get_label()): handle for handle in handles}
    if not entries:
        raise InvalidInputError("panels", "they show nothing with a label", "Label what is drawn")
    most = len(entries) if columns is None else columns
    legend = _legend(figure, entries, where, most)
    while columns is None and most > 1 and legend.get_window_extent().width > figure.bbox.width:
        legend.remove()
        most = math.ceil(len(entries) / (math.ceil(len(entries) / most) + 1))
        legend = _legend(figure, entries, where, most)
    return legend


def _legend(
    figure: Figure | SubFigure,
    entries: Mapping[str, Any],
    where: Literal["lower", "upper"],
    columns: int,
) -> Legend:
    """The legend with its entries row by row; by itself it would fill columns."""
    order = [label for first in range(columns) for label in list(entries)[first::columns]]
    layout: Any = {"loc": f"outside {where} center", "ncols": columns, "borderaxespad": 0.2}
    layout |= {"columnspacing": 1.4, "handletextpad": 0.6}
    return figure.legend([entries[label] for label in order], order, **layout)
