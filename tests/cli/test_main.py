import subprocess
import sys

import pytest

import attractor


def test_version(run):
    assert run("--version").stdout.strip() == f"attractor {attractor.__version__}"


def test_unknown_options_are_bad_input(run):
    assert run("check", "--nonsense").exit_code == 2


@pytest.mark.processes
def test_help_needs_no_figures():
    code = (
        "import sys; from attractor.cli.application import app; "
        "print([m for m in ('matplotlib', 'sklearn', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
