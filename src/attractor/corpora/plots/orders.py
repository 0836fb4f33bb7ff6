"""Query-dependent orders as layered graphs: what comes before what, from the top down."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from attractor.corpora import PartialOrders, QueryGraphs, TokenClass
from attractor.corpora.plots.collocation import (
    Box,
    Node,
    arrow,
    draw_nodes,
    layout,
    row_width,
    short,
)
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.plots.design.roles import ROLES, tint
from attractor.support.errors import InvalidInputError

MOST_QUERIES = 6
"""Queries drawn beside one another."""
_MOST_ARCS = 8
"""Relations on the cycles of one component that are drawn as arcs; a frame stands for more."""
_ON_CYCLE: dict[str, Any] = {"color": ROLES["cyclic"].color, "linewidth": 1.1}
_FRAME: dict[str, Any] = {
    "facecolor": tint(ROLES["cyclic"].color, 0.92),
    "edgecolor": ROLES["cyclic"].color,
    "linewidth": 1.1,
}
_TITLE = 0.22
_GAP = 0.16
_LEGEND = 0.3

_CLASS_ROLES = {
    TokenClass.OPTIMAL: "optimal",
    TokenClass.CONFUSED: "confused",
    TokenClass.NON_OPTIMAL: "non_optimal",
}
_Looks = Callable[[int, "Layers"], dict[int, dict[str, Any]]]
_COMPONENT_COLORS = tuple(COLORS[name] for name in ("sky", "yellow", "green", "purple"))


class Layers(NamedTuple):
    """The graph of one query, laid out by what comes before what.

    Attributes:
        tokens: Tokens of each layer, from the top; those with most relations first.
        component: The strongly connected component of each token.
        sizes: Number of tokens in each component.
    """

    tokens: list[list[int]]
    component: dict[int, int]
    sizes: np.ndarray


def layers_of(graphs: QueryGraphs, query: int) -> Layers:
    """Layers of the graph of one query.

    Tokens on a cycle share a layer; above it lie all that come before them, and tokens that come
    before none lie at the bottom.
    """
    edges = graphs.of(query)
    tokens, ends = np.unique(edges, return_inverse=True)
    sources, targets = ends.reshape(-1, 2).T
    size = len(tokens)
    graph = coo_array((np.ones(len(edges)), (sources, targets)), shape=(size, size))
    count, component = connected_components(graph.tocsr(), connection="strong")
    level = _longest_paths(count, component[sources], component[targets])[component]
    leaves = np.bincount(sources, minlength=size) == 0
    level[leaves] = max(level.max(), 1)
    degree = np.bincount(ends.ravel(), minlength=size)
    ranked = np.argsort(-degree, kind="stable")
    layers = [tokens[ranked[level[ranked] == number]].tolist() for number in np.unique(level)]
    return Layers(
        layers,
        dict(zip(tokens.tolist(), component.tolist(), strict=True)),
        np.bincount(component, minlength=count),
    )


def orders_figure(
    orders: PartialOrders, queries: Sequence[int] | None = None, *, width: float = PAGE
) -> Figure:
    """The order under each query as a layered graph: optimal tokens above, non-optimal ones below.

    Args:
        orders: The orders.
        queries: Which queries; default: those with most relations.
        width: Of the figure, in inches; the width of a column gives one graph a row.
    """
    shown = largest(orders) if queries is None else list(queries)

    def looks(query: int, _: Layers) -> dict[int, dict[str, Any]]:
        return {
            token: _box(ROLES[_CLASS_ROLES[kind]].color)
            for kind, tokens in orders.classes(query).items()
            if kind in _CLASS_ROLES
            for token in tokens
        }

    legend = [
        Patch(label=ROLES[role].label, **_box(ROLES[role].color)) for role in _CLASS_ROLES.values()
    ]
    return _figure(orders, shown, looks, legend, width)


def priority_figure(
    graphs: QueryGraphs, queries: Sequence[int] | None = None, *, width: float = PAGE
) -> Figure:
    """Graphs with their strongly connected components in color, and orange arrows on cycles.

    Where a component has many relations on cycles, a frame round its tokens stands for them, and
    its relations with other tokens are arrows of the frame.

    Args:
        graphs: The graphs, such as token-priority graphs.
        queries: Which queries; default: those with most relations on cycles, then most relations.
        width: Of the figure, in inches.
    """
    shown = largest(graphs) if queries is None else list(queries)

    def looks(_: int, layers: Layers) -> dict[int, dict[str, Any]]:
        large = [number for number in np.unique(list(layers.component.values()))
                 if layers.sizes[number] > 1]  # fmt: skip
        colors = {
            number: _COMPONENT_COLORS[place % len(_COMPONENT_COLORS)]
            for place, number in enumerate(large)
        }
        plain = {"facecolor": "white", "edgecolor": COLORS["gray"], "linewidth": 0.8}
        return {
            token: _box(colors[number]) if number in colors else plain
            for token, number in layers.component.items()
        }

    legend = [
        Patch(label="one color: one strongly connected component", **_box(_COMPONENT_COLORS[0])),
        Line2D([], [], label=ROLES["cyclic"].label, **_ON_CYCLE),
        Patch(label="many relations on cycles, in a frame", **_FRAME),
        Line2D([], [], color=COLORS["gray"], linewidth=0.7, label="other relation"),
    ]
    return _figure(graphs, shown, looks, legend, width)


def largest(graphs: QueryGraphs, most: int = MOST_QUERIES) -> list[int]:
    """The queries with most relations on cycles; of equal ones, those with most relations."""
    query = graphs.edges[:, 0]
    relations = np.bincount(query, minlength=graphs.size)
    cyclic = np.bincount(query[graphs.cyclic], minlength=graphs.size)
    order = np.lexsort((np.arange(graphs.size), -relations, -cyclic))
    return [token for token in order[:most].tolist() if relations[token]]


class _Drawing:
    """The graph of one query, with as many tokens of each layer as fit into a row."""

    def __init__(self, graphs: QueryGraphs, query: int, width: float) -> None:
        self.graphs, self.query, self.width = graphs, query, width
        self.layers = layers_of(graphs, query)
        self.shown: list[list[int]] = []
        self.hidden: list[int] = []
        for ranked in self.layers.tokens:
            count = self._fitting([graphs.vocabulary[token] for token in ranked])
            # Tokens of a component stand together.
            kept = sorted(ranked[:count], key=lambda token: (self.layers.component[token], token))
            self.shown.append(kept)
            self.hidden.append(len(ranked) - count)
        self.height = layout(self._nodes({}), width).height
        self.crowded = self._crowded()

    def _crowded(self) -> dict[int, int]:
        """Components with too many relations to draw an arc for each; how many each has."""
        of, kept = self.layers.component, {token for tokens in self.shown for token in tokens}
        all_of_them: Counter[int] = Counter()
        arcs: Counter[int] = Counter()
        for before, after in self.graphs.of(self.query).tolist():
            if of[before] == of[after] and before != after:
                all_of_them[of[before]] += 1
                arcs[of[before]] += before in kept and after in kept
        return {number: all_of_them[number] for number, count in arcs.items() if count > _MOST_ARCS}

    def draw(self, axes: Axes, looks: dict[int, dict[str, Any]]) -> None:
        nodes = self._nodes(looks)
        placed = layout(nodes, self.width)
        component = self.layers.component
        draw_nodes(axes, nodes, placed, self.width)
        boxes = {
            token: box
            for tokens, row in zip(self.shown, placed.boxes, strict=True)
            for token, box in zip(tokens, row, strict=False)
        }
        frames = {}
        for number, count in self.crowded.items():
            inside = [box for token, box in boxes.items() if component[token] == number]
            words = f"{self.layers.sizes[number]} tokens, {count} relations on cycles"
            frames[number] = _frame(axes, inside, words)
        drawn = set()
        for before, after in self.graphs.of(self.query).tolist():
            if not (before in boxes and after in boxes):
                continue
            source, target = component[before], component[after]
            if source == target and source in frames:
                continue
            look: Any = _ON_CYCLE if source == target else {}
            ends = boxes[before], boxes[after]
            if source in frames:  # one arrow from the frame for all of its tokens
                ends = frames[source].nearest(ends[1]), ends[1]
            if target in frames:
                ends = ends[0], frames[target].nearest(ends[0])
            if ends not in drawn:
                drawn.add(ends)
                arrow(axes, *ends, **look)
        relations = len(self.graphs.of(self.query))
        name = short(self.graphs.vocabulary[self.query])
        axes.set_title(
            f"query {name!r}: {relations:,} relation{'s' if relations > 1 else ''}",
            fontsize=7.5, pad=4, parse_math=False,
        )  # fmt: skip

    def _fitting(self, names: list[str]) -> int:
        """The number of words that fit into a row, beside a note on those left out."""
        if row_width(names) <= self.width:
            return len(names)
        count = 1
        while row_width([*names[: count + 1], f"+{len(names):,} more"]) <= self.width:
            count += 1
        return count

    def _nodes(self, looks: dict[int, dict[str, Any]]) -> list[list[Node]]:
        names = self.graphs.vocabulary
        return [
            [Node(names[token], looks.get(token, {}), token == self.query) for token in tokens]
            + ([Node(f"+{hidden:,} more", None)] if hidden else [])
            for tokens, hidden in zip(self.shown, self.hidden, strict=True)
        ]


def _frame(axes: Axes, boxes: Sequence[Box], words: str) -> Box:
    """Draws a frame round boxes of a row, with words above; returns it."""
    left = min(box.x - box.width / 2 for box in boxes) - 0.04
    right = max(box.x + box.width / 2 for box in boxes) + 0.04
    low, high = boxes[0].bottom[1] - 0.03, boxes[0].top[1] + 0.03
    # Above arrows, which begin at the boxes, and below the boxes.
    shape = "round,pad=0,rounding_size=0.06"
    axes.add_patch(
        FancyBboxPatch((left, low), right - left, high - low, shape, zorder=2.5, clip_on=False,
                       **_FRAME)
    )  # fmt: skip
    axes.text(left, high + 0.025, words, fontsize=5.5, color=ROLES["cyclic"].color)
    return Box((left + right) / 2, boxes[0].y, right - left)


def _figure(
    graphs: QueryGraphs, queries: list[int], looks: _Looks, legend: list[Any], width: float
) -> Figure:
    """Small multiples, laid out in inches; as many a row as leave nothing out."""
    columns, panel, drawings = _arranged(graphs, queries, width)
    rows = [drawings[start : start + columns] for start in range(0, len(drawings), columns)]
    heights = [max(drawing.height for drawing in row) + _TITLE + _GAP for row in rows]
    lines = math.ceil(len(legend) * 2.2 / width)
    total = sum(heights) + _LEGEND + 0.14 * (lines - 1)
    figure = Figure(figsize=(width, total))
    figure.set_layout_engine("none")
    top = total
    for row, height in zip(rows, heights, strict=True):
        for column, drawing in enumerate(row):
            low = top - _TITLE - _GAP / 2 - drawing.height
            left = _GAP + column * (panel + _GAP)
            axes = figure.add_axes(
                (left / width, low / total, panel / width, drawing.height / total),
                label=str(drawing.query),
            )
            drawing.draw(axes, looks(drawing.query, drawing.layers))
        top -= height
    columns = math.ceil(len(legend) / lines)
    figure.legend(handles=legend, loc="lower center", ncols=columns, bbox_to_anchor=(0.5, 0.0))
    return figure


def _arranged(
    graphs: QueryGraphs, queries: list[int], width: float
) -> tuple[int, float, list[_Drawing]]:
    """The number of graphs beside one another, the width of each, and the graphs."""
    most, least = (3, 2) if width > PAGE / 2 else (2, 1)
    for columns in range(min(most, len(queries)), 0, -1):
        panel = (width - _GAP * (columns + 1)) / columns
        drawings = [_Drawing(graphs, query, panel) for query in queries]
        if columns <= least or not any(any(drawing.hidden) for drawing in drawings):
            return columns, panel, drawings
    raise InvalidInputError("queries", "there are none", "Give queries that have relations")


def _box(color: str) -> dict[str, Any]:
    return {"facecolor": tint(color, 0.72), "edgecolor": color, "linewidth": 1.0}


def _longest_paths(count: int, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The length of the longest path to each node of an acyclic graph, loops aside."""
    across = sources != targets
    sources, targets = sources[across], targets[across]
    level = np.zeros(count, dtype=np.int64)
    for _ in range(count):
        raised = level.copy()
        np.maximum.at(raised, targets, level[sources] + 1)
        if (raised == level).all():
            break
        level = raised
    return level
