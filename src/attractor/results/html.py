"""Results as HTML for notebooks: tables that can be read aloud, in the colors of the page."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attractor.results.visible import visible

_SPACES = re.compile(r"(?<=\S) {2,}(?=\S)")
"""What aligns columns of text within a value."""

_STYLE = """
.attractor-result { color: inherit; overflow-x: auto; }
.attractor-result table { table-layout: auto; width: auto; margin: .3em 0; border: 0;
  color: inherit; border-collapse: collapse; font-variant-numeric: tabular-nums; }
.attractor-result caption { caption-side: top; text-align: left; font-weight: 600; color: inherit;
  padding: .2em 0; width: max-content; max-width: 50em; }
.attractor-result :is(th, td) { text-align: left; vertical-align: top; border: 0;
  color: inherit; padding: .2em .8em;
  border-bottom: 1px solid rgba(128, 128, 128, .3); max-width: 46em; }
.attractor-result .number { text-align: right; }
.attractor-result td:is(.number, .whole) { white-space: nowrap; }
.attractor-result .within { padding-left: 2em; font-weight: normal; }
.attractor-result tbody + tbody tr:first-child :is(th, td) {
  border-top: 2px solid rgba(128, 128, 128, .5); }
.attractor-result p { margin: .3em 0; max-width: 60em; color: inherit; }
.attractor-result img { background: #fff; max-width: 100%; }
"""
"""No color of its own but grays that show on white and on black, as notebooks have either."""


def without_columns(text: str) -> str:
    """Text whose runs of spaces, which align columns, become marks between them."""
    return _SPACES.sub("; ", text)


def in_notebook(parts: Iterable[str]) -> str:
    """Parts of a result, with the style that they share."""
    return visible(f'<div class="attractor-result"><style>{_STYLE}</style>{"".join(parts)}</div>')


def paragraph(text: str) -> str:
    """Lines of text."""
    return f"<p>{'<br>'.join(html.escape(line.strip()) for line in text.splitlines())}</p>"


def rows_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Names with their values; a name that spaces set in belongs to the one above."""
    body = "".join(
        f"<tr>{_named(html.escape(name.strip()), within=name.startswith(' '))}"
        f"<td>{_escaped(value)}</td></tr>"
        for name, value in rows
    )
    return _table(html.escape(title), "", [body])


def numbers_table(title: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of numbers, each named by its first cell."""
    classes = ["", *[_class(number=True)] * (len(names) - 1)]
    head = "".join(
        f'<th scope="col"{kind}>{_escaped(name)}</th>'
        for name, kind in zip(names, classes, strict=True)
    )
    body = "".join(
        f"<tr>{_named(_escaped(row[0]), within=False)}"
        f"{_values([_escaped(cell) for cell in row[1:]], classes[1:])}</tr>"
        for row in rows
    )
    return _table(html.escape(title), head, [body])


def picture(png: bytes, description: str, width: int | None = None) -> str:
    """A picture, as many pixels wide, with what is said of it to those who do not see it."""
    data, said = base64.b64encode(png).decode(), html.escape(visible(description))
    size = "" if width is None else f' width="{width}"'
    return f'<img{size} src="data:image/png;base64,{data}" alt="{said}">'


def printed_parts(show: Callable[[Console], None]) -> list[str]:
    """What is printed to a console of rich: its tables, and its text as paragraphs.

    Args:
        show: Prints to the console that it is given.
    """
    console = _Kept()
    show(console)
    return console.parts


class _Kept(Console):
    """A console that keeps what is printed to it as HTML."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO(), width=1000)
        self.parts: list[str] = []

    def print(self, *objects: Any, markup: bool | None = None, **options: Any) -> None:
        """Keeps tables and text."""
        for one in objects:
            if isinstance(one, Table):
                self.parts += self._of_table(one, markup is not False)
            else:
                text = one if isinstance(one, Text) else _text(str(one), markup is not False)
                self.parts.append(paragraph(text.plain))

    def _of_table(self, table: Table, markup: bool) -> list[str]:
        """A table, and its caption, which explains it, as a paragraph below."""

        def words(cell: Any) -> str:
            text = cell.copy() if isinstance(cell, Text) else _text(str(cell or ""), markup)
            text.stylize(text.style)  # else only styles within it are rendered
            pieces = [
                f"<strong>{_escaped(piece.text)}</strong>"
                if piece.style is not None and piece.style.bold
                else _escaped(piece.text)
                for piece in text.render(self)
                if piece.text
            ]
            return "".join(pieces).strip()

        classes = [
            _class(number=column.justify == "right", whole=column.no_wrap)
            for column in table.columns
        ]
        head = [
            f'<th scope="col"{kind}>{words(column.header)}</th>'
            for column, kind in zip(table.columns, classes, strict=True)
        ]
        bodies = [""]
        cells = zip(*([*column.cells] for column in table.columns), strict=True)
        for row, found in zip(table.rows, cells, strict=True):
            name = found[0].plain if isinstance(found[0], Text) else str(found[0])
            first = _named(words(found[0]), within=name.startswith(" "))
            values = _values([words(cell) for cell in found[1:]], classes[1:])
            bodies[-1] += f"<tr>{first}{values}</tr>"
            if row.end_section:
                bodies.append("")
        title = "" if table.title is None else words(table.title)
        shown = "".join(head) if table.show_header else ""
        parts = [_table(title, shown, bodies)]
        if table.caption is not None:
            parts.append(f"<p>{words(table.caption)}</p>")
        return parts


def _values(cells: Sequence[str], classes: Sequence[str]) -> str:
    """The cells beside the name of a row; words that stand alone have the whole row."""
    if len(cells) > 1 and cells[0] and not any(cells[1:]):
        return f'<td colspan="{len(cells)}">{cells[0]}</td>'
    pairs = zip(cells, classes, strict=True)
    return "".join(f"<td{kind}>{cell}</td>" for cell, kind in pairs)


def _named(name: str, *, within: bool) -> str:
    """The first cell of a row, which names it."""
    return f'<th scope="row"{_class(within=within)}>{name}</th>' if name else "<td></td>"


def _table(title: str, head: str, bodies: Sequence[str]) -> str:
    """A table; the class is that of tables of pandas, by which pages know how to color it."""
    return (
        '<table class="dataframe">'
        + (f"<caption>{title}</caption>" if title else "")
        + (f"<thead><tr>{head}</tr></thead>" if head else "")
        + "".join(f"<tbody>{body}</tbody>" for body in bodies if body)
        + "</table>"
    )


def _class(**chosen: bool) -> str:
    """The attribute with the names of those that are chosen."""
    names = " ".join(name for name, is_chosen in chosen.items() if is_chosen)
    return f' class="{names}"' if names else ""


def _escaped(text: str) -> str:
    """Text whose columns of spaces become marks, as a browser shows one space for all of them."""
    return html.escape(without_columns(text)).replace("\n", "<br>")


def _text(text: str, markup: bool) -> Text:
    return Text.from_markup(text, end="") if markup else Text(text, end="")
