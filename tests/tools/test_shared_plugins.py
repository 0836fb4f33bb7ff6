"""Runs of tests that compile too much, or start what their marks do not tell of, fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
COMPILES = "import jax\ndef test_one(): jax.jit(lambda x: x + 1)(1.0)\n"
STARTS = """
import subprocess, sys, pytest

def start(): subprocess.run([sys.executable, "-c", ""])
def test_plain(): start()
@pytest.mark.processes
def test_marked(): start()
"""


@pytest.fixture
def tested(tmp_path):
    def run(text, *options):
        (tmp_path / "test_some.py").write_text(text)
        paths = [ROOT / "tests", ROOT / "tests" / "shared"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "conftest", *options, tmp_path],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    return run


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_a_room_beyond_its_budget_fails_the_run(tested, workers):
    code, said = tested(COMPILES, workers, "--within-budget")
    assert code == 1 and "1 passed" in said and "compiled 1 programs, 0 at most" in said
    code, said = tested(COMPILES, workers)
    assert code == 0 and "at most" not in said


def test_what_starts_a_process_needs_a_mark(tested):
    code, said = tested(STARTS, "-n0")
    assert code == 1 and "mark it with pytest.mark.processes" in said
    assert "ERROR" in said and "test_some.py::test_plain" in said and "1 error in" in said
