"""``Figure``: one that looks the same wherever it is shown and however it is saved."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

import matplotlib
import matplotlib.figure
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

from attractor.plots.design.description import description
from attractor.results.html import picture
from attractor.results.visible import visible

_SHARPNESS = 2
"""Pixels of a picture, either way, for each one that a notebook shows."""
_NOT_OF_FIGURES = {"backend", "backend_fallback", "interactive", "toolbar"}


def write_out(figure: matplotlib.figure.Figure) -> None:
    """Has characters that do not show, in words from files, written out in all texts of a figure.

    An SVG with control characters is none, and marks of the direction would turn words around.
    """
    for text in figure.findobj(Text):
        if (said := visible(text.get_text())) != text.get_text():
            text.set_text(said)
    for axis in figure.findobj(Axis):
        if isinstance(axis.get_major_locator(), FixedLocator):  # its formatter has the words
            labels = [label.get_text() for label in axis.get_ticklabels()]
            if (said := [visible(label) for label in labels]) != labels:
                axis.set_ticklabels(said)


class Figure(matplotlib.figure.Figure):
    """A figure in the style that it was made in.

    matplotlib reads fonts, ticks and more when it draws, long after a figure was made: then what
    held when it was made holds again. Notebooks show it without pyplot.

    Attributes:
        description: What is seen in it, for those who cannot see it; empty where nothing is said.
    """

    description: str = ""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        """Makes an empty figure, and keeps the style that holds now."""
        super().__init__(*arguments, **named)
        now = dict.items(matplotlib.rcParams)  # whose own way would choose a backend
        self._style = {key: value for key, value in now if key not in _NOT_OF_FIGURES}

    def its_style(self) -> contextlib.AbstractContextManager[None]:
        """The style that it was made in, to hold inside a block."""
        return matplotlib.rc_context(self._style)

    def draw(self, renderer: Any) -> None:
        """Draws it in its style."""
        write_out(self)
        with self.its_style():
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Saves it in its style, as matplotlib does."""
        with self.its_style():
            super().savefig(fname, **options)

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]] | None:
        """The picture, with the size to show it in; None where pyplot shows all figures."""
        if "matplotlib_inline.backend_inline" in sys.modules:
            return None
        stream, canvas = io.BytesIO(), self.canvas
        try:
            FigureCanvasAgg(self).print_figure(stream, format="png", dpi=_SHARPNESS * self.dpi)
        finally:
            self.set_canvas(canvas)
        width, height = (round(pixels) for pixels in self.bbox.size)
        said = {"alt": self.description} if self.description else {}
        return stream.getvalue(), {"width": width, "height": height} | said

    def _repr_html_(self) -> str | None:
        """The same picture with what is seen in it, which notebooks read aloud."""
        shown = self._repr_png_()
        said = self.description or description(self)
        return None if shown is None else picture(shown[0], said, shown[1]["width"])
