"""Which lines count as code, and of what kind they are."""

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools.count_lines import KINDS, kinds_of_lines, lines_of_code

ROOT = Path(__file__).parents[2]
SOURCE = '''"""A module
of two lines."""
import os
from a import (
    b,
)

# a remark
LIMIT = 3  # as far as it goes


class Point(Base):
    """A point."""

    x: float

    def norm(
        self,
    ) -> float:
        """Its norm."""
        from math import sqrt

        if self.x > LIMIT:
            raise ValueError(
                "too far"
            )
        check_number("x", self.x)
        return sqrt(
            self.x**2
        )

    def asked_for(self) -> float: ...


def words(point) -> str:
    return """a
text"""


def draw(ax: Axes) -> None:
    ax.plot([])


def save(path):
    open(path)
'''


def kinds(source, *place):
    tree = ast.parse(source)
    of_lines = kinds_of_lines(tree, {*place})
    return Counter(of_lines[row] for row in lines_of_code(source, tree))


def test_each_line_has_the_kind_of_its_innermost_statement():
    signatures = 3 + 1 + 1 + 1  # the method without a body is one line, a contract
    assert kinds(SOURCE) == {
        "declarations": 1, "contracts": 3, "guards": 5, "computing": 3, "words": 2, "drawing": 1,
        "files": 1, "signatures": signatures,
    }  # fmt: skip
    assert kinds("def solve():\n    run()\n", "cli") == {"signatures": 1, "declarations": 1}
    for place in (("heads", "command"), ("maps", "commands", "sweep")):
        assert kinds("def solve():\n    run()\n", *place) == {"signatures": 1, "declarations": 1}
    for place, kind in ((("maps", "bias", "page"), "words"), (("corpora", "files"), "files")):
        assert kinds("def solve():\n    run()\n", *place) == {"signatures": 1, kind: 1}
    assert kinds("LIMIT = 3\ndef bar():\n    run()\n", "plots") == {"drawing": 2, "signatures": 1}
    assert kinds("def run():\n    x = 1\n    assert x\n    try:\n        x = int(y)\n"
                 "    except ValueError as error:\n        raise Other from error\n") == {
        "signatures": 1, "computing": 4, "guards": 2,
    }  # fmt: skip


def counted(*words):
    done = subprocess.run(
        [sys.executable, "tools/count_lines.py", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.processes
def test_rooms_and_kinds_add_up_to_the_whole():
    path = "src/attractor/margin"
    whole = json.loads(counted(path, "--json"))[path]
    assert set(whole["kinds"]) <= set(KINDS) and sum(whole["kinds"].values()) == whole["lines"]
    assert sum(room["lines"] for room in whole["rooms"].values()) == whole["lines"]
    assert whole["files"] == len(list((ROOT / path).rglob("*.py")))
    assert f"{path}: {whole['lines']:,} lines in {whole['files']} files" in counted(path)


@pytest.mark.processes
def test_a_commit_is_counted_as_the_tree_is(tmp_path):
    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True
        )

    for name, text in {
        "src/attractor/tokens/a.py": "x = 1\n",
        "src/attractor/b.py": "y = 2\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/count_lines.py").write_text((ROOT / "tools/count_lines.py").read_text())
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    (tmp_path / "src/attractor/b.py").write_text("y = 2\nz = 3\n")
    words = [sys.executable, "tools/count_lines.py", "src", "--json"]

    def lines(*more):
        done = subprocess.run([*words, *more], cwd=tmp_path, capture_output=True, check=True)
        rooms = json.loads(done.stdout)["src"]["rooms"]
        return {name: room["lines"] for name, room in rooms.items()}

    assert lines() == {"tokens": 1, "(top)": 2} and lines("--at", "HEAD") == {
        "tokens": 1,
        "(top)": 1,
    }
    assert subprocess.run([*words, "--at", "nothing"], cwd=tmp_path).returncode
