"""Write a file to start from."""

from __future__ import annotations

import typer

from attractor.cli.command import Command
from attractor.support.plugins import load_plugins

GROUP = "attractor.examples"
"""The entry points of functions that write an example file, one for each kind of file."""

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
for _name, _write in load_plugins(GROUP).items():
    app.command(_name)(_write)


COMMAND = Command(
    app,
    "Write an example file.",
    {
        "attractor example tokens tokens.npz": 1,
    },
)
