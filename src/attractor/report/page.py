"""One self-contained HTML page: text, tables and figures, no network and no scripts."""

from __future__ import annotations

import base64
import dataclasses
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from attractor.results.visible import visible
from attractor.support.storage.markers import made_by

_LARGER = 1.4
"""A figure of a page's width is as wide as the column, and narrower ones have text as large."""

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --soft: #555; --line: #ddd;
        --note: #f3f7fb; --caution: #fdf3ec; }
@media (prefers-color-scheme: dark) { :root { --paper: #16191d; --ink: #e4e6e8; --soft: #a9afb6;
        --line: #3a4047; --note: #1d2733; --caution: #33251c; } }
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: var(--ink);
       max-width: 58rem; margin: 2.5rem auto; padding: 0 1.25rem; background: var(--paper);
       overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.25; margin-bottom: .3rem; }
h2 { font-size: 1.2rem; margin-top: 2.4rem; border-bottom: 1px solid var(--line);
     padding-bottom: .2rem; }
h3 { font-size: 1rem; margin-top: 1.8rem; }
summary { cursor: pointer; }
summary :is(h2, h3) { display: inline-block; margin: 1rem 0 .3rem; border: 0; }
a { color: inherit; }
.source { color: var(--soft); margin-top: 0; }
.findings { background: var(--note); border-left: 4px solid #0072b2;
            padding: .6rem 1rem .6rem 2rem; }
.findings li:has(details) { list-style: none; margin-left: -1.1rem; }
.warning { background: var(--caution); border-left: 4px solid #d55e00; padding: .6rem 1rem; }
figure { margin: 1.4rem 0; }
figure img { max-width: 100%; height: auto; background: #fff; border-radius: 4px; }
@media (prefers-color-scheme: dark) { figure img { filter: brightness(.88); } }
figcaption { color: var(--soft); font-size: .9rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); font-size: .9rem; }
th, td { padding: .3rem clamp(.5rem, 1.5vw, .9rem) .3rem 0; text-align: right;
         border-bottom: 1px solid var(--line); vertical-align: top; }
th:first-child { text-align: left; } tbody th { font-weight: inherit; overflow-wrap: normal; }
table.words :is(th, td) { text-align: left; } td.long { min-width: 13rem; }
th.long { min-width: 9rem; }
span.whole { white-space: nowrap; }
thead th { border-bottom: 2px solid var(--soft); font-weight: 600; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
code { font-size: .92em; }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #1b1b1b; --soft: #555;
  --line: #ddd; --note: #f3f7fb; --caution: #fdf3ec; }
  body { margin: 0; max-width: none; font-size: 10.5pt; }
  .wide { overflow: visible; } figure img { min-width: 0 !important; }
  details::details-content { content-visibility: visible; block-size: auto; }
  figure, table { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""

_SPACE = "\N{NO-BREAK SPACE}"
_WHOLE = re.compile(r"\[[-+\d., einfa]*\]|[-\d.]+e-\d+")
"""Intervals and numbers that a browser would part, at a blank or a hyphen."""
_LONG, _SHORT = 45, 14
"""Letters of a cell that is a sentence if it has more, and of a name that stays in one line."""


@dataclasses.dataclass(frozen=True)
class Link:
    """A link to a section of the page.

    Attributes:
        text: Its words.
        title: The heading of the section; default: the words.
    """

    text: str
    title: str = ""


Words = str | Link | Sequence[str | Link]
"""A text, a link, or texts and links that follow one another."""


@dataclasses.dataclass(frozen=True)
class Folded:
    """Findings of less weight, which show once they are asked for.

    Attributes:
        title: What shows.
        points: What is behind it, in a sentence each.
    """

    title: str
    points: Sequence[Words]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        header: Names of the columns.
        rows: Cells, a row at a time; the first cell names the row.
        words: Whether cells are sentences rather than numbers.
        caption: What it holds, where the heading above it does not say so.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Words]]
    words: bool = False
    caption: str = ""


@dataclasses.dataclass(frozen=True)
class FigureFile:
    """A figure that lies beside the page as ``name.png`` and ``name.svg``.

    Attributes:
        name: File name without its ending.
        caption: What it is.
        seen: What is seen in it, for those who cannot see it.
    """

    name: str
    caption: str
    seen: str = ""


@dataclasses.dataclass(frozen=True)
class Section:
    """A titled part of the page, in the order paragraphs, table, figure, parts.

    Attributes:
        title: Its heading, different from all others.
        paragraphs: Plain text.
        table: A table, or None.
        figure: A figure, or None.
        warning: A paragraph to set off from the rest, or None.
        parts: Sections within it.
        fold: Whether all but the heading can be folded away, and how it is at first.
    """

    title: str
    paragraphs: Sequence[str] = ()
    table: Table | None = None
    figure: FigureFile | None = None
    warning: str | None = None
    parts: Sequence[Section] = ()
    fold: Literal["", "open", "closed"] = ""


def render_page(
    title: str,
    source: str,
    findings: Sequence[Words | Folded],
    sections: Sequence[Section],
    *,
    figures: Path,
    command: str,
    footer: str,
) -> str:
    """Returns the page as HTML; figures are read from a folder and embedded.

    Args:
        title: Title of the page.
        source: What was analyzed, a line below the title.
        findings: What was found, in a sentence each, the most important first.
        sections: The rest.
        figures: Folder that holds the figures as SVG.
        command: The command whose report it is.
        footer: A last line.
    """
    points = "".join(f"<li>{_finding(point)}</li>" for point in findings)
    body = "\n".join(_section(section, figures, 2) for section in sections)
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{made_by(command)}
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{html.escape(title)}</h1>
<p class="source">{html.escape(source)}</p>
<ul class="findings">{points}</ul>
{body}
</main>
<footer>{html.escape(footer)}</footer>
</body>
</html>
"""
    return visible(page)


def _finding(point: Words | Folded) -> str:
    if not isinstance(point, Folded):
        return _words(point)
    rest = "".join(f"<li>{_words(one)}</li>" for one in point.points)
    return f"<details><summary>{html.escape(point.title)}</summary><ul>{rest}</ul></details>"


def _words(words: Words) -> str:
    if isinstance(words, str):
        return html.escape(words)
    if isinstance(words, Link):
        return f'<a href="#{_anchor(words.title or words.text)}">{html.escape(words.text)}</a>'
    return "".join(map(_words, words))


def _anchor(title: str) -> str:
    return re.sub(r"[^\w.]+", "-", title.lower()).strip("-")


def _section(section: Section, figures: Path, level: int) -> str:
    place = _anchor(section.title)
    heading = f'<h{level} id="{place}">{html.escape(section.title)}</h{level}>'
    parts = []
    if section.warning is not None:
        parts.append(f'<p class="warning">{html.escape(section.warning)}</p>')
    parts += [f"<p>{html.escape(paragraph)}</p>" for paragraph in section.paragraphs]
    if section.table is not None:
        parts.append(_table(section.table, place))
    if section.figure is not None:
        parts.append(_figure(section.figure, figures))
    parts += [_section(part, figures, level + 1) for part in section.parts]
    if not section.fold:
        return "\n".join([heading, *parts])
    state = " open" if section.fold == "open" else ""
    return "\n".join([f"<details{state}><summary>{heading}</summary>", *parts, "</details>"])


def _table(table: Table, heading: str) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.header)
    rows = "".join(
        f"<tr>{_row_name(first)}{''.join(map(_cell, cells))}</tr>" for first, *cells in table.rows
    )
    kind = ' class="words"' if table.words else ""
    caption = f"<caption>{html.escape(table.caption)}</caption>" if table.caption else ""
    body = f"{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    named = f'aria-labelledby="{heading}"'
    inner = f"<table{kind}{'' if caption else f' {named}'}>{body}</table>"
    return f'<div class="wide" tabindex="0" role="region" {named}>{inner}</div>'


def _cell(words: Words) -> str:
    """A cell; neither an interval nor a number is parted, and sentences have room."""
    if not isinstance(words, str):
        return f"<td>{_words(words)}</td>"
    text = _WHOLE.sub(r'<span class="whole">\g<0></span>', _words(words))
    long = ' class="long"' if len(words) > _LONG else ""
    return f"<td{long}>{text}</td>".replace(" %", f"{_SPACE}%")


def _row_name(words: Words) -> str:
    """The name of a row, in one line where it is short, and with room where it is long."""
    text, length = _words(words), len(words) if isinstance(words, str) else 0
    if 0 < length <= _SHORT:
        text = text.replace(" ", _SPACE)
    long = ' class="long"' if length > 2 * _SHORT else ""
    return f'<th scope="row"{long}>{text}</th>'


def _figure(figure: FigureFile, figures: Path) -> str:
    # Embedded as images: drawings set into the page itself would share their element names.
    drawing = (figures / f"{figure.name}.svg").read_bytes()
    data, width = base64.b64encode(drawing).decode(), _width(drawing)
    caption, name = html.escape(figure.caption), html.escape(figure.name)
    files = " ".join(f'<a href="{name}.{ending}">{ending.upper()}</a>' for ending in ("png", "svg"))
    return (
        f'<figure><div class="wide" tabindex="0" role="region" aria-label="Picture">'
        f'<img style="width: {_LARGER * width:.0f}px; min-width: {width:.0f}px" '
        f'src="data:image/svg+xml;base64,{data}" alt="{html.escape(figure.seen)}"></div>'
        f"<figcaption>{caption} {files}</figcaption></figure>"
    )


def _width(drawing: bytes) -> float:
    """The width that a drawing of Matplotlib's was made for, in pixels."""
    found = re.search(rb'<svg[^>]*\swidth="([\d.]+)pt"', drawing)
    assert found is not None
    return float(found[1]) * 96 / 72
