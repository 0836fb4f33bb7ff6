"""Words in boxes and layers with arrows between them: the collocation as chains of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch
from matplotlib.textpath import TextPath

from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.plots.design.roles import tint

if TYPE_CHECKING:
    from attractor.corpora import Collocation


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


MOST_TOKENS = 80
"""Tokens drawn; of more, only so many chains."""

_ARROW, _LINE, _MARGIN, _APART, _NOTE, _LEGEND = 0.2, 0.34, 0.12, 0.35, 0.16, 0.26
_Point = tuple[float, float]
_OWN: dict[str, Any] = {"facecolor": tint(COLORS["blue"], 0.72), "edgecolor": COLORS["blue"]}
_AGAIN: dict[str, Any] = {
    "facecolor": "white",
    "edgecolor": COLORS["gray"],
    "linestyle": (0, (2, 1.2)),
}
_SHARED: dict[str, Any] = {"facecolor": tint(COLORS["orange"], 0.72), "edgecolor": COLORS["orange"]}


class Chain(NamedTuple):
    """Tokens, each followed by the next.

    Attributes:
        tokens: The tokens.
        end: What follows the last one, which stands elsewhere; None where nothing is known to.
        cycle: Whether that is the first one of them.
    """

    tokens: list[int]
    end: int | None
    cycle: bool


def chains(collocation: Collocation) -> list[Chain]:
    """Divides the tokens into chains, every token in one; cycles first, then longer ones."""
    follower = collocation.next_token
    seen: set[int] = set()
    followed = np.bincount(follower[follower >= 0], minlength=len(follower)) > 0
    # What nothing comes before starts a chain; what is left then are cycles.
    starts = [*np.flatnonzero(~followed & (follower >= 0)).tolist(), *range(len(follower))]
    found = []
    for start in starts:
        if start in seen or follower[start] < 0:
            continue
        tokens, token = [], start
        while token not in seen:
            seen.add(token)
            tokens.append(token)
            if follower[token] < 0:
                break
            token = int(follower[token])
        end = None if follower[tokens[-1]] < 0 else int(follower[tokens[-1]])
        found.append(Chain(tokens, end, end == tokens[0]))
    return sorted(found, key=lambda chain: (not chain.cycle, -len(chain.tokens)))


def collocation_figure(collocation: Collocation, *, width: float = PAGE) -> Figure:
    """Draws which token follows which, as chains; a cycle ends in the token it began with.

    Args:
        collocation: The collocation; at least one token has one.
        width: Of the figure, in inches.
    """
    chained = ChainDrawing(collocation, width)
    handles = [
        Patch(label="token", **_OWN),
        *([Patch(label="follows several tokens", **_SHARED)] if chained.shared else []),
        Patch(label="drawn elsewhere", **_AGAIN),
    ]
    foot = _LEGEND * (1 if width > PAGE / 2 else len(handles) / 2)
    height = chained.height + foot
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("none")
    chained.draw(figure.add_axes((0, foot / height, 1, chained.height / height)))
    columns = len(handles) if width > PAGE / 2 else 2
    figure.legend(handles=handles, loc="lower center", ncols=columns)
    return figure


class ChainDrawing:
    """The chains of a collocation, laid out in lines; measured in inches.

    Attributes:
        height: The height that they take.
        shared: Tokens that follow several ones.
    """

    def __init__(
        self, collocation: Collocation, width: float, look: Mapping[str, Any] = _OWN
    ) -> None:
        """Places chains.

        Args:
            collocation: The collocation; at least one token has one.
            width: Of the axes, in inches.
            look: Properties of the boxes of tokens.
        """
        self._look = look
        self.shared = set(collocation.shared.tolist())
        self._names, self._width = collocation.vocabulary, width
        shown, self._left = _shown(chains(collocation))
        self._boxes, self._arrows, self._low = _placed(shown, self._names, width)
        self.height = _LINE - self._low + (_NOTE if self._left else 0.0)

    def draw(self, axes: Axes) -> None:
        """Draws them, and makes an inch of the axes an inch."""
        axes.set(xlim=(0, self._width), ylim=(_LINE / 2 - self.height, _LINE / 2))
        axes.set_axis_off()
        _draw_arrows(axes, self._arrows)
        for x, y, token, own in self._boxes:
            style = _AGAIN if not own else _SHARED if token in self.shared else self._look
            _draw_box(axes, x, y, self._names[token], style)
        if self._left:
            words = f"and {self._left:,} more tokens"
            place = self._low - _LINE / 2 - _NOTE / 2
            axes.text(_MARGIN, place, words, fontsize=FONT, style="italic", color="#555555")


def _draw_arrows(axes: Axes, arrows: list[tuple[_Point, _Point]]) -> None:
    for source, target in arrows:
        look: Any = {"arrowstyle": "-|>", "mutation_scale": 5, "shrinkA": 0.5, "shrinkB": 0.5}
        axes.add_patch(FancyArrowPatch(source, target, color=COLORS["gray"], linewidth=0.8, **look))


def _draw_box(axes: Axes, x: float, y: float, name: str, style: Mapping[str, Any]) -> None:
    wide = box_width(name)
    axes.add_patch(
        FancyBboxPatch(
            (x, y - _HEIGHT / 2), wide, _HEIGHT, "round,pad=0,rounding_size=0.05",
            zorder=3, **({"linewidth": 1.0} | dict(style)),
        )
    )  # fmt: skip
    axes.text(
        x + wide / 2, y, short(name), ha="center", va="center_baseline", fontsize=FONT, zorder=4,
        parse_math=False,
    )  # fmt: skip


def _placed(
    shown: list[Chain], names: tuple[str, ...], width: float
) -> tuple[list[tuple[float, float, int, bool]], list[tuple[_Point, _Point]], float]:
    """Left ends of boxes with their tokens, arrows between them, and how low the last line is."""
    boxes: list[tuple[float, float, int, bool]] = []
    arrows: list[tuple[_Point, _Point]] = []
    x, y = _MARGIN, 0.0
    for chain in shown:
        links = list(_links(chain))
        wide = sum(box_width(names[token]) for token, _ in links) + _ARROW * (len(links) - 1)
        if x > _MARGIN and x + wide > width - _MARGIN:
            x, y = _MARGIN, y - _LINE
        for place, (token, own) in enumerate(links):
            one = box_width(names[token])
            if place:
                if x + _ARROW + one > width - _MARGIN:
                    arrows.append(((x, y), (x + 0.8 * _ARROW, y)))
                    x, y = 3 * _MARGIN, y - 0.8 * _LINE
                arrows.append(((x, y), (x + _ARROW, y)))
                x += _ARROW
            boxes.append((x, y, token, own))
            x += one
        x += _APART
    return boxes, arrows, y


def _links(chain: Chain) -> Iterator[tuple[int, bool]]:
    """The tokens of a chain, and whether they stand there or elsewhere."""
    for token in chain.tokens:
        yield token, True
    if chain.end is not None:
        yield chain.end, False


def _shown(found: list[Chain]) -> tuple[list[Chain], int]:
    """As many chains as can be drawn, and how many tokens are left out."""
    total = sum(len(chain.tokens) for chain in found)
    shown: list[Chain] = []
    for chain in found:
        most = MOST_TOKENS - sum(len(one.tokens) for one in shown)
        if most <= 0:
            break
        # The rest of a chain that is cut is replaced by the token that comes next.
        cut = chain.tokens[:most]
        end = chain.end if len(cut) == len(chain.tokens) else chain.tokens[most]
        shown.append(Chain(cut, end, chain.cycle))
    return shown, total - sum(len(chain.tokens) for chain in shown)
