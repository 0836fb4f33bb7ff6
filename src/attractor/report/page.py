"""One self-contained HTML page: text, tables and figures, no network and no scripts."""

from __future__ import annotations

import base64
import dataclasses
import html
from collections.abc import Sequence
from pathlib import Path

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --soft: #555; --line: #ddd;
        --note: #f3f7fb; --caution: #fdf3ec; }
@media (prefers-color-scheme: dark) { :root { --paper: #16191d; --ink: #e4e6e8; --soft: #a9afb6;
        --line: #3a4047; --note: #1d2733; --caution: #33251c; } }
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: var(--ink);
       max-width: 58rem; margin: 2.5rem auto; padding: 0 1.25rem; background: var(--paper); }
h1 { font-size: 1.7rem; line-height: 1.25; margin-bottom: .3rem; }
h2 { font-size: 1.2rem; margin-top: 2.4rem; border-bottom: 1px solid var(--line);
     padding-bottom: .2rem; }
a { color: inherit; }
.source { color: var(--soft); margin-top: 0; }
.findings { background: var(--note); border-left: 4px solid #0072b2;
            padding: .6rem 1rem .6rem 2rem; }
.warning { background: var(--caution); border-left: 4px solid #d55e00; padding: .6rem 1rem; }
figure { margin: 1.4rem 0; }
figure img { min-width: min(100%, 46rem); max-width: 100%; height: auto; background: #fff;
             border-radius: 4px; }
figcaption { color: var(--soft); font-size: .9rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; border-bottom: 1px solid var(--line);
         vertical-align: top; }
th:first-child, td:first-child { text-align: left; } table.words :is(th, td) { text-align: left; }
thead th { border-bottom: 2px solid var(--soft); font-weight: 600; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
code { font-size: .92em; }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #1b1b1b; --soft: #555;
  --line: #ddd; --note: #f3f7fb; --caution: #fdf3ec; }
  body { margin: 0; max-width: none; font-size: 10.5pt; }
  figure, table, .findings { break-inside: avoid; } h2 { break-after: avoid; } }
"""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        header: Names of the columns.
        rows: Cells, a row at a time.
        words: Whether cells are sentences rather than numbers.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: bool = False


@dataclasses.dataclass(frozen=True)
class FigureFile:
    """A figure that lies beside the page as ``name.png`` and ``name.svg``.

    Attributes:
        name: File name without its ending.
        caption: What it shows; also read out to those who cannot see it.
    """

    name: str
    caption: str


@dataclasses.dataclass(frozen=True)
class Section:
    """A titled part of the page, in the order paragraphs, table, figure.

    Attributes:
        title: Its heading.
        paragraphs: Plain text.
        table: A table, or None.
        figure: A figure, or None.
        warning: A paragraph to set off from the rest, or None.
    """

    title: str
    paragraphs: Sequence[str] = ()
    table: Table | None = None
    figure: FigureFile | None = None
    warning: str | None = None


def render_page(
    title: str,
    source: str,
    findings: Sequence[str],
    sections: Sequence[Section],
    *,
    figures: Path,
    footer: str,
) -> str:
    """Returns the page as HTML; figures are read from a folder and embedded.

    Args:
        title: Title of the page.
        source: What was analyzed, a line below the title.
        findings: What was found, in a sentence each.
        sections: The rest.
        figures: Folder that holds the figures as SVG.
        footer: A last line.
    """
    points = "".join(f"<li>{html.escape(point)}</li>" for point in findings)
    body = "\n".join(_section(section, figures) for section in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
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


def _section(section: Section, figures: Path) -> str:
    parts = [f"<h2>{html.escape(section.title)}</h2>"]
    if section.warning is not None:
        parts.append(f'<p class="warning">{html.escape(section.warning)}</p>')
    parts += [f"<p>{html.escape(paragraph)}</p>" for paragraph in section.paragraphs]
    if section.table is not None:
        parts.append(_table(section.table))
    if section.figure is not None:
        parts.append(_figure(section.figure, figures))
    return "\n".join(parts)


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    kind = ' class="words"' if table.words else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="wide" tabindex="0"><table{kind}>{body}</table></div>'


def _figure(figure: FigureFile, figures: Path) -> str:
    # Embedded as images: drawings set into the page itself would share their element names.
    data = base64.b64encode((figures / f"{figure.name}.svg").read_bytes()).decode()
    caption, name = html.escape(figure.caption), html.escape(figure.name)
    files = " ".join(f'<a href="{name}.{ending}">{ending.upper()}</a>' for ending in ("png", "svg"))
    return (
        f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{caption}">'
        f"<figcaption>{caption} {files}</figcaption></figure>"
    )
