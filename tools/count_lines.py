"""Counts lines of code, by room and by kind.

A line counts if it holds a token and is no docstring, comment, blank line or import.

    python tools/count_lines.py                    # src and tests of this tree
    python tools/count_lines.py src/attractor/margin --json
    python tools/count_lines.py --at 649f93ab      # of a commit, without a checkout

A room is the first folder below `src/attractor`, or below the path that was given; files in none
are a room of their own, `(top)`. Kinds are told by shape, not by meaning, so that shares are good
to a few percent. For each line the innermost statement decides, and of these the first:

    signatures    decorators, names, parameters and the annotation of what is returned
    guards        raise, calls of `check_*` and the like, what leads only to these
    drawing       functions with Axes or a Figure in their signature, `plots/`
    words         functions that return texts or rows, or whose names say so; pages
    files         reading, writing, provenance: by names of functions, and of folders, in any room
    declarations  modules outside of functions and classes; bodies of commands
    contracts     heads and fields of classes, functions without a body
    computing     all else
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator, Set
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = (
    *("computing", "signatures", "declarations", "guards", "words"),
    *("drawing", "contracts", "files"),
)
NO_TOKENS = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENDMARKER, tokenize.ENCODING),
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
GUARD = re.compile(r"^_?(check|refuse|require|validate|forbid|ensure)(_|$)")
DRAWING = re.compile(r"\b(Axes|Figure|SubFigure|Artist)\b")
DRAWS = re.compile(r"^_?(plot|draw)(_|$)")
WORDS = re.compile(
    r"(^|_)(words?|sentences?|rows?_of|summary|table|cells?|caption|describe|headline|said|say"
    r"|printed|paragraphs?|glossary|html|markdown)(_|$)|^__(str|repr|rich|rich_console)__$|^_repr_"
)
FILES = re.compile(
    r"^_?(save|load|read|write|from_file|to_file|from_arrays|to_arrays|to_netcdf|to_json|from_json"
    r"|to_dict|from_dict|as_json|to_csv)(_|$)"
)
FILE_PLACES = {"storage", "containers", "provenance", "files"}
PAGE_PLACES = {"report", "pages", "page", "page_words"}
COMMAND_PLACES = {"cli", "commands", "command"}
"""Names of folders, in whichever room they lie, and of files."""


def lines_of_code(source: str, tree: ast.Module) -> set[int]:
    """The numbers of lines that count."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_TOKENS:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            lines -= rows(node)
        elif isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and docstring(node):
            lines -= rows(node.body[0])
    return lines


def rows(node: ast.stmt | ast.expr | ast.excepthandler) -> set[int]:
    """The numbers of a node's lines."""
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the body begins with a text."""
    return ast.get_docstring(node, clean=False) is not None


def kinds_of_lines(tree: ast.Module, place: Set[str]) -> dict[int, str]:
    """The kind of each line of a module, whose folders and own name are its place."""
    kinds: dict[int, str] = {}
    _mark(tree.body, _kind_of_place(place) or "declarations", place, kinds)
    return kinds


def _kind_of_place(place: Set[str]) -> str | None:
    """What all of a place is about, if that is one kind."""
    if "plots" in place:
        return "drawing"
    if place & FILE_PLACES:
        return "files"
    return "words" if place & PAGE_PLACES else None


def _mark(body: list[ast.stmt], kind: str, place: Set[str], kinds: dict[int, str]) -> None:
    """Writes the kind of every line of some statements, the inner after the outer."""
    for node in body:
        whole = rows(node)
        if isinstance(node, FUNCTIONS):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            inner = _kind_of_function(node, place)
            kinds.update(dict.fromkeys(range(first, node.body[0].lineno), "signatures"))
            kinds.update(dict.fromkeys(whole - set(range(first, node.body[0].lineno)), inner))
            _mark(node.body, inner, place, kinds)
        elif isinstance(node, ast.ClassDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            kinds.update(dict.fromkeys(whole | set(range(first, node.lineno)), "contracts"))
            _mark(node.body, "contracts", place, kinds)
        else:
            kinds.update(dict.fromkeys(whole, "guards" if _guards(node) else kind))
            for block in _blocks(node):
                _mark(block, kind, place, kinds)
            if isinstance(node, ast.Try):
                for handler in node.handlers:
                    if all(_guards(one) for one in handler.body):
                        kinds.update(dict.fromkeys(rows(handler), "guards"))


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a compound one, unless all of it is a guard."""
    if not _guards(node):
        for name in ("body", "orelse", "finalbody"):
            yield getattr(node, name, [])
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield part.body


def _guards(node: ast.stmt) -> bool:
    """Whether a statement does nothing but refuse."""
    if isinstance(node, ast.Raise):
        return True
    if isinstance(node, ast.If):
        return all(_guards(one) for one in [*node.body, *node.orelse])
    if isinstance(node, (ast.For, ast.With)):
        return all(_guards(one) for one in node.body)
    value = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
    if isinstance(value, ast.Call):
        called = value.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return bool(GUARD.match(name))
    return False


def _kind_of_function(node: ast.FunctionDef | ast.AsyncFunctionDef, place: Set[str]) -> str:
    """What the body of a function is about."""
    body = node.body[1:] if docstring(node) else node.body
    if all(isinstance(one, (ast.Pass, ast.Expr)) and not _calls(one) for one in body):
        return "contracts"
    returned = ast.unparse(node.returns) if node.returns else ""
    if DRAWING.search(f"{ast.unparse(node.args)} {returned}") or DRAWS.match(node.name):
        return "drawing"
    if of_place := _kind_of_place(place):
        return of_place
    if FILES.match(node.name):
        return "files"
    texts = re.fullmatch(r"(Iterator|Iterable|list|tuple|Sequence)?\[?str(, \.\.\.)?\]?", returned)
    if texts or WORDS.search(node.name):
        return "words"
    if GUARD.match(node.name):
        return "guards"
    return "declarations" if place & COMMAND_PLACES else "computing"


def _calls(node: ast.stmt) -> bool:
    """Whether anything is called in a statement."""
    return any(isinstance(one, (ast.Call, ast.Await, ast.Yield)) for one in ast.walk(node))


def sources(paths: list[str], commit: str | None) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Path given, place below it (or below the package), and text of each Python file.

    Args:
        paths: Folders or files, relative to the root of the tree.
        commit: Where they are read from; None for the tree itself.

    Raises:
        SystemExit: A path is not there.
    """
    for path in paths:
        if commit:
            files = _archived(path, commit)
        else:
            top = ROOT / path
            if not top.exists():
                raise SystemExit(f"there is no {path} in {ROOT}")
            found = sorted(top.rglob("*.py")) if top.is_dir() else [top]
            files = [(str(one.relative_to(ROOT)), one.read_text("utf-8")) for one in found]
        for name, text in files:
            base = "src/attractor" if name.startswith("src/attractor/") else path
            yield path, Path(name).relative_to(base).parts, text


def _archived(path: str, commit: str) -> list[tuple[str, str]]:
    """Names and texts of the Python files of a commit."""
    words = ["git", "archive", commit, "--", path]
    done = subprocess.run(words, cwd=ROOT, capture_output=True)
    if done.returncode:
        raise SystemExit(done.stderr.decode().strip())
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        members = [one for one in archive if one.isfile() and one.name.endswith(".py")]
        return [(one.name, archive.extractfile(one).read().decode()) for one in members]  # type: ignore[union-attr]


def count(paths: list[str], commit: str | None = None) -> dict[str, dict]:
    """Files and lines of code of each path, by room and by kind.

    Args:
        paths: Folders or files, relative to the root of the tree.
        commit: Where they are read from; None for the tree itself.

    Returns:
        For each path `files`, `lines`, `kinds` and `rooms`; for each room the same but `rooms`.
    """
    counts: dict[str, dict] = {}
    for path, place, text in sources(paths, commit):
        tree = ast.parse(text)
        of_lines = kinds_of_lines(tree, {*place[:-1], Path(place[-1]).stem})
        kinds = Counter(of_lines.get(row, "declarations") for row in lines_of_code(text, tree))
        whole = counts.setdefault(path, {"files": 0, "lines": 0, "kinds": Counter(), "rooms": {}})
        room = place[0] if len(place) > 1 else "(top)"
        part = whole["rooms"].setdefault(room, {"files": 0, "lines": 0, "kinds": Counter()})
        for one in (whole, part):
            one["files"] += 1
            one["lines"] += kinds.total()
            one["kinds"].update(kinds)
    return counts


def main() -> None:
    """Prints what was counted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", default=["src", "tests"])
    parser.add_argument("--at", metavar="COMMIT", help="count the files of a commit")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    counts = count(options.paths, options.at)
    if options.json:
        json.dump(counts, sys.stdout, indent=2)
        return print()
    for path, whole in counts.items():
        print(f"{path}: {whole['lines']:,} lines in {whole['files']} files")
        print(f"{'':16}{'files':>7}{'lines':>8}", *(f"{kind:>12}" for kind in KINDS))
        for name, one in [*sorted(whole["rooms"].items()), ("all", whole)]:
            numbers = (f"{one['kinds'][kind]:12,}" for kind in KINDS)
            print(f"{name:16}{one['files']:7,}{one['lines']:8,}", *numbers)
        shares = (f"{whole['kinds'][kind] / max(whole['lines'], 1):12.1%}" for kind in KINDS)
        print(f"{'share':31}", *shares, end="\n\n")


if __name__ == "__main__":
    main()
