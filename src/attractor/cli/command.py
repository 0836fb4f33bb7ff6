"""``Command``: how a room declares a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import typer


@dataclass(frozen=True)
class Command:
    """A command, declared beside its function as ``COMMAND`` and named by an entry point.

    The first line of its module's docstring is its line in ``attractor --help``, for which the
    module is read and not imported.

    Attributes:
        run: Its function; or an application of typer, where it is several commands under one name.
        help: What it does, in a sentence.
        examples: Lines to type, each with the seconds that it takes on two quiet cores.
        more: Paragraphs below the examples.
    """

    run: Callable[..., None] | typer.Typer
    help: str
    examples: Mapping[str, int]
    more: tuple[str, ...] = ()

    def application(self, name: str) -> typer.Typer:
        """The application of the command, under its name."""
        if isinstance(self.run, typer.Typer):
            self.run.info.help, self.run.info.epilog = self.help, self._epilog()
            return self.run
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        one.command(name, help=self.help, epilog=self._epilog())(self.run)
        return one

    def _epilog(self) -> str:
        """What stands below the options: the examples, then the rest."""
        width = max(map(len, self.examples))
        lines = [f"{line:<{width}}  {seconds} s" for line, seconds in self.examples.items()]
        examples = "Examples, with the time they take on two cores:\n\n\b\n" + "\n".join(lines)
        return "\n\n".join([examples, *self.more])
