"""Names the test files that a change can reach, by what imports what.

    python tools/changed_tests.py              # against HEAD, files not yet known to git included
    python tools/changed_tests.py --base main  # against another commit

`make test-changed` runs them. A name of a package that is loaded on first use leads to the module
that it is written in, and to no other. What a function imports or uses counts where its name is
said by a test or by code that the test can reach; so a test of numbers does not depend on how they
are drawn. Functions that nobody names, and those with decorators, count always: a library may call
them. A file that is no Python reaches the files that spell its name, and else those of its folder.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = "attractor"
SOURCES = ("src", "packs", "tests", "tools", "fuzzing", "examples")
"""Folders whose files import one another; those of a ``src`` go by their names below it."""
LISTED = {
    f"{PACKAGE}.papers.ledger.packs": rf"{PACKAGE}(\.papers\.\w+\.(claims|figures)\b|_further\.)",
    f"{PACKAGE}.training.optimizers.table": rf"{PACKAGE}\.training\.optimizers\b",
    f"{PACKAGE}.geometry.registry": rf"{PACKAGE}\.geometry\b",
}
"""Modules that import all others of a pattern, by names that they put together."""
SAID = {f"{PACKAGE}.commands", f"{PACKAGE}.experiments", f"{PACKAGE}.frameworks"}
"""Groups of entry points that are loaded one by one, where somebody says the name; of the others
all are."""
EVERYTHING = ("pyproject.toml", "tests/conftest.py", "constraints/")
"""A change here can reach every test."""
BY_NAME = {"property", "cached_property", "staticmethod", "classmethod", "fixture", "cache"}
"""Decorators of functions that nobody calls but by their names."""


@dataclass
class Part:
    """A function, or all else in a file: what it uses, and the words that it says."""

    uses: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)
    """Those that it hands on or asks for names by ``getattr``."""


class Tree:
    """The Python files of a checkout, and what each of them uses."""

    def __init__(self, root: Path) -> None:
        """Lists the files."""
        self.root = root
        self.files: dict[str, Path] = {}
        for folder in SOURCES:
            for file in sorted((root / folder).rglob("*.py")):
                parts = file.relative_to(root).with_suffix("").parts
                parts = parts[parts.index("src") + 1 :] if "src" in parts else parts
                self.files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
        self.groups: dict[str, dict[str, str]] = defaultdict(dict)
        for file in (root / "pyproject.toml", *sorted(root.glob("packs/*/pyproject.toml"))):
            project = tomllib.loads(file.read_text("utf-8")).get("project", {})
            for group, points in project.get("entry-points", {}).items():
                for name, one in points.items():
                    self.groups[group][name.replace("-", "_")] = one.partition(":")[0]
        self.tests = {m for m, file in self.files.items() if file.name.startswith("test_")}
        self.stems: dict[str, list[str]] = defaultdict(list)
        for module in self.files:
            if not module.startswith((f"{PACKAGE}.", f"{PACKAGE}_")):
                self.stems[module.rpartition(".")[2]].append(module)

    @functools.cache  # noqa: B019
    def parsed(self, module: str) -> ast.Module:
        """The syntax of a module."""
        return ast.parse(self.files[module].read_text("utf-8"))

    @functools.cache  # noqa: B019
    def names(self, package: str) -> dict[str, str]:
        """Where the names of a package are written that it loads on first use."""
        listing = f"{PACKAGE}.public" if package == PACKAGE else package
        if not {package, listing} <= {*self.files} or self.files[package].name != "__init__.py":
            return {}
        if package != PACKAGE and "import_on_first_use(" not in self.files[package].read_text():
            return {}
        return {
            alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(self.parsed(listing))
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }

    @functools.cache  # noqa: B019
    def resolved(self, dotted: str) -> frozenset[str]:
        """The modules that are imported to have a name like ``attractor.margin.solve``."""
        parts, found = dotted.split("."), set[str]()
        for place in range(1, len(parts) + 1):
            module, rest = ".".join(parts[:place]), parts[place:]
            if module in self.files:
                found.add(module)
                written = self.names(module).get(rest[0]) if rest else None
                if written and f"{module}.{rest[0]}" not in self.files:
                    found |= self.resolved(".".join([written, *rest[1:]]))
        return frozenset(found or self.stems.get(parts[0], ()))  # the latter, beside a test

    @functools.cache  # noqa: B019
    def parts(self, module: str) -> dict[str, Part]:
        """The functions of a module that count where they are named, and under "" the rest."""
        tree, found = self.parsed(module), {"": Part()}
        aliases = _aliases(tree)

        def take(statements: Iterable[ast.stmt], nested: bool) -> None:
            for one in statements:
                if isinstance(one, ast.ClassDef) and not nested:
                    self._use(found[""], [*one.bases, *one.decorator_list], aliases)
                    take(one.body, nested=True)
                elif isinstance(one, ast.FunctionDef) and _by_name(one):
                    self._use(found.setdefault(one.name, Part()), [one], aliases)
                else:
                    self._use(found[""], [one], aliases)

        take(tree.body, nested=False)
        if module in LISTED:
            found[""].uses |= {other for other in self.files if re.match(LISTED[module], other)}
        return found

    def _use(self, part: Part, nodes: Iterable[ast.AST], aliases: dict[str, str]) -> None:
        """Adds what some code uses and says to a part of its file."""
        waiting = list(nodes)
        while waiting:
            one = waiting.pop()
            if isinstance(one, ast.If) and "TYPE_CHECKING" in ast.dump(one.test):
                waiting += one.orelse
                continue
            if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
                part.words.add(one.value.id)  # a package whose name is said here is not handed on
            else:
                waiting += ast.iter_child_nodes(one)
            if isinstance(one, ast.ImportFrom) and one.module:
                for alias in one.names:
                    part.uses |= self.resolved(f"{one.module}.{alias.name}")
                    part.words.add(alias.name)
            elif isinstance(one, ast.Import):
                for alias in one.names:
                    part.uses |= self.resolved(alias.name)
            elif isinstance(one, ast.Attribute):
                part.words.add(one.attr)
                if dotted := _dotted(one, aliases):
                    part.uses |= self.resolved(dotted)
            elif isinstance(one, ast.Name):
                part.words.add(one.id)
                if self.names(aliases.get(one.id, "")):
                    part.packages.add(aliases[one.id])
            elif isinstance(one, ast.arg):  # a fixture
                part.words.add(one.arg)
            elif isinstance(one, ast.Constant) and isinstance(one.value, str):
                for word in one.value.split():
                    part.words.add(word.replace("-", "_"))
                    if re.fullmatch(rf"(at|{PACKAGE})(\.\w+)+\W*", word):
                        whole = re.sub(r"^at\.", f"{PACKAGE}.", word).rstrip("().,:`")
                        part.uses |= self.resolved(whole)

    @functools.cached_property
    def said(self) -> set[str]:
        """All words that any file says; a function of another name is called by a library."""
        parts = [part for module in self.files for part in self.parts(module).values()]
        return set().union(*(part.words for part in parts))

    def reach(self, test: str) -> set[str]:
        """The modules that a test file can reach."""
        seen, words = set[str](), set[str]()
        modules, parts = [test, *self._fixtures(test)], list[Part]()
        unsaid: dict[str, list[Part]] = defaultdict(list)
        while modules or parts:
            if parts:
                part = parts.pop()
                modules += part.uses - seen
                for word in part.words - words:
                    parts += unsaid.pop(word, ())
                    for name, module in self.groups.get(word, {}).items():
                        named = Part({module})
                        waits = word in SAID and name not in words | part.words
                        (unsaid[name] if waits else parts).append(named)
                words |= part.words
                for package in part.packages:
                    for name in self.names(package):
                        named = Part({*self.resolved(f"{package}.{name}")})
                        (parts if name in words else unsaid[name]).append(named)
            elif (module := modules.pop()) not in seen:
                seen.add(module)
                for name, part in self.parts(module).items():
                    counts = not name or name in words or name not in self.said
                    (parts if counts or module == test else unsaid[name]).append(part)
        return seen

    def _fixtures(self, test: str) -> Iterator[str]:
        """The files of fixtures above a test file."""
        parts = test.split(".")
        for place in range(1, len(parts)):
            name = ".".join([*parts[:place], "conftest"])
            if name in self.files:
                yield name

    def reached(self, changed: Iterable[str]) -> list[Path]:
        """The test files that a change of some files can reach.

        Args:
            changed: Files, relative to the root of the tree.
        """
        modules, own = set[str](), {str(f.relative_to(self.root)): m for m, f in self.files.items()}
        for file in changed:
            if file.startswith(EVERYTHING):
                return sorted(self.files[test] for test in self.tests)
            modules |= {own[file]} if file in own else self._that_spell(file)
        return sorted(self.files[test] for test in self.tests if modules & self.reach(test))

    def _that_spell(self, file: str) -> set[str]:
        """Modules that spell the name of a file, or else those of its folder."""
        name, folder = Path(file).name, self.root / Path(file).parent
        found = {m for m, path in self.files.items() if name in path.read_text("utf-8")}
        inside = folder != self.root
        return found or {m for m, path in self.files.items() if inside and folder in path.parents}


def _by_name(function: ast.FunctionDef) -> bool:
    """Whether a function runs only where somebody says its name."""
    if function.name.startswith("__"):
        return False
    text = [ast.dump(one) for one in function.decorator_list]
    known = [re.findall(r"(?:id|attr)='(\w+)'", one) for one in text]
    return all(BY_NAME & set(one) or "setter" in one for one in known) and "autouse" not in str(
        text
    )


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Dotted names by the names that they have in a module."""
    found = {}
    for one in ast.walk(tree):
        if isinstance(one, ast.Import):
            for alias in one.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or whole] = whole
        elif isinstance(one, ast.ImportFrom) and one.module:
            for alias in one.names:
                found[alias.asname or alias.name] = f"{one.module}.{alias.name}"
    return found


def _dotted(node: ast.Attribute, aliases: dict[str, str]) -> str | None:
    """``at.papers.get_claim`` with its first name written out; None of an object."""
    parts: list[str] = []
    base: ast.expr = node
    while isinstance(base, ast.Attribute):
        parts.append(base.attr)
        base = base.value
    if not isinstance(base, ast.Name) or base.id not in aliases:
        return None
    return ".".join([aliases[base.id], *reversed(parts)])


def changed_files(root: Path, base: str) -> list[str]:
    """The files that differ from a commit, those unknown to git included."""
    git = ["git", "-C", str(root)]
    asked = (["diff", "--name-only", base], ["ls-files", "--others", "--exclude-standard"])
    runs = [subprocess.run([*git, *words], check=True, stdout=-1, text=True) for words in asked]
    return [line for run in runs for line in run.stdout.splitlines()]


def main() -> None:
    """Prints the test files, one in a line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", metavar="COMMIT", default="HEAD")
    root = Path(__file__).parents[1]
    for file in Tree(root).reached(changed_files(root, parser.parse_args().base)):
        print(file.relative_to(root))


if __name__ == "__main__":
    main()
