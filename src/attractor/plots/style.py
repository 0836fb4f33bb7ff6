"""How every figure looks: one style file, one table of colors, one way to save."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import matplotlib.style
from matplotlib.figure import Figure

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
"""The color of what theory predicts, in every figure."""
REACHED = COLORS["blue"]
"""The color of what training reached, in every figure."""

_STYLE = Path(__file__).with_name("attractor.mplstyle")


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Applies the style inside the block only; figures must be made and saved inside."""
    with matplotlib.style.context(_STYLE):
        yield


def save_figure(figure: Figure, directory: Path, name: str) -> None:
    """Writes a figure as ``name.png`` and ``name.svg``, the same bytes every time."""
    figure.savefig(directory / f"{name}.png", metadata={"Software": None})
    figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
