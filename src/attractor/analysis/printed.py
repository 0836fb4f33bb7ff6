"""Results that print as tables."""

from __future__ import annotations

import abc
import io
from typing import ClassVar

from rich.console import Console


class Printed(abc.ABC):
    """A result that shows itself the same way as text and in a notebook.

    Attributes:
        width: Columns of text.
    """

    width: ClassVar[int]

    @abc.abstractmethod
    def print_to(self, console: Console) -> None:
        """Prints it to a console."""

    def __str__(self) -> str:
        stream = io.StringIO()
        self.print_to(Console(file=stream, width=self.width))
        return stream.getvalue().rstrip()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        console = Console(file=io.StringIO(), record=True, width=self.width)
        self.print_to(console)
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
