"""The built page is that of its source, and its mathematics passes its own tests."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "explorer"
STATIC = ROOT / "src/attractor/explorer/static"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("node") is None, reason="there is no node"),
    pytest.mark.skipif(
        not (SOURCE / "node_modules").exists(), reason="run `npm ci` in explorer/ first"
    ),
]


def run(*words):
    done = subprocess.run(words, cwd=SOURCE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_that_of_the_source(tmp_path):
    run("npx", "tsc", "--noEmit", "-p", ".")
    run("node", "build.mjs", f"--out={tmp_path / 'explorer.js'}")
    for name in ("explorer.js", "scenes.json"):
        assert (tmp_path / name).read_bytes() == (STATIC / name).read_bytes(), "make explorer"


def test_its_mathematics():
    run("node", "build.mjs", "--core", "--out=build/explorer.js")
    run("node", "--test", *sorted(str(one) for one in (SOURCE / "test").glob("*.test.mjs")))
