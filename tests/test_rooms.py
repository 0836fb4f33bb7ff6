"""The plan of the house: which room imports from which, by public names alone."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import attractor

SOURCE = Path(attractor.__file__).parent
CORE = [
    "support", "geometry", "results", "tokens", "attention", "margin", "training", "analysis",
    "files", "plots", "report", "datasets", "cli",
]  # fmt: skip
"""The rooms of the core, each of which imports from those before it alone."""
SUBJECTS = {
    "torch": set(),
    "prompts": set(),
    "corpora": set(),
    "maps": set(),
    "models": set(),
    "explorer": set(),
    "heads": {"torch", "prompts"},
    "papers": {"torch", "prompts", "corpora", "maps", "models", "explorer", "heads"},
}
"""The rooms of subjects, each with the other subjects that it imports from, beside the core."""
MOST_FILES = 15
MOST_LATE_IMPORTS = 80
"""Imports inside functions: of what takes long to load, and of optional extras."""
FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}


def room_of(name):
    return name.split("/")[0].removesuffix(".py")


def statements(node, late=False):
    """The imports in a node, and whether they are inside a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, late
        elif not isinstance(child, ast.expr):
            yield from statements(child, late or isinstance(child, ast.FunctionDef))


def imported(name):
    """The modules of this library that a file imports from; ``attractor`` for names of its own."""
    for node, _ in statements(TREES[name]):
        if isinstance(node, ast.ImportFrom):
            if node.module == "attractor":
                for alias in node.names:
                    yield (
                        f"attractor.{alias.name}" if (SOURCE / alias.name).is_dir() else "attractor"
                    )
            elif (node.module or "").startswith("attractor."):
                yield node.module
        else:
            yield from (one.name for one in node.names if one.name.split(".")[0] == "attractor")


def arrows():
    """The imports from room to room: a file, the room it lies in, and the module it imports."""
    for name in FILES:
        here = room_of(name)
        for module in imported(name):
            there = module.split(".")[1] if "." in module else "attractor"
            if here not in ("__init__", "__main__", "public") and there not in (here, "version"):
                yield name, here, module, there


def test_every_file_belongs_to_a_room():
    rooms = {room_of(name) for name in FILES}
    assert rooms - {"__init__", "__main__", "public", "version"} == {*CORE, *SUBJECTS}


def test_the_core_imports_downward_and_no_subject():
    wrong = {
        f"{name} imports {module}"
        for name, here, module, there in arrows()
        if here in CORE and there not in CORE[: CORE.index(here)]
    }
    assert wrong == set()


def test_subjects_import_the_core_and_few_of_each_other():
    wrong = {
        f"{name} imports {module}"
        for name, here, module, there in arrows()
        if here in SUBJECTS and there not in {*CORE, *SUBJECTS[here]}
    }
    assert wrong == set()


def test_no_room_imports_a_private_module_or_name_of_another():
    wrong = {
        f"{name} imports {module}"
        for name, _, module, _ in arrows()
        if any(part.startswith("_") for part in module.split("."))
    }
    wrong |= {
        f"{name} imports {node.module}.{alias.name}"
        for name in FILES
        for node, _ in statements(TREES[name])
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("attractor.")
        and node.module.split(".")[1] != room_of(name)
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    }
    assert wrong == set()


def test_no_circle_runs_through_imports_of_modules():
    """Imports inside functions and for annotations left aside."""
    module_of = {}
    for name in FILES:
        words = ["attractor", *Path(name).with_suffix("").parts]
        module_of[".".join(words[:-1] if words[-1] == "__init__" else words)] = name
    needs = {}
    for name in FILES:
        needs[name] = set()
        for node in TREES[name].body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("attractor"):
                for alias in node.names:
                    inner = module_of.get(f"{node.module}.{alias.name}")
                    needs[name].add(inner or module_of[node.module])
        needs[name].discard(name)
    TopologicalSorter(needs).prepare()  # raises CycleError


def test_folders_stay_small():
    sizes = {}
    for name in FILES:
        folder = str(Path(name).parent)
        sizes[folder] = sizes.get(folder, 0) + 1
    assert {folder for folder, size in sizes.items() if size > MOST_FILES} == set()


def test_few_imports_are_inside_functions():
    assert sum(late for name in FILES for _, late in statements(TREES[name])) <= MOST_LATE_IMPORTS


def test_no_package_has_a_name_and_a_module_of_one_name():
    """One would hide the other, and which of them depends on what was imported first."""
    hidden = [
        f"{name}: {alias.name}"
        for name, path in FILES.items()
        if path.name == "__init__.py" and room_of(name) != "cli"
        for node, _ in statements(TREES[name])
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (path.parent / f"{alias.name}.py").exists()
    ]
    assert hidden == []
