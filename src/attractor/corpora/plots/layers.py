"""Words in boxes, in layers above one another, with arrows between them; measured in inches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.textpath import TextPath

from attractor.plots.design.look import COLORS

FONT = 6.5
"""Size of the words, in points."""
_LONGEST = 14
_INSIDE = 0.05
_HEIGHT = 0.17
_BETWEEN = 0.1
_GAP = 0.36
_TOP = 0.14
_BOTTOM = 0.06


class Node(NamedTuple):
    """A word to be drawn.

    Attributes:
        name: The word.
        look: Properties of the box; None for a word without a box.
        bold: Whether it stands out.
    """

    name: str
    look: Mapping[str, Any] | None
    bold: bool = False


class Box(NamedTuple):
    """The box of a word: its center and its width, in inches."""

    x: float
    y: float
    width: float

    @property
    def top(self) -> tuple[float, float]:
        """The middle of the upper edge."""
        return self.x, self.y + _HEIGHT / 2

    @property
    def bottom(self) -> tuple[float, float]:
        """The middle of the lower edge."""
        return self.x, self.y - _HEIGHT / 2

    def nearest(self, other: Box) -> Box:
        """A box as narrow as a point within this one, as near to another one as can be."""
        half = max(self.width / 2 - 2 * _INSIDE, 0)
        return Box(min(max(other.x, self.x - half), self.x + half), self.y, 0.0)


class Layout(NamedTuple):
    """The boxes of all words, with the height that they take."""

    boxes: list[list[Box]]
    height: float


def layout(layers: Sequence[Sequence[Node]], width: float) -> Layout:
    """Places layers below one another, each in a row.

    Args:
        layers: The words of each layer, from the top.
        width: Of the axes, in inches.
    """
    height = _TOP + len(layers) * (_HEIGHT + _GAP) - _GAP + _BOTTOM
    y = height - _TOP - _HEIGHT / 2
    placed: list[list[Box]] = []
    for layer in layers:
        widths = [box_width(node.name) for node in layer]
        left = (width - row_width([node.name for node in layer])) / 2
        boxes = []
        for one in widths:
            boxes.append(Box(left + one / 2, y, one))
            left += one + _BETWEEN
        placed.append(boxes)
        y -= _HEIGHT + _GAP
    return Layout(placed, height)


def draw_nodes(axes: Axes, layers: Sequence[Sequence[Node]], placed: Layout, width: float) -> None:
    """Draws the words, and makes an inch of the axes an inch."""
    axes.set(xlim=(0, width), ylim=(0, placed.height))
    axes.set_axis_off()
    for nodes, boxes in zip(layers, placed.boxes, strict=True):
        for node, box in zip(nodes, boxes, strict=True):
            if node.look is not None:
                corner = (box.x - box.width / 2, box.y - _HEIGHT / 2)
                shape = "round,pad=0,rounding_size=0.05"
                axes.add_patch(
                    FancyBboxPatch(corner, box.width, _HEIGHT, shape, zorder=3, **node.look)
                )
            style: Any = {"weight": "bold"} if node.bold else {}
            if node.look is None:
                plain = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
                style = {"style": "italic", "color": "#555555", "bbox": plain}
            axes.text(
                box.x, box.y, short(node.name), ha="center", va="center_baseline", fontsize=FONT,
                zorder=4, parse_math=False, **style,
            )  # fmt: skip


def arrow(axes: Axes, source: Box, target: Box, **look: Any) -> None:
    """Draws an arrow: straight between layers; within a row in an arc, above it to the right."""
    bend = 0.0
    if source.y == target.y:
        distance = abs(source.x - target.x)
        bend = -(0.14 + 0.06 * min(distance, 2)) / max(distance, 0.1)
        right = source.x < target.x
        ends = (source.top, target.top) if right else (source.bottom, target.bottom)
    elif source.y > target.y:
        ends = (source.bottom, target.top)
        if source.y - target.y > 1.5 * (_HEIGHT + _GAP):  # past the words of a layer between
            bend = 0.16 if target.x <= source.x else -0.16
    else:
        ends = (source.top, target.bottom)
    properties: Any = {"color": COLORS["gray"], "linewidth": 0.7, "zorder": 2} | look
    axes.add_patch(
        FancyArrowPatch(
            *ends, arrowstyle="-|>", mutation_scale=5, shrinkA=0.5, shrinkB=0.5, clip_on=False,
            connectionstyle=f"arc3,rad={bend}", **properties,
        )
    )  # fmt: skip


def row_width(names: Sequence[str]) -> float:
    """The width of words in a row, in inches."""
    return sum(map(box_width, names)) + _BETWEEN * (len(names) - 1)


def short(name: str) -> str:
    """A word, cut where it is too long."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


@cache
def text_width(text: str, size: float = FONT) -> float:
    """The width of a text in inches."""
    path = TextPath((0, 0), text, size=size, prop=FontProperties(), usetex=False)
    return path.get_extents().width / 72 if text.strip() else 0.1


def box_width(name: str) -> float:
    """The width of the box round a word, in inches."""
    return text_width(short(name).replace("$", r"\$")) + 2 * _INSIDE
