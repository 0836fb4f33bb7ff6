"""The house plan: a room knows only the rooms above it."""

import ast
from pathlib import Path

import attractor

SOURCE = Path(attractor.__file__).parent
ROOMS = [
    "version", "errors", "visible", "settings", "first_use", "checks", "loaded",
    "memory", "blas", "precision", "randomness", "storage", "containers", "progress", "threads",
    "machine", "records", "geometry", "tokens", "attention", "selection", "margin", "training",
    "provenance", "prompt", "audit", "torch", "analysis", "monitor", "next_token", "datasets",
    "models", "files", "explorer", "sweeps", "plots", "papers", "report", "cli",
]  # fmt: skip
WHEN_ASKED_FOR = {"records/plotted.py imports plots"}
"""Below it, and imported by ``.plot()`` alone: results know the names of what draws them."""


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def statements(node):
    """All statements in a node; expressions, which are most of it, hold none."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


def imported_rooms(path):
    """The rooms that a file imports from; those of the facade are ``attractor`` itself."""
    for node in statements(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
            if node.module == "attractor":
                names = [alias.name for alias in node.names]
                modules = [f"attractor.{name}" if name in ROOMS else "attractor" for name in names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "attractor":
                yield parts[1] if len(parts) > 1 else "attractor"


def test_every_file_belongs_to_a_room():
    found = {room_of(path) for path in SOURCE.rglob("*.py")}
    assert found - {"__init__", "__main__", "public"} == set(ROOMS)


def test_a_room_imports_only_from_rooms_above_it():
    wrong = {
        f"{path.relative_to(SOURCE)} imports {other}"
        for path in SOURCE.rglob("*.py")
        if (room := room_of(path)) in ROOMS
        for other in imported_rooms(path)
        if other not in ROOMS or ROOMS.index(other) > ROOMS.index(room)
    }
    assert wrong == WHEN_ASKED_FOR


def test_no_package_has_a_name_and_a_module_of_one_name():
    """One would hide the other, and which of them depends on what was imported first."""
    hidden = [
        f"{init.parent.relative_to(SOURCE)}: {alias.name}"
        for init in SOURCE.rglob("__init__.py")
        for node in ast.walk(ast.parse(init.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (init.parent / f"{alias.name}.py").exists() and init.parent.name != "cli"
    ]
    assert hidden == []
