"""Text whose tokens are shaded by the attention on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path

from attractor.heads.plots.audit import WIDE
from attractor.plots.design.figure import Figure
from attractor.plots.design.look import COLORS

_CONTENT = LinearSegmentedColormap.from_list("content", ["white", COLORS["blue"], "#00304d"])
_SINK = LinearSegmentedColormap.from_list("sink", ["white", "#d62728", "#5c0a0b"])
"""Shades of attention on content, and on tokens that are no content."""
_SELECTED = COLORS["green"]
_SIZE = 9.5
"""Size of the text, in points."""
_LINE, _HEADING, _GAP = 0.36, 0.30, 0.14
"""Heights of a line, of a heading and between texts, in inches."""
_BETWEEN = 0.055
"""Space between tokens, in inches."""
_MOST_IN_LINE = 24
_LONGEST = 18
"""Letters of a token that are shown."""
_DARK = 0.42
"""The shade from which on letters are white."""
_LEVELS = (0.02, 0.1, 0.3, 0.6, 1.0)
"""Attention in the key."""
_DRAWN = ("attention", "content", "allowed", "position", "selected", "selected_probability")


class _Token(NamedTuple):
    """A token in its line: its text, and where the box around it is, in inches."""

    place: int
    text: str
    line: int
    left: float
    width: float


def attention_text_figure(data: xr.Dataset, headings: Mapping[str, str]) -> Figure:
    """Texts with the attention of one query of each: dark is much, red is on no content.

    The query has a box; the content token that it attends to most is underlined, as thick as
    the attention on it, which stands below.

    Args:
        data: What ``attention_examples`` returns.
        headings: A line above the texts of each head, by its name, such as 2.8; without one, that.
    """
    blocks = []
    height, before = 0.4, None
    for number in range(data.sizes["example"]):
        one = data.isel(example=number)
        head = f"{int(one['layer'])}.{int(one['head'])}"
        heading = headings.get(head, head) if head != before else None
        height += _GAP + _HEADING * (heading is not None)
        tokens = list(_laid_out(_shown(one)))
        blocks.append((height, heading, one, tokens))
        height += _LINE * (1 + max((token.line for token in tokens), default=0))
        before = head
    figure = Figure(figsize=(WIDE, height))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDE), ylim=(height, 0))
    axes.set_axis_off()
    _draw_key(axes)
    for top, heading, one, tokens in blocks:
        if heading is not None:
            _put(axes, 0.1, top - 0.13, heading, size=9, weight="bold")
        known = {name: one[name].to_numpy() for name in _DRAWN}
        for token in tokens:
            _draw(axes, top + _LINE * token.line, token, known)
    return figure


def _shown(one: xr.Dataset) -> list[tuple[int, str]]:
    """The tokens to draw with their places, without the padding at either end."""
    kept = (one["allowed"] | one["content"]).to_numpy()
    kept[int(one["position"])] = True
    places = np.flatnonzero(kept)
    texts = one["token"].to_numpy()
    return [(place, _printable(str(texts[place]))) for place in range(places[0], places[-1] + 1)]


def _printable(token: str) -> str:
    """A token as it can be drawn: marks of word pieces left out, other letters shown as such."""
    text = token.replace("\u0120", " ").replace("\u2581", " ").replace("\u010a", "\u21b5")
    text = text.strip(" ") or "\u2423"
    known = _letters()
    text = "".join(
        letter if ord(letter) in known else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"


@cache
def _letters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties())).get_charmap())


def _laid_out(tokens: Sequence[tuple[int, str]]) -> Iterator[_Token]:
    line, left, in_line = 0, 0.1, 0
    for place, text in tokens:
        width = _width(text, _SIZE) + 0.06
        if in_line and (left + width > WIDE - 0.1 or in_line == _MOST_IN_LINE):
            line, left, in_line = line + 1, 0.1, 0
        yield _Token(place, text, line, left, width)
        left += width + _BETWEEN
        in_line += 1


def _draw(axes: Axes, top: float, token: _Token, one: Mapping[str, np.ndarray]) -> None:
    attention = float(one["attention"][token.place])
    content, allowed = bool(one["content"][token.place]), bool(one["allowed"][token.place])
    shade = _shade(attention if allowed else 0.0)
    color = (_CONTENT if content else _SINK)(shade)
    query = token.place == int(one["position"])
    box: dict[str, Any] = {"facecolor": color, "edgecolor": "none", "zorder": 1}
    if query:
        box |= {"edgecolor": COLORS["black"], "linewidth": 1.3, "zorder": 2}
    height = 0.2
    _add(axes, Rectangle((token.left, top), token.width, height, **box))
    ink = "white" if shade > _DARK else COLORS["black"] if allowed or query else "#9a9a9a"
    _put(axes, token.left + 0.03, top + 0.148, token.text, color=ink)
    if token.place == int(one["selected"]):
        share = float(one["selected_probability"])
        thick = 0.012 + 0.035 * share
        under: dict[str, Any] = {"facecolor": _SELECTED, "edgecolor": "none"}
        _add(axes, Rectangle((token.left, top + height + 0.012), token.width, thick, **under))
        middle = token.left + token.width / 2
        _put(
            axes, middle, top + height + 0.1 + thick, _percent(share), size=6.5, color=_SELECTED,
            ha="center",
        )  # fmt: skip


def _draw_key(axes: Axes) -> None:
    left = 0.1
    for words, shades in (("attention on content", _CONTENT), ("on other tokens", _SINK)):
        _put(axes, left, 0.24, words, size=8)
        left += _width(words, 8) + 0.08
        for level in _LEVELS:
            shade = _shade(level)
            look: dict[str, Any] = {"facecolor": shades(shade), "edgecolor": "#cccccc"}
            _add(axes, Rectangle((left, 0.09), 0.4, 0.21, linewidth=0.4, **look))
            ink = "white" if shade > _DARK else COLORS["black"]
            _put(axes, left + 0.2, 0.235, _percent(level), size=7, color=ink, ha="center")
            left += 0.4
        left += 0.2
    look = {"facecolor": "none", "edgecolor": COLORS["black"], "linewidth": 1.3}
    _add(axes, Rectangle((left, 0.09), 0.5, 0.21, **look))
    _put(axes, left + 0.25, 0.235, "query", size=8, ha="center")
    left += 0.62
    words = "content attended to most"
    _put(axes, left, 0.225, words, size=8)
    under: dict[str, Any] = {"facecolor": _SELECTED, "edgecolor": "none"}
    _add(axes, Rectangle((left, 0.27), _width(words, 8), 0.03, **under))


def _shade(attention: float) -> float:
    """The darkness of an attention: its square root, by which small ones can be told apart."""
    return float(np.sqrt(np.clip(attention, 0, 1)))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _add(axes: Axes, box: Rectangle) -> None:
    axes.add_artist(box)  # add_patch would fit limits that are fixed, longer than all else of it


def _put(axes: Axes, x: float, y: float, text: str, *, size: float = _SIZE, **look: Any) -> None:
    axes.text(x, y, text, fontsize=size, va="baseline", parse_math=False, **look)


def _width(text: str, size: float) -> float:
    """The width of a text in inches."""
    return (
        text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)[0] / 72
    )
