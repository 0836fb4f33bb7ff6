"""What messages tell users to give can be given."""

import ast
import functools
import inspect
import re
import tomllib
from pathlib import Path

import typer

import attractor
from attractor.cli.application import COMMANDS, load_command

SOURCE = Path(attractor.__file__).parent
NOT_OURS = {"--local-dir"}
"""Options of other programs that messages name: those of ``hf download``."""
OF_TORCH = {"sparse"}
"""An argument of ``torch.nn.Embedding``."""
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@functools.cache
def trees():
    """The modules with messages; those left out have styles of pages and flags of XLA."""
    return [
        ast.parse(file.read_text())
        for file in sorted(SOURCE.rglob("*.py"))
        if file.name not in ("page.py", "machine.py")
    ]


@functools.cache
def messages():
    """The texts of all modules but for docstrings, those with values in them put together."""
    found = []
    for tree in trees():
        parts = set()
        for node in ast.walk(tree):  # a node comes before its parts
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
    return {name: options(typer.main.get_command(load_command(name))) for name in COMMANDS}


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


def test_every_argument_that_a_message_tells_to_set_exists():
    parameters = {
        argument.arg
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for argument in (*node.args.args, *node.args.kwonlyargs)
    }
    for text in messages():
        for name in re.findall(r"\b(?:Raise|Lower|Set|Use|Give|Pass) ([a-z_]+)=", text):
            assert name in parameters | OF_TORCH, text


def test_who_is_told_to_raise_most_can():
    for function in (attractor.locally_optimal_selections, attractor.enumerate_selections):
        assert "most" in inspect.signature(function).parameters
