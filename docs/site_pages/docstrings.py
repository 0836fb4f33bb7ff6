"""Docstrings as they are written here, as reStructuredText.

Equations stand in indented blocks, of which reStructuredText would make quotations, and
substitutions of every ``|x|`` in them. Here they become literal blocks.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
from functools import cache
from typing import Any

from attractor.papers import Assumption
from site_pages.api import OF_TORCH, public_names

_SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Yields|Note|Example|Examples):")
_TYPE = re.compile(r"^:(vartype|type|rtype)( \S+)?: (.*(?:jaxtyping|\*).*)$")
_PACKAGES = re.compile(
    r"~?\b(?:jaxtyping|numpy|jax|jaxlib\._jax|typing|collections\.abc)\.(?=[A-Z]|ndarray\b)"
)


def literal_blocks(lines: list[str]) -> list[str]:
    """Lines with ``::`` before every indented block that belongs to no section."""
    found: list[str] = []
    section = inside = False
    for place, line in enumerate(lines):
        if _SECTION.match(line):
            section = True
        elif line and not line.startswith(" "):
            section = inside = False
        starts = line.startswith("    ") and place > 0 and not lines[place - 1].strip()
        if starts and not section and not inside:
            before = next((one for one in reversed(found) if one.strip()), "")
            if not before.rstrip().endswith("::"):
                found += ["::", ""]
            inside = True
        found.append(line)
    return found


def without_packages(text: str) -> str:
    """Types without the packages they come from: ``Float[ndarray, 'n d']``."""
    return _PACKAGES.sub("", text)


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def imported_from(module: str, name: str) -> str | None:
    """The module that a module imports a name from; None where it does not."""
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            if any((one.asname or one.name) == name for one in node.names):
                return node.module
    return None


def data_docstring(name: str) -> str:
    """What stands below the assignment of a name, wherever it is imported from; else empty.

    An assumption of claims says itself what it is.
    """
    module, _, short = name.rpartition(".")
    while (source := imported_from(module, short)) is not None:
        module = source
    body = _parsed(module).body
    for node, below in itertools.pairwise(body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        targets = [part for one in targets for part in getattr(one, "elts", [one])]
        named = any(isinstance(one, ast.Name) and one.id == short for one in targets)
        if named and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            return inspect.cleandoc(str(below.value.value))
    value = getattr(importlib.import_module(module), short, None)
    return value.statement if isinstance(value, Assumption) else ""


@cache
def _ambiguous() -> dict[str, list[str]]:
    """Public names by their last part, where several share it."""
    found: dict[str, list[str]] = {}
    for name in public_names():
        found.setdefault(name.rpartition(".")[2], []).append(name)
    return {short: names for short, names in found.items() if len(names) > 1}


def _tell_apart(app: Any, document: Any) -> None:
    """Points links of types that share their last part at what the module they stand in means."""
    from sphinx import addnodes  # not there where only the tests are run

    for link in document.findall(addnodes.pending_xref):
        names = _ambiguous().get(link.get("reftarget", ""))
        described = link
        while described is not None and not isinstance(described, addnodes.desc):
            described = described.parent
        if not names or described is None:
            continue
        at = described.next_node(addnodes.desc_signature)
        assert at is not None
        value = getattr(importlib.import_module(at["module"]), at["fullname"].split(".")[0])
        module = getattr(value, "__module__", at["module"])
        home = (imported_from(module, link["reftarget"]) or module).split(".")

        def common(name: str, home: list[str] = home) -> int:
            return sum(a == b for a, b in zip(name.split("."), home, strict=False))

        link["reftarget"] = max(names, key=common)


def _before_napoleon(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    if what == "data":
        lines[:] = data_docstring(name).splitlines()
    lines[:] = literal_blocks(lines)
    if what == "property" and lines:
        # What stands before a colon would be taken for the type of the property.
        lines.insert(0, "\\ ")


def _after_napoleon(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Shapes stand as they are: their asterisks are no emphasis."""
    for place, line in enumerate(lines):
        found = _TYPE.match(line)
        if found:
            lines[place] = (
                f":{found[1]}{found[2] or ''}: ``{without_packages(found[3]).strip('`')}``"
            )


def _signature(
    app: Any,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    answer: str | None,
) -> tuple[str | None, str | None]:
    if what == "class" and name.startswith(OF_TORCH):
        # PyTorch stands in as a dummy here, whose classes take anything.
        from sphinx.util.inspect import signature as signature_of, stringify_signature

        own = signature_of(obj.__init__, bound_method=True)
        signature = stringify_signature(own, show_return_annotation=False)
    return signature and without_packages(signature), answer and without_packages(answer)


def connect(app: Any) -> None:
    """Puts two hooks around that of napoleon, whose priority is 500, and two elsewhere."""
    app.connect("autodoc-process-docstring", _before_napoleon, priority=100)
    app.connect("autodoc-process-docstring", _after_napoleon, priority=900)
    app.connect("autodoc-process-signature", _signature)
    app.connect("doctree-read", _tell_apart)
