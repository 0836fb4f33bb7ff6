"""The words in which answers come, with their meaning: every public enumeration."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
import textwrap

from attractor.cli.session import ExitCode
from site_pages.api import OF_TORCH, public_names


def statuses() -> dict[str, type[enum.Enum]]:
    """Every public enumeration by the name that users write, and the codes of commands."""
    found: dict[str, type[enum.Enum]] = {}
    for name in public_names():
        package, _, short = name.rpartition(".")
        if not package.startswith(OF_TORCH):
            value = getattr(importlib.import_module(package), short)
            if inspect.isclass(value) and issubclass(value, enum.Enum):
                found[name] = value
    return {**found, "exit codes of commands": ExitCode}


def meanings(kind: type[enum.Enum]) -> dict[str, str]:
    """What each member means: its message, or the docstring below it; empty where it has none."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    below = {
        ast.unparse(first.targets[0]): str(second.value.value)
        for first, second in zip(body.body, body.body[1:], strict=False)
        if isinstance(first, ast.Assign)
        and isinstance(second, ast.Expr)
        and isinstance(second.value, ast.Constant)
    }
    return {
        one.name: " ".join((getattr(one, "message", "") or below.get(one.name, "")).split())
        for one in kind
    }


def statuses_page() -> str:
    """The page: a table for each enumeration."""
    text = "# Statuses\n\nAnswers come in words of their own. Here is what each means.\n\n"
    for name, kind in statuses().items():
        summary = (inspect.getdoc(kind) or "").split("\n\n")[0]
        title = re.sub("(?<=[a-z])(?=[A-Z])", " ", name.rpartition(".")[2]).lower()
        where = "" if kind is ExitCode else f" `{name}`"
        text += f"## {title[0].upper() + title[1:]}\n\n{summary}{where}\n\n"
        text += "| name | in words | meaning |\n| --- | --- | --- |\n"
        for member, meaning in meanings(kind).items():
            cell = meaning.replace("|", "\\|")
            value = kind[member].value
            words = value if isinstance(value, str) else str(kind[member])
            text += f"| `{member}` | {words} | {cell} |\n"
        text += "\n"
    return text
