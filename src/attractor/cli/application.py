"""All commands in one application; each is imported when it or its help is called."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from attractor.cli.answer import answer_line, failure
from attractor.support.plugins import load_plugin, plugins
from attractor.version import __version__

GROUP = "attractor.commands"
"""The entry points of commands: ours, and those of other distributions."""

FIRST = (
    *("demo", "check", "corpus", "audit", "prompt-length", "solve", "train", "verify", "matrix"),
    *("basins", "explore", "in-context", "sweep", "claims", "figures", "compare", "reproduce"),
)
"""The commands that ``--help`` begins with, in the order in which one may want them."""


_DOCSTRING = re.compile(r'\s*"""([^\n"]+)')

_UsageError: Any = typer.BadParameter.__base__
"""What a command line raises that cannot be read; typer has no name for it."""


called: list[str] = []
"""The words of the command line, for the suggestion of a longer one."""


class LazyGroup(TyperGroup):
    """A group of placeholders; the module of a command is imported when it is called."""

    def main(
        self,
        args: Sequence[str] | None = None,
        *more: Any,
        standalone_mode: bool = True,
        **how: Any,
    ) -> Any:
        """Runs a command line; one that cannot be read has its JSON object, too."""
        called[:] = sys.argv[1:] if args is None else args
        if not standalone_mode:
            return super().main(args, *more, standalone_mode=False, **how)
        try:
            code = super().main(args, *more, standalone_mode=False, **how)
        except _UsageError as error:
            error.show()
            if "--json" in called:
                print(_unreadable(error), end="")
            code = error.exit_code
        sys.exit(code)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, in place of its placeholder."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, name and _command(name), rest


def _unreadable(error: Any) -> str:
    """The JSON object of a command line that cannot be read."""
    words: list[str] = []
    context = error.ctx
    while context is not None and context.parent is not None:
        words.insert(0, context.info_name)
        context = context.parent
    parameter = getattr(error, "param", None)
    named = getattr(error, "option_name", None) or (parameter and parameter.name)
    message = error.format_message()
    remedy = f"`{' '.join(['attractor', *words])} --help` says what there is"
    found = failure(message, argument=named, problem=message, remedy=remedy)
    return answer_line(" ".join(words) or None, error.exit_code, found)


@functools.cache
def _command(name: str) -> Any:
    """The command of a name, whose options are read off its function once."""
    return typer.main.get_command(load_command(name))


def command_names() -> list[str]:
    """The names of all commands, in the order of ``--help``."""
    return sorted(plugins(GROUP), key=lambda name: (name not in FIRST, (*FIRST, name).index(name)))


def load_command(name: str) -> typer.Typer:
    """The application of a command: of its function, or of several commands under one name.

    Raises:
        InvalidInputError: If another distribution adds it, and it cannot be loaded.
    """
    return load_plugin(GROUP, name).application(name)


def _sentence(name: str) -> str:
    """What a command says of itself in one line: the first of its module, which is not imported."""
    module = plugins(GROUP)[name].module
    try:
        spec = importlib.util.find_spec(module)
        source = Path(spec.origin).read_text("utf-8") if spec and spec.origin else None
    except Exception as error:  # a package of somebody else can raise anything
        return f"cannot be loaded: {type(error).__name__}: {error}"
    if source is None:
        return f"cannot be loaded: there is no module {module}"
    found = _DOCSTRING.match(source)
    return found[1] if found else ""


app = typer.Typer(
    help="Where softmax attention goes when you train it.",
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _placeholder() -> None:
    """Never called."""


for _name in command_names():
    app.command(_name, short_help=_sentence(_name))(_placeholder)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"attractor {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass
