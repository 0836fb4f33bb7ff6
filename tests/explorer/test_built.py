"""The built page is that of its source, and its mathematics passes its own tests."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from fuzzing.explorer_states import bases, refused_by_python, shared

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


def run(*words, given=None):
    done = subprocess.run(words, cwd=SOURCE, capture_output=True, text=True, input=given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_that_of_the_source(tmp_path):
    run("npx", "tsc", "--noEmit", "-p", ".")
    run("node", "build.mjs", f"--out={tmp_path / 'explorer.js'}")
    for name in ("explorer.js", "scenes.json"):
        assert (tmp_path / name).read_bytes() == (STATIC / name).read_bytes(), "make explorer"


def test_its_mathematics():
    run("node", "build.mjs", "--core", "--out=build/explorer.js")
    run("node", "--test", *sorted(str(one) for one in (SOURCE / "test").glob("*.test.mjs")))


def test_it_refuses_what_python_refuses():
    run("node", "build.mjs", "--core", "--out=build/explorer.js")
    given = [shared(number, 1) for number in range(800)]
    fine = [json.dumps(one) for some in bases() for one in some]
    texts = [*fine, *(one.text for one in given if one.kind in ("file", "notebook"))]
    said = run("node", "test/verdicts.mjs", given="\n".join(map(json.dumps, texts)))
    verdicts = [json.loads(line) for line in said.splitlines()]
    python = [refused_by_python(text) for text in texts]
    assert not any(python[: len(fine)]) and any(python) and len(python) == len(verdicts)
    assert [bool(one) for one in verdicts] == [bool(one) for one in python]
