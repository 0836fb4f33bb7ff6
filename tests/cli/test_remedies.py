"""Options and extras that messages name exist; of arguments, tests/test_remedies.py says it."""

import ast
import functools
import re
import tomllib
from pathlib import Path

import typer

import attractor
from attractor.cli.application import command_names, load_command

SOURCE = Path(attractor.__file__).parent
NOT_OURS = {"--local-dir"}
"""Options of other programs that messages name: those of ``hf download``."""
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_ANY = re.compile(r"--[a-z]|`attractor |attractor\[")
"""What a file has where a message in it names an option, a command or an extra."""


@functools.cache
def messages():
    """The texts of all modules but for docstrings, those with values in them put together.

    Pages with their styles are left out, and the flags of XLA, and files that name nothing.
    """
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        if file.name in ("page.py", "machine.py"):
            continue
        source, parts = file.read_text(), set()
        if not _ANY.search(source):
            continue
        for node in ast.walk(ast.parse(source)):  # a node comes before its parts
            if isinstance(node, ast.Expr):
                parts.add(id(node.value))
            elif isinstance(node, ast.JoinedStr):
                parts |= {id(part) for part in node.values}
                words = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
                found.append("X".join(words))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found += [node.value] if id(node) not in parts else []
    return found


def options(command):
    found = {"--help"}
    for one in (command, *getattr(command, "commands", {}).values()):
        found |= {option for parameter in one.params for option in parameter.opts}
    return found


def of_commands():
    return {name: options(typer.main.get_command(load_command(name))) for name in command_names()}


def test_every_option_that_a_message_names_exists():
    known = of_commands()
    every = set().union(*known.values(), {"--version"}, NOT_OURS)
    for text in messages():
        assert set(_OPTION.findall(text)) <= every, text
        for name, rest in re.findall(r"`attractor ([a-z-]+)([^`]*)`", text):
            assert name in known or name == "X", text
            assert set(_OPTION.findall(rest)) <= known.get(name, every), text


def test_every_extra_that_a_message_names_exists():
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    named = [names for text in messages() for names in re.findall(r"attractor\[([\w,]+)\]", text)]
    assert named and {one for names in named for one in names.split(",")} <= extras
