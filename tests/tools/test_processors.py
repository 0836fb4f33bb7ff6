"""Runs of the tests as on other machines: what they change, and what they notice."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = """
import os

def test_core():
    assert os.environ.get("OPENBLAS_CORETYPE") != "Prescott"
"""
ROUNDING = """
import numpy as np
import tools.rounded_otherwise

W = np.random.default_rng(1).normal(size=(40, 4, 7))
alone = [np.linalg.norm(one, 2) for one in W]
np.testing.assert_array_equal(np.linalg.norm(W, 2, axis=(-2, -1)), alone)
np.testing.assert_array_equal(np.linalg.svd(W)[1], [np.linalg.svd(one)[1] for one in W])
assert np.linalg.det(np.eye(3)) == 1
turned = [np.linalg.norm(one.T, 2) for one in W]
np.testing.assert_allclose(turned, alone, rtol=1e-14)
assert (np.array(turned) != alone).mean() > 0.3
"""


def run(*words):
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


@pytest.mark.processes
def test_a_run_changes_one_thing_and_names_what_fails(tmp_path):
    test = tmp_path / "test_machine.py"
    test.write_text(CORE)
    done = run("tools/processors.py", "prescott", "threads-1", "--tests", str(test))
    named, rest = done.stdout.split("prescott:")
    assert "test_machine.py::test_core" in named and "test_core" not in rest
    assert done.returncode == 1 and "failed: prescott\n" in rest


@pytest.mark.processes
def test_a_run_that_does_not_exist_is_refused_by_name():
    done = run("tools/processors.py", "skylake")
    assert done.returncode == 2 and "'skylake'" in done.stderr and "skylakex" in done.stderr


@pytest.mark.processes
def test_other_rounding_keeps_one_way_to_a_number_and_parts_two():
    done = run("-c", ROUNDING)
    assert done.returncode == 0, done.stderr


def test_what_the_makefile_runs_is_there():
    files = re.findall(r"\S+\.py\b", (ROOT / "Makefile").read_text("utf-8"))
    assert "tools/processors.py" in files
    assert [file for file in files if not (ROOT / file).exists()] == []
