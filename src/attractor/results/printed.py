"""Results that show the same as text, on a console and in a notebook."""

from __future__ import annotations

import abc
import io
import math
import textwrap
from typing import Any, ClassVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from attractor.results.html import (
    in_notebook,
    paragraph,
    printed_parts,
    rows_table,
    without_columns,
)
from attractor.support.checks import check_kinds

Rows = list[tuple[str, str]]
"""Names with their values, both in words."""


def finite_or_none(value: Any) -> float | None:
    """A number as JSON can hold it: None where it is not finite."""
    return float(value) if math.isfinite(value) else None


def plain_table(title: str | None = None, **options: Any) -> Table:
    """A table of rich, without columns yet, whose only rule stands below its header.

    Args:
        title: The title above it.
        options: Further arguments of ``rich.table.Table``.
    """
    look = {"title_justify": "left", "box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False}
    return Table(title=title, **look, **{"collapse_padding": True, **options})


class Shown(abc.ABC):
    """A result that a notebook shows as more than its text."""

    def _repr_html_(self) -> str:
        return in_notebook(self._html_parts())

    @abc.abstractmethod
    def _html_parts(self) -> list[str]:
        """Its tables and paragraphs as HTML."""


class Described(Shown):
    """A title over rows in a notebook, whatever its text is."""

    @abc.abstractmethod
    def _summary(self) -> tuple[str, Rows]:
        """The title, and names with their values."""

    def _html_parts(self) -> list[str]:
        return [rows_table(*self._summary())]


class Printed(Shown):
    """A result that prints the same way everywhere.

    Attributes:
        width: Columns of text.
    """

    width: ClassVar[int] = 100

    def print_to(self, console: Console) -> None:
        """Prints it to a console of rich.

        Raises:
            InvalidInputError: If it is none.
        """
        check_kinds(console=(console, Console))
        self._print(console)

    @abc.abstractmethod
    def _print(self, console: Console) -> None:
        """Prints it."""

    def __str__(self) -> str:
        stream = io.StringIO()
        # In a notebook rich would print there, whatever the file, and in color, unless told not to.
        self._print(Console(file=stream, width=self.width, force_jupyter=False, color_system=None))
        return stream.getvalue().rstrip()

    def __repr__(self) -> str:
        return str(self)

    def _html_parts(self) -> list[str]:
        return printed_parts(self._print)


class PlainText(Printed):
    """A result that prints as lines of text of any length."""

    @abc.abstractmethod
    def __str__(self) -> str:
        """The lines."""

    def _print(self, console: Console) -> None:
        console.print(str(self), highlight=False, markup=False, soft_wrap=True)

    def _html_parts(self) -> list[str]:
        return [paragraph(str(self))]


class Summary(Described, PlainText):
    """A result that prints as a title over rows."""

    def __str__(self) -> str:
        title, rows = self._summary()
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join([title, *(f"  {name:<{width}}  {value}" for name, value in rows)])

    def _print(self, console: Console) -> None:
        """Prints it; on a terminal too narrow for it values go on below themselves."""
        text = str(self)
        if not console.is_terminal or max(map(len, text.splitlines())) <= console.width:
            super()._print(console)
            return
        title, rows = self._summary()
        names = max(len(name) for name, _ in rows) + 4
        lines = [title]
        for name, value in rows:
            row = f"  {name:<{names - 4}}  {without_columns(value)}"
            lines += textwrap.wrap(row, console.width, subsequent_indent=" " * names)
        console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)
