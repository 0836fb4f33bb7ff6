"""Real language that comes with every Python: the docstrings of its standard library."""

from __future__ import annotations

import ast
import os
import re
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from attractor.support.checks import check_items
from attractor.support.errors import InvalidInputError

_LEFT_OUT = {"test", "tests", "site-packages", "dist-packages", "idlelib", "lib2to3", "__pycache__"}
"""Tests, other people's packages, and two programs that come along with the library."""
_SENTENCE_END = re.compile(r"[.!?:;](?=\s|$)|\n\s*\n|\n\s*[-*]\s")
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_NOT_PROSE = re.compile(
    r"^\s*(>>>|\.\.\.).*$|https?://\S+|[\w.]*\w\([^()]*\)|`[^`]*`", re.MULTILINE
)


def docstring_sentences(modules: Sequence[str] | None = None) -> list[list[str]]:
    """The sentences of the standard library's docstrings, as lists of lower-case words.

    Docstrings are those of modules, classes and functions, in the order of the sorted paths of
    source files and of their place in each; nothing is imported, and tests are left out. Lines of
    interpreter sessions, addresses, calls such as ``open(file)`` and quoted code are dropped. A
    sentence ends at ``. ! ? : ;`` before white space, at an empty line and at an item of a list;
    a word is a run of the letters a to z, perhaps with an apostrophe inside. Sentences of one word
    are left out. The text differs between versions of Python.

    Args:
        modules: Top-level modules or packages, such as ``["json", "argparse"]``; default: all.

    Raises:
        InvalidInputError: If there are none, or no source is installed.
    """
    modules = None if modules is None else check_items("modules", modules, str)
    sentences = [
        words
        for docstring in _docstrings(modules)
        for part in _SENTENCE_END.split(_NOT_PROSE.sub(" ", docstring))
        if part and len(words := _WORD.findall(part.lower())) > 1
    ]
    if not sentences:
        raise InvalidInputError(
            "modules",
            f"no docstrings were found of {'the library' if modules is None else modules}",
            "Give names of modules in the standard library whose source is installed",
        )
    return sentences


def _docstrings(modules: Sequence[str] | None) -> Iterator[str]:
    for path in _sources(modules):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            try:
                tree = ast.parse(path.read_bytes())
            except (SyntaxError, ValueError):  # some files are there to be broken
                continue
        found = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        for node in sorted(found, key=lambda node: getattr(node, "lineno", 0)):
            docstring = ast.get_docstring(node)
            if docstring:
                yield docstring


def _sources(modules: Sequence[str] | None) -> list[Path]:
    """The source files of the library, in the order of their paths."""
    root, found = Path(sysconfig.get_paths()["stdlib"]), []
    for place, folders, files in os.walk(root):
        above = Path(place).relative_to(root).parts
        names = {*folders, *files} - _LEFT_OUT
        if modules is not None and not above:
            names = {name for name in names if name.removesuffix(".py") in modules}
        # What is left out is not gone through: other people's packages are most of it.
        folders[:] = names.intersection(folders)
        found += [(*above, name) for name in names.intersection(files) if name.endswith(".py")]
    return [root.joinpath(*parts) for parts in sorted(found)]
