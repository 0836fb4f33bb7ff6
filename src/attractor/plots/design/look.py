"""The style of all figures: one style file, one table of colors, one way to save."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from attractor.plots.design.figure import Figure as StyledFigure, write_out
from attractor.results.provenance import Provenance, embed
from attractor.support.storage import atomic_file

COLORS = {
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "yellow": "#E69F00",
    "black": "#222222",
    "gray": "#777777",
}
"""Okabe and Ito's colors, which color-blind readers can tell apart."""

SERIES = (
    {"color": COLORS["blue"], "linestyle": "-"},
    {"color": COLORS["orange"], "linestyle": "--"},
    {"color": COLORS["green"], "linestyle": "-."},
    {"color": COLORS["purple"], "linestyle": ":"},
)
"""Looks of curves drawn together: they differ in dash as well as in color."""

PREDICTED = COLORS["orange"]
"""The color of tokens and patches that theory predicts, in every figure."""
REACHED = COLORS["blue"]
"""The color of those that training reached, in every figure."""

PAGE = 6.9
"""Width of a figure across both columns of a printed page, in inches."""

_DECADES = 3
"""Decades of a logarithmic axis from which on minor ticks are thinned out."""

_SALT = "attractor"
"""What the style file says of ``svg.hashsalt``, and nobody else does."""
_STYLE = Path(__file__).with_name("attractor.mplstyle")


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Applies the style inside the block only.

    Functions that return a figure apply it themselves, and the figures keep it. Inside the block
    your own changes to ``matplotlib.rcParams`` hold for them, too.
    """
    with matplotlib.style.context(_STYLE, after_reset=True):
        yield
        interactive = matplotlib.is_interactive()
    # A notebook turns it on when its first figure is made, perhaps inside, and shows none without.
    matplotlib.interactive(interactive)


def style_of_figures() -> contextlib.AbstractContextManager[None]:
    """The style, unless it holds already, maybe with changes of the user's."""
    holds = matplotlib.rcParams["svg.hashsalt"] == _SALT
    return contextlib.nullcontext() if holds else style()


def panels_on_page(
    height: float, rows: int = 1, columns: int = 1, **arrangement: Any
) -> tuple[StyledFigure, Any]:
    """A figure across a page, and its panels.

    Args:
        height: Its height, in inches.
        rows: Rows of panels.
        columns: Panels in a row.
        **arrangement: Further arguments of ``Figure.subplots``, which says what panels come as.
    """
    figure = StyledFigure(figsize=(PAGE, height))
    return figure, figure.subplots(rows, columns, **arrangement)


def save_figure(
    figure: Figure, directory: Path, name: str, *, provenance: Provenance | None = None
) -> None:
    """Writes a figure as ``name.png`` and ``name.svg``, the same bytes every time.

    Args:
        figure: What to write.
        directory: The folder to write to.
        name: File name without its ending.
        provenance: Where the figure comes from; it is put into both files.
    """
    made_in = figure.its_style() if isinstance(figure, StyledFigure) else contextlib.nullcontext()
    with made_in:
        drawings = _drawings(figure)
    for suffix, drawing in drawings.items():
        with atomic_file(directory / f"{name}{suffix}") as temporary:
            temporary.write_bytes(drawing)
            if provenance is not None:
                embed(temporary, provenance)


def _drawings(figure: Figure) -> dict[str, bytes]:
    """The contents of both files; the figure has its layout engine, resolution and canvas again."""
    layout, dpi, canvas = figure.get_layout_engine(), figure.dpi, figure.canvas
    _thin_minor_ticks(figure)
    write_out(figure)
    try:
        dots = matplotlib.rcParams["savefig.dpi"]
        figure.dpi = dpi if dots == "figure" else dots
        if layout is not None and figure.axes:  # once for both: `savefig` would draw it four times
            layout.execute(figure)
        figure.set_layout_engine("none")
        png, svg = io.BytesIO(), io.BytesIO()
        FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
        return {".png": png.getvalue(), ".svg": svg.getvalue()}
    finally:
        figure.set_layout_engine(layout)
        figure.set_canvas(canvas)
        figure.dpi = dpi


def _thin_minor_ticks(figure: Figure) -> None:
    """Keeps the minor ticks at 2 and 5 alone where a logarithmic axis spans several decades.

    Eight in each decade run together there, and are half of the time of drawing a figure.
    """
    for axes in figure.axes:
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            minor = axis.get_minor_locator()
            if isinstance(minor, LogLocator) and math.log10(max(limits) / min(limits)) >= _DECADES:
                minor.set_params(subs=(2.0, 5.0))
