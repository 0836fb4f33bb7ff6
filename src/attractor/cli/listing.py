"""Names with a line each."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table


def listing(lines: Mapping[str, str]) -> Table:
    """A table of names and what they are."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for name, line in lines.items():
        table.add_row(name, line)
    return table
