"""Remedies that say ``name=`` name an argument of the public functions that raise them."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import attractor

SOURCE = Path(attractor.__file__).parent
WRITTEN_OUT = re.compile(r"[\w.]\([^()]*(\([^()]*\)[^()]*)*\)")  # a call, with its arguments
ASSIGNED = re.compile(r"(?<![\w.])([a-z_]+)=(?!=)")


def text_of(node):
    """The text of a string, whatever it is put together from."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(text_of(child) for child in ast.iter_child_nodes(node))


def arguments_of(function):
    """Names of the arguments, or None where any is taken and passed on to another function."""
    given = function.args
    everything = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    return None if given.kwarg else {argument.arg for argument in everything}


def read_source():
    """Public functions with their arguments, callers, and remedies, all by module and name."""
    public, arguments, callers, remedies = set(), {}, defaultdict(set), []
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        module = ".".join(parts)
        tree = ast.parse(path.read_text())
        tops = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        names = {node.name: (module, node.name) for node in tops}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("attractor."):
                names |= {a.asname or a.name: (node.module, a.name) for a in node.names}
        if parts[-1] == "__init__":
            public |= set(names.values())
        for top in tops:
            own = (module, top.name)
            if isinstance(top, ast.FunctionDef):
                arguments[own] = arguments_of(top)
            for node in ast.walk(top):
                if isinstance(node, ast.Name) and node.id in names:
                    callers[names[node.id]].add(own)
                called = getattr(getattr(node, "func", None), "id", "")
                if called == "InvalidInputError":
                    remedies += [(own, text_of(remedy)) for remedy in node.args[2:]]
    return {f: arguments[f] for f in public & set(arguments)}, callers, remedies


@pytest.mark.long
def test_arguments_that_remedies_name_can_be_given():
    public, callers, remedies = read_source()
    wrong = []
    for function, remedy in remedies:
        named = set(ASSIGNED.findall(WRITTEN_OUT.sub("", remedy)))
        room = function[0].split(".")[1]
        reached, open_ = {function}, [function] if named else []
        while open_:  # up to the borders of the room, beyond which arguments have other names
            found = {f for f in callers[open_.pop()] - reached if f[0].split(".")[1] == room}
            reached |= found
            open_ += found
        wrong += [
            f"{name}: {remedy}"
            for name in reached & set(public)
            if public[name] is not None and not named <= public[name]
        ]
    assert not wrong, "\n".join(wrong)
