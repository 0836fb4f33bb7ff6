"""The golden record: what it says of two trees, and that each part yields something."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tools.golden.__main__ import PARTS, compare, difference
from tools.golden.collect import collect, digest, leaves

ROOT = Path(__file__).parents[2]
PART = """
from collections.abc import Iterator

def numbers():
    import attractor

    yield "value", lambda: attractor.value()
    yield "same", lambda: [1.0, 2.0]
    yield "gone", lambda: attractor.gone()
    yield "status", lambda: {"outcome": attractor.OUTCOME, "words": "not compared", "seconds": 3}

ADAPTERS = {"numbers": numbers}
"""
BEFORE = """
import numpy as np
OUTCOME = "holds"
def value(): return np.array([1.0, 2.0])
def gone(): return 3
"""
AFTER = """
import numpy as np  # of another length, so that no bytecode of the first is taken for it
OUTCOME = "fails"
def value(): return np.array([1.0, 2.5])
def more(): return 3
"""


@pytest.fixture
def trees(tmp_path):
    """A repository whose working tree differs from its commit in three results."""
    root = tmp_path / "repository"
    shutil.copytree(ROOT / "tools" / "golden", root / "tools" / "golden")
    shutil.rmtree(root / "tools" / "golden" / "parts")
    part = root / "tools" / "golden" / "parts" / "numbers.py"
    package = root / "src" / "attractor" / "__init__.py"
    for file, text in ((part, PART), (package, BEFORE)):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    as_someone = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run(["git", *as_someone, *words], cwd=root, check=True)
    return root, package


def golden(root, *words):
    return subprocess.run(
        [sys.executable, "-m", "tools.golden", "--base", "HEAD", *words],
        cwd=root, capture_output=True, text=True, timeout=100,
    )  # fmt: skip


@pytest.mark.processes
def test_what_differs_is_said_with_its_size_unless_it_is_expected(trees, tmp_path):
    root, package = trees
    same = golden(root)
    assert same.returncode == 0 and "equal: 4" in same.stdout, same.stderr
    package.write_text(AFTER)
    out, expected = tmp_path / "report.json", tmp_path / "expected.txt"
    other = golden(root, "--out", str(out), "--processes", "2")
    assert other.returncode == 1
    report = json.loads(out.read_text())
    assert set(report["equal"]) == {"numbers/numbers/same:"}
    assert "1 of 2 differ, by 2.0e-01 of the largest at most: 2.0, now 2.5" in other.stdout
    assert "'holds' is now 'fails'" in report["differs"]["numbers/numbers/status:outcome"]
    assert "no attribute 'gone'" in report["only in base"]["numbers/numbers/gone:"]
    names = ("numbers/numbers/value:", "numbers/*/gone:", "numbers/numbers/status:outcome")
    expected.write_text("# why\n" + "".join(f"{name}\tit was wrong\n" for name in names))
    agreed = golden(root, "--expected", str(expected))
    assert agreed.returncode == 0 and "expected: numbers/*/gone:: it was wrong" in agreed.stdout
    expected.write_text("numbers/numbers/value:\tit was wrong\nno-such-name\tnever\n")
    again = golden(root, "--expected", str(expected))
    assert again.returncode == 1 and "expected, and not met: no-such-name" in again.stdout
    assert subprocess.run(
        ["git", "worktree", "list"], cwd=root, capture_output=True, text=True
    ).stdout.count("\n") == 1  # fmt: skip


def test_differences_are_said_by_their_kind():
    one = np.array([1.0, np.nan, 0.0])
    assert difference(one, np.array([1.0, np.nan, -0.0])).startswith("the same but")
    assert "shape (3,) is now (2,)" in difference(one, one[:2])
    assert "float64 is now float32" in difference(one, one.astype("f4"))
    assert "1 of 2 differ, the first: 1, now 2" in difference(np.array([1, 3]), np.array([2, 3]))
    assert "inf" in difference(np.array([1.0]), np.array([np.nan]))
    values = {"a": one, "b": one}
    digests = {name: digest(value) for name, value in values.items()}
    both = compare((digests, values, {}, {}), ({"a": digests["a"]}, {"a": one}, {}, {}))
    assert set(both["equal"]) == {"a"} and both["only in base"] == {"b": "not there"}


def test_numbers_and_short_texts_are_taken_out_of_results():
    found = {
        "a": [1.0, 2.0], "b": {"c": True, "version": "3"}, "d": "some words", "e": None,
        "f": "word",
    }  # fmt: skip
    assert {name: one.tolist() for name, one in leaves(found)} == {
        "a": [1.0, 2.0], "b.c": True, "e": "None", "f": "word",
    }  # fmt: skip
    with pytest.raises(TypeError, match="b is a function"):
        list(leaves({"b": lambda: 3}))
    assert digest(np.array([1])) != digest(np.array([1.0])) != digest(np.array([[1.0]]))


LEAST = {
    "analysis": (["measure"], 4), "audit": (["heads"], 20), "claims": (["claim"], 5),
    "corpus": (["structure", "cycles"], 3), "figures": (["figure"], 3), "margin": ([], 40),
    "prompt": (["finite", "length", "regression"], 14), "stored": (["data", "run"], 10),
    "sweeps": (["experiment"], 5), "training": (["optimizer"], 10),
}  # fmt: skip
"""What of each part takes little time, and how many results its first ones are at least."""


@pytest.mark.parametrize("part", PARTS)
def test_every_part_yields_results(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    only, least = LEAST[part]
    options = {"whole": False, "stored": ROOT / "tests" / "stored"}
    found, missing, _ = collect(part, 1, tuple(only), **options)
    assert not missing and len(found) >= least
