"""What a corpus says before any training: its collocation, and the order under each query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Patch

from attractor.corpora import Collocation, Corpus, PartialOrders, TokenClass, load_corpus
from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.plots.collocation import (
    Box,
    ChainDrawing,
    Layout,
    Node,
    arrow,
    box_width,
    draw_nodes,
    layout,
    row_width,
    short,
)
from attractor.corpora.plots.orders import largest
from attractor.corpora.structures.structure import REALIZABILITY
from attractor.papers.figure import Figures, Readings, Request, at_most, by_size
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS, PAGE
from attractor.plots.design.pairs import panel_letters
from attractor.plots.design.roles import ROLES, tint
from attractor.results.paper import NEXT_TOKEN
from attractor.support.errors import InvalidInputError

_SENTENCES = ("dogs chase cats .", "chase cats .", "cats . .", ". dogs chase")
"""The example of the paper: subject, verb, object and punctuation, in four sentences."""
_ROLES = {
    TokenClass.OPTIMAL: "optimal",
    TokenClass.CONFUSED: "confused",
    TokenClass.NON_OPTIMAL: "non_optimal",
    TokenClass.NON_COMPARABLE: "non_comparable",
}
"""Those in relations from the top down, and non-comparable ones beside them."""
_FOLLOWER = {"facecolor": "white", "edgecolor": COLORS["black"], "linewidth": 0.8}
_PLAIN = {"facecolor": "white", "edgecolor": COLORS["gray"], "linewidth": 0.8}
_MOST_SENTENCES, _LONGEST_SENTENCE = 4, 16
_MOST_CONTEXTS = 3
"""Contexts drawn of each query, the shortest ones."""
_MOST_BESIDE = 3
"""Non-comparable tokens drawn of each query."""
_MOST_COLUMNS, _MOST_IN_LEGEND = 4, 5
_GAP, _TITLE, _LEGEND, _LINE = 0.16, 0.24, 0.3, 0.26
_BETWEEN, _ARROW, _APART, _EDGE = 0.04, 0.2, 0.22, 0.02
_LEFT_OUT = "\N{HORIZONTAL ELLIPSIS}"


def _example() -> CorpusCase:
    corpus = Corpus.from_sentences([sentence.split() for sentence in _SENTENCES])
    return CorpusCase(corpus, about="subject, verb, object, punctuation")


def _compute(request: Request) -> xr.Dataset:
    case = _example() if request.source is None else load_corpus(request.source)
    request.uses("corpus", **case.arrays())
    corpus, structure = case.corpus, case.structure
    orders = structure.orders
    shown = sorted(largest(orders, request.settings["queries"]))
    if not shown:
        raise InvalidInputError(
            "data",
            "no context has a token that explains what follows, with another one beside it",
            "Give a corpus in which tokens that begin sentences occur in others as well",
        )
    explaining = structure.collocation.explaining(corpus)
    chosen = np.concatenate([_stating(corpus, explaining, query) for query in shown])
    contexts = [corpus.context(sample) for sample in chosen]
    sentences = [
        corpus.tokens[start:end][:_LONGEST_SENTENCE]
        for start, end in pairwise(corpus.starts[: _MOST_SENTENCES + 1].tolist())
    ]
    checks = [check for check in structure.assumptions if check.name in REALIZABILITY]
    return xr.Dataset(
        {
            "follower": ("token", structure.collocation.next_token),
            "relation": (("number", "role"), orders.edges[np.isin(orders.edges[:, 0], shown)]),
            "sentence": (("line", "word"), _padded(sentences)),
            "context": (("sample", "place"), _padded(contexts)),
            "label": ("sample", corpus.labels[chosen]),
            "explaining": ("sample", explaining[chosen]),
            "in_the_way": ("assumption", [check.share for check in checks]),
        },
        {
            "token": list(corpus.vocabulary),
            "query": shown,
            "role": ["query", "before", "after"],
            "assumption": [check.name for check in checks],
        },
        {
            "sentences": corpus.sentences,
            "relations": len(orders.edges),
            "queries": len(np.unique(orders.edges[:, 0])),
        },
    )


def _padded(rows: Sequence[Int[np.ndarray, "n"]]) -> Int[np.ndarray, "rows most"]:
    """Rows of tokens of different lengths, with -1 behind the shorter ones."""
    table = np.full((len(rows), max(map(len, rows))), -1)
    for place, row in zip(table, rows, strict=True):
        place[: len(row)] = row
    return table


def _stating(corpus: Corpus, explaining: np.ndarray, query: int) -> list[int]:
    """The shortest distinct samples that state a relation under a query."""
    found: dict[tuple[int, ...], int] = {}
    samples = np.flatnonzero((corpus.queries == query) & (explaining >= 0))
    lengths = (corpus.positions - corpus.first)[samples]
    for sample in samples[np.argsort(lengths, kind="stable")].tolist():
        context = tuple(corpus.context(sample).tolist())
        if len(set(context)) > 1:
            found.setdefault((*context, int(corpus.labels[sample])), sample)
        if len(found) == _MOST_CONTEXTS:
            break
    return list(found.values())


def _readings(data: xr.Dataset) -> Readings:
    shares = data["in_the_way"]
    return Readings(
        *(
            at_most(f"{name}: share of samples in its way", shares.sel(assumption=name), 0.0)
            for name in data["assumption"].values.tolist()
        )
    )


class _Row(NamedTuple):
    """The tokens of a class under a query that are drawn, and how many are not."""

    kind: TokenClass
    tokens: tuple[int, ...]
    hidden: int


class _Panel:
    """A query: contexts that end with it, and the order that they state; measured in inches."""

    def __init__(self, data: xr.Dataset, orders: PartialOrders, query: int, width: float) -> None:
        """Places what is drawn."""
        self._names, self._query, self._width = orders.vocabulary, query, width
        self._relations = orders.of(query).tolist()
        classes = orders.classes(query)
        apart = classes.pop(TokenClass.NON_COMPARABLE)
        self._apart = _Row(TokenClass.NON_COMPARABLE, *_first(apart, _MOST_BESIDE))
        beside = [box_width(node.name) for node in self._nodes(self._apart)]
        self._left = width - (max(beside) + 2 * _EDGE + _GAP if beside else 0.0)
        rows = [_Row(kind, *self._fitting(classes[kind])) for kind in classes if classes[kind]]
        self._rows = sorted(rows, key=lambda row: list(_ROLES).index(row.kind))
        queries = _queries(data["context"].values)
        own = data.isel(sample=np.flatnonzero(queries == query))
        each = (own[name].values.tolist() for name in ("context", "label", "explaining"))
        self._lines = [self._line(*sample) for sample in zip(*each, strict=True)]
        graph = layout([self._nodes(row) for row in self._rows], self._left)
        self._graph, self._low = graph.boxes, graph.height
        self.room = len(self._lines)

    @property
    def height(self) -> float:
        """The height that it takes, with room for as many contexts as its neighbors have."""
        return self._low + self.room * _LINE

    @property
    def kinds(self) -> set[TokenClass]:
        """The classes that have tokens."""
        return {row.kind for row in (*self._rows, self._apart) if row.tokens}

    @property
    def whole(self) -> bool:
        """Whether every token of a context or relation has its place."""
        words = [node.name for line in self._lines for node in line]
        return _LEFT_OUT not in words and not any(row.hidden for row in self._rows)

    def draw(self, axes: Axes) -> None:
        """Draws it, and makes an inch of the axes an inch."""
        apart = self._nodes(self._apart)
        contexts = [
            _boxes(line, (self._width - _line_width(line)) / 2, self.height - (row + 0.5) * _LINE)
            for row, line in enumerate(self._lines)
        ]
        nodes = [*self._lines, *map(self._nodes, self._rows), apart]
        placed = Layout([*contexts, *self._graph, self._beside(apart)], self.height)
        draw_nodes(axes, nodes, placed, self._width)
        for *_, last, follower in contexts:
            ends = (last.x + last.width / 2, last.y), (follower.x - follower.width / 2, follower.y)
            look: Any = {"arrowstyle": "-|>", "mutation_scale": 5, "shrinkA": 1, "shrinkB": 1}
            axes.add_patch(FancyArrowPatch(*ends, color=COLORS["black"], linewidth=0.8, **look))
        boxes = {
            token: box
            for row, line in zip(self._rows, self._graph, strict=True)
            for token, box in zip(row.tokens, line, strict=False)
        }
        for before, after in self._relations:
            if before in boxes and after in boxes:
                arrow(axes, boxes[before], boxes[after])
        name = short(self._names[self._query]).replace("$", r"\$")
        axes.set_title(f"query {name!r}", loc="left")

    def _beside(self, nodes: list[Node]) -> list[Box]:
        """One below the other, to the right of the middle of the graph."""
        boxes = [box for line in self._graph for box in line]
        middle = (boxes[0].y + boxes[-1].y) / 2
        x = (self._left + _GAP + self._width) / 2 - _EDGE
        return [
            Box(x, middle + ((len(nodes) - 1) / 2 - number) * _APART, box_width(node.name))
            for number, node in enumerate(nodes)
        ]

    def _nodes(self, row: _Row) -> list[Node]:
        nodes = [
            Node(self._names[token], _look(row.kind), token == self._query) for token in row.tokens
        ]
        return nodes + ([Node(f"+{row.hidden:,} more", None)] if row.hidden else [])

    def _fitting(self, tokens: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """As many tokens as fit into a row, and how many are left out."""
        names = [self._names[token] for token in tokens]
        count = len(tokens)
        while count > 1 and row_width(names) > self._left:
            count -= 1
            names = [*names[:count], f"+{len(tokens) - count:,} more"]
        return _first(tokens, count)

    def _line(self, context: list[int], label: int, explaining: int) -> list[Node]:
        """A context and what follows it, less tokens of the middle where it is too long."""
        tokens = [token for token in context if token >= 0]
        needed = {tokens.index(explaining), len(tokens) - 1}
        spare = [place for place in range(len(tokens)) if place not in needed]
        while True:
            nodes = self._words(tokens, explaining, {*needed, *spare})
            nodes.append(Node(self._names[label], _FOLLOWER))
            if not spare or _line_width(nodes) <= self._width:
                return nodes
            spare.pop(len(spare) // 2)

    def _words(self, tokens: list[int], explaining: int, kept: set[int]) -> list[Node]:
        nodes: list[Node] = []
        for place, token in enumerate(tokens):
            kind = TokenClass.OPTIMAL if token == explaining else TokenClass.NON_OPTIMAL
            if place in kept:
                nodes.append(Node(self._names[token], _look(kind), place == len(tokens) - 1))
            elif not nodes or nodes[-1].name != _LEFT_OUT:
                nodes.append(Node(_LEFT_OUT, None))
        return nodes


def _first(tokens: tuple[int, ...], count: int) -> tuple[tuple[int, ...], int]:
    """The first tokens, and how many more there are."""
    return tokens[:count], max(len(tokens) - count, 0)


def _boxes(line: list[Node], left: float, y: float) -> list[Box]:
    """Boxes of words in a line, the last one behind an arrow."""
    boxes = []
    for number, node in enumerate(line):
        wide = box_width(node.name)
        boxes.append(Box(left + wide / 2, y, wide))
        left += wide + (_ARROW if number == len(line) - 2 else _BETWEEN)
    return boxes


def _line_width(line: Sequence[Node]) -> float:
    return sum(box_width(node.name) for node in line) + _BETWEEN * (len(line) - 2) + _ARROW


def _look(kind: TokenClass) -> dict[str, Any]:
    color = ROLES[_ROLES[kind]].color
    if kind is TokenClass.NON_COMPARABLE:
        return {"facecolor": color, "edgecolor": COLORS["gray"], "linewidth": 0.6}
    return {"facecolor": tint(color, 0.72), "edgecolor": color, "linewidth": 1.0}


def _queries(contexts: Int[np.ndarray, "sample place"]) -> Int[np.ndarray, "sample"]:
    """The last token of each context."""
    last = (contexts >= 0).sum(-1) - 1
    return contexts[np.arange(len(contexts)), last]


def _draw_sentences(
    axes: Axes, sentences: list[list[int]], names: tuple[str, ...], width: float
) -> None:
    """Sentences in lines, as far as they fit."""
    height = len(sentences) * _LINE
    lines, boxes = [], []
    for number, sentence in enumerate(sentences):
        line = [Node(names[token], _PLAIN) for token in sentence if token >= 0]
        while sum(box_width(node.name) + _BETWEEN for node in line) > width - _EDGE:
            line = [*line[: -2 if line[-1].look is None else -1], Node(_LEFT_OUT, None)]
        left, row = _EDGE, []
        for node in line:
            wide = box_width(node.name)
            row.append(Box(left + wide / 2, height - (number + 0.5) * _LINE, wide))
            left += wide + _BETWEEN
        lines.append(line)
        boxes.append(row)
    draw_nodes(axes, lines, Layout(boxes, height), width)


def _arranged(data: xr.Dataset, orders: PartialOrders) -> tuple[float, list[list[_Panel]]]:
    """The width of the panels of queries, and rows of them: as many a row as leave nothing out."""
    queries = data["query"].values.tolist()
    columns = min(_MOST_COLUMNS, len(queries))
    while True:
        width = (PAGE - _GAP * (columns + 1)) / columns
        panels = [_Panel(data, orders, query, width) for query in queries]
        if columns <= 2 or all(panel.whole for panel in panels):
            break
        columns -= 1
    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    for row in rows:
        room = max(panel.room for panel in row)
        for panel in row:
            panel.room = room
    return width, rows


def _draw(data: xr.Dataset) -> Figure:
    names = tuple(data["token"].values.tolist())
    orders = PartialOrders(data["relation"].values, names)
    half = (PAGE - 3 * _GAP) / 2
    collocation = Collocation(data["follower"].values, np.zeros(0, dtype=np.int64), names)
    chains = ChainDrawing(collocation, half, _PLAIN)
    sentences = data["sentence"].values.tolist()
    width, rows = _arranged(data, orders)
    heights = [max(chains.height, len(sentences) * _LINE)]
    heights += [max(panel.height for panel in row) for row in rows]
    kinds = set().union(*(panel.kinds for row in rows for panel in row))
    legend: list[Any] = [
        Patch(label=ROLES[role].label, **_look(kind))
        for kind, role in _ROLES.items()
        if kind in kinds
    ]
    legend.append(Patch(label="what follows", **_FOLLOWER))
    if chains.shared:
        look = _look(TokenClass.CONFUSED)
        legend.append(Patch(label="(b): follows several tokens", **look))
    lines = 1 if len(legend) <= _MOST_IN_LEGEND else 2
    total = sum(heights) + len(heights) * (_TITLE + _GAP) + _LEGEND + 0.14 * (lines - 1)
    figure = Figure(figsize=(PAGE, total))
    figure.set_layout_engine("none")
    top, panels = total, []

    def axes(column: int, wide: float, height: float) -> Axes:
        left, low = _GAP + column * (wide + _GAP), top - _TITLE - height
        place = (left / PAGE, low / total, wide / PAGE, height / total)
        panels.append(figure.add_axes(place, label=str(len(panels))))
        return panels[-1]

    _draw_sentences(axes(0, half, len(sentences) * _LINE), sentences, names, half)
    chains.draw(axes(1, half, chains.height))
    for panel, words in zip(panels, ("sentences", "what follows a token alone"), strict=True):
        panel.set_title(words, loc="left")
    top -= heights[0] + _TITLE + _GAP
    for row, height in zip(rows, heights[1:], strict=True):
        for column, panel in enumerate(row):
            panel.draw(axes(column, width, panel.height))
        top -= height + _TITLE + _GAP
    figure.legend(handles=legend, loc="lower center", ncols=math.ceil(len(legend) / lines))
    panel_letters(panels)
    return figure


COLLOCATIONS_AND_ORDERS = Figures(NEXT_TOKEN).figure(
    "collocations-and-orders",
    "the collocation of a corpus, and under each query the order of its tokens",
    statement="illustration: collocations and query-dependent partial orders",
    published="a sentence of subject, verb, object and punctuation, with its four collocations",
    sizes=by_size(seeds=1, queries=[8, 8, 16]),
    compute=_compute,
    draw=_draw,
    readings=_readings,
    caption=(
        "A corpus before any training: {attrs[sentences]:,} sentences, every prefix of which is a "
        "context. (a) Sentences. (b) The collocation: what follows each token where it is the "
        "whole context. Further panels, for {sizes[query]} of {attrs[queries]:,} queries: contexts "
        "that end with the query, in bold, and what follows them; below, the order that they "
        "state. In a context the token whose collocation follows explains it, and comes before all "
        "others (arrows). Optimal tokens come before some and after none, non-optimal ones after "
        "some; non-comparable ones, in gray, are in no relation. In all, {attrs[relations]:,} "
        "relations."
    ),
    takes="a corpus: text with a sentence a line, or a file of sentences or contexts",
)
