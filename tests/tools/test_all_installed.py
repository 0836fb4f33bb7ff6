"""Where everything has to be installed, a test that is skipped for want of a package fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

def test_imported():
    pytest.importorskip("no_such_package")

@pytest.mark.installed("no_such_package")
def test_installed():
    pass

def test_of_another_system():
    pytest.skip("signals of POSIX")
"""
MODULE = 'import pytest\npytest.importorskip("no_such_package")\n'


def summary(folder, *options):
    (folder / "test_some.py").write_text(TESTS)
    (folder / "test_module.py").write_text(MODULE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", *options, folder]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'tests' / 'shared'}"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    return done.stdout.splitlines()[-1]


def test_a_skip_for_want_of_a_package_is_a_failure(tmp_path):
    found = summary(tmp_path, "--all-installed", "--continue-on-collection-errors")
    assert "1 failed" in found and "2 errors" in found and "1 skipped" in found


def test_elsewhere_it_is_a_skip(tmp_path):
    assert "4 skipped" in summary(tmp_path)
