"""Every command with its arguments and options, from the application itself."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import typer

from attractor.cli.application import GROUP, command_names, load_command
from attractor.support.plugins import load_plugin


def command_pages() -> dict[str, str]:
    """The pages by path: a list of all commands, and one page for each."""
    names = command_names()
    sentences = {name: load_plugin(GROUP, name).help for name in names}
    rows = "".join(f"| [{name}]({name}.md) | {said} |\n" for name, said in sentences.items())
    index = (
        "# Command line\n\nEvery command has `--help`; the pages here say the same.\n\n"
        f"| command | what it does |\n| --- | --- |\n{rows}\n"
        "```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
    )
    return {
        "commands/index.md": index,
        **{f"commands/{name}.md": _page(name) for name in names},
    }


def _page(name: str) -> str:
    command: Any = typer.main.get_command(load_command(name))
    text = f"# attractor {name}\n\n"
    inner = getattr(command, "commands", {})
    text += _body(f"attractor {name}", command)
    for sub, one in inner.items():
        text += f"## attractor {name} {sub}\n\n" + _body(f"attractor {name} {sub}", one)
    return text


def _body(name: str, command: Any) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(command.get_usage(context).split()).removeprefix("Usage: ")
    text = f"```\n{usage}\n```\n\n" + _help(command.help or "")
    for title, kind in (("Argument", "argument"), ("Option", "option")):
        some = [
            one.get_help_record(context) for one in command.params if one.param_type_name == kind
        ]
        rows = "".join(f"| {_code(one[0])} | {_cell(one[1])} |\n" for one in some if one)
        text += f"| {title} | meaning |\n| --- | --- |\n{rows}\n" if rows else ""
    return text + _help(command.epilog or "")


def _help(text: str) -> str:
    r"""Help as Markdown: paragraphs, and what is set in columns (after ``\b``) as it is."""
    found = ""
    for block in re.split(r"\n\s*\n", textwrap.dedent(text).strip()):
        as_it_is = block.lstrip().startswith("\b")
        body = block.replace("\b\n", "").replace("\b", "")
        found += f"```\n{body.strip(chr(10))}\n```\n\n" if as_it_is else f"{_plain(body)}\n\n"
    return found


def _plain(text: str) -> str:
    """Words in which Markdown sees nothing but code between backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        one if one.startswith("`") else re.sub(r"([*_<>\[\]|\\$#])", r"\\\1", one) for one in parts
    )


def _code(names: str) -> str:
    return "`" + names.replace("|", "\\|") + "`"


def _cell(text: str) -> str:
    return _plain(" ".join(text.split()))
