"""All commands in one application; each is imported when it or its help is called."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from attractor.cli.answer import answer_line, failure
from attractor.version import __version__

COMMANDS = {
    "demo": "Run the whole path on handwritten digits, and write a report with pictures.",
    "check": "Solve for the direction training must take, train, compare the two; with --out "
    "write a report with pictures.",
    "corpus": "Find the collocation and the orders that a corpus hides, and check what "
    "next-token theory assumes of it; with --train, train on it and say where it went; with --out "
    "write a report with pictures.",
    "audit": "Say what the heads of a pretrained transformer select on texts, which of them pair "
    "keys with queries in a way that random pairings do not; with --out write a report with "
    "pictures.",
    "prompt-length": "Say how long a prompt must be for an attention head to act as over "
    "infinitely many tokens, where over Gaussian tokens it is affine, and how far it is from "
    "affine however long the prompt is.",
    "solve": "Solve the margin problem for the direction training must take; certify it.",
    "train": "Train by any optimizer and save the run.",
    "verify": "Compare a saved run with the margin problem for the selection that each trial "
    "reached.",
    "matrix": "Train every optimizer on the same random problems and show the normalized margin "
    "ratio in every norm; or say which norm's margin an optimizer of yours maximizes.",
    "basins": "Train from many random starts, count the selections they settle on, and draw which "
    "start of a plane reaches which.",
    "explore": "Write a page on which tokens are dragged: the solution, the basins and the path of "
    "training follow at once.",
    "in-context": "Train attention to regress in context at several prompt lengths, side by side: "
    "risk, blocks of the head, balance and the gap to the optimum, beside gradient flow on "
    "infinite prompts; with --out write a report with figures, a table and NetCDF.",
    "sweep": "Run an experiment at every point of a grid, a million trials, here or on a cluster; "
    "say how far it is, check it and draw maps of it.",
    "claims": "Check the papers' statements: on the papers' data, or on yours.",
    "figures": "Draw the papers' figures: PNG, SVG and the labeled data behind them.",
    "compare": "Put two results side by side, aligned by their labels: numbers that differ, with "
    "intervals and paired by trial; words and settings that do; what one of them alone has.",
    "reproduce": "Run a figure, outcomes of claims or a report again, and say what differs.",
    "example": "Write an example file.",
}
"""The commands in the order of ``--help``, each with the first sentence of its own help."""

SHORT = {
    "demo": "A report on handwritten digits: where attention goes.",
    "check": "Solve, train, compare: a report on your token file.",
    "corpus": "What a corpus hides, and where training on it goes.",
    "audit": "What the heads of a pretrained transformer select.",
    "prompt-length": "How long a prompt must be for a head to be affine.",
    "solve": "The direction training must take, with a certificate.",
    "train": "Train by any optimizer and save the run.",
    "verify": "How close a saved run came to its margin solution.",
    "matrix": "Which norm's margin does an optimizer maximize?",
    "basins": "Which tokens each start ends on, as a map.",
    "explore": "A page to drag tokens on: the attractor follows.",
    "in-context": "In-context regression at several prompt lengths.",
    "sweep": "An experiment at every point of a grid, with maps.",
    "claims": "Check the papers' statements on their data or yours.",
    "figures": "Draw the papers' figures, with the data behind them.",
    "compare": "Two results side by side, with differences.",
    "reproduce": "Make a result again, and say what differs.",
    "example": "Write a file to start from.",
}
"""The same in one line of the list of commands."""


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


def load_command(name: str) -> typer.Typer:
    """The application of a command: of its function, or of several commands under one name."""
    stem = name.replace("-", "_")
    module = importlib.import_module(f"attractor.cli.{stem}")
    if hasattr(module, "app"):
        return module.app
    one = typer.Typer(add_completion=False, rich_markup_mode=None)
    one.command(name, help=COMMANDS[name], epilog=module.EPILOG)(getattr(module, stem))
    return one


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


for _name, _sentence in COMMANDS.items():
    app.command(_name, help=_sentence, short_help=SHORT[_name])(_placeholder)


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
