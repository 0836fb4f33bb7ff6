"""Files that an earlier version wrote: they load, say what they said, verify and reproduce.

``tests/stored/make.sh`` wrote them; ``contents.json`` is what reading them gave then.
"""

import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import attractor as at
from attractor.models import load_model
from attractor.models.datasets import load_tokenizer
from attractor.results.provenance import read_provenance
from attractor.support.containers import read_netcdf

STORED = Path(__file__).parents[1] / "stored"
CONTENTS = json.loads((STORED / "contents.json").read_text())
DATA = ("tokens.npz", "tokens.safetensors", "corpus.txt", "corpus.npz", "corpus.safetensors",
        "head.npz", "regression.npz", "classifiers.nc")  # fmt: skip
RUNS = ("run.nc", "path.nc", "flow.nc")
LABELED = sorted(str(path.relative_to(STORED)) for path in STORED.rglob("*.nc"))
MADE = sorted(
    str(path.relative_to(STORED))
    for path in (
        *STORED.rglob("summary.json"),
        *STORED.glob("figures/*/*"),
        *STORED.glob("*/*s.json"),
    )
    if path.suffix != ".txt" and path.parent.name != "verify"
)
FROM = {
    "check": "tokens.npz", "verify": "run.nc", "basins": "tokens.npz", "corpus": "corpus.txt",
    "prompt-length": "head.npz",
}  # fmt: skip
NO_LONGER_SAID = {
    "prompt-length": r"freezing_|rows|findings|exponent|.*\.(effective_|judgment|\w+_of_worst)"
}
"""What reports of today leave out, or say in other words."""


def digest(*arrays):
    """A hash of the bytes of arrays, and of their shapes and types."""
    found = hashlib.sha256()
    for array in arrays:
        array = np.asarray(array)
        text = array.dtype.kind in "OUT"
        found.update(f"{array.shape} {'text' if text else array.dtype.str}".encode())
        found.update(str(array.tolist()).encode() if text else array.tobytes())
    return found.hexdigest()[:16]


def labeled(file):
    data = read_netcdf(STORED / file)
    return {name: [list(one.dims), digest(one)] for name, one in sorted(data.variables.items())}


def contents():
    """What the files hold, as ``contents.json`` has it."""
    found = {name: [case.hash for case in at.load(STORED / name).data_sets()] for name in DATA}
    found |= {name: labeled(name) for name in LABELED}
    model = load_model(STORED / "model.safetensors")
    return found | {
        "model.safetensors": digest(*jax.tree.leaves(model)),
        "tokenizer.json": load_tokenizer(STORED / "tokenizer.json").encode(["a good one"], 6).ids,
    }


@pytest.mark.long
def test_files_say_what_they_said():
    found = json.loads(json.dumps(contents(), default=np.ndarray.tolist))
    assert found == CONTENTS


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_a_run(name, tmp_path):
    run = at.Trajectory.load(STORED / name)
    run.save(tmp_path / name)
    again = at.Trajectory.load(tmp_path / name)
    assert again.data.identical(run.data) and again.settings == run.settings
    assert at.verify(run).data.sizes[run.axis] == run.data.sizes[run.axis]


def test_a_run_is_verified_to_the_same_numbers():
    verdict, stored = at.verify(at.Trajectory.load(STORED / "run.nc")), STORED / "verify"
    for name, values in read_netcdf(stored / "measures.nc").data_vars.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(verdict.data[name], values, rtol=1e-9, atol=1e-12)


def test_a_certificate_is_accepted(monkeypatch):
    checker = Path(__file__).parents[2] / "tools" / "verify_certificate.py"
    monkeypatch.setattr(sys, "argv", ["verify_certificate.py", str(STORED / "certificate.json")])
    assert runpy.run_path(str(checker))["main"]() in (None, 0)


@pytest.mark.long
def test_a_run_that_was_killed_goes_on(run, tmp_path):
    """To the end that it would have had, but for what another processor rounds otherwise."""
    shutil.copytree(STORED / "checkpoint", tmp_path / "checkpoint")
    words = ("train", STORED / "tokens.npz", "--steps", 4000, "--seeds", 4, "--out")
    resumed = run(*words, "resumed.nc", "--checkpoint", "checkpoint")
    assert resumed.exit_code == 0, resumed.output
    assert run(*words, "whole.nc").exit_code == 0
    left, right = (at.Trajectory.load(tmp_path / f"{name}.nc") for name in ("resumed", "whole"))
    np.testing.assert_allclose(left.data["W"], right.data["W"], rtol=1e-9)
    other = run(*words, "other.nc", "--checkpoint", "checkpoint", "--lr", "0.05")
    assert other.exit_code == 2


def test_a_run_of_another_compiled_step_is_refused_and_kept(run, tmp_path):
    """Its learning rate was a constant of the program, which may round otherwise."""
    shutil.copytree(STORED / "checkpoint-of-another-step", tmp_path / "checkpoint")
    before = {file.name: file.read_bytes() for file in (tmp_path / "checkpoint").iterdir()}
    words = ("train", STORED / "tokens.npz", "--steps", 4000, "--seeds", 4, "--out")
    refused = run(*words, "resumed.nc", "--checkpoint", "checkpoint")
    assert refused.exit_code == 2
    words = " ".join(refused.output.split())
    assert "the compiled step differs" in words
    assert "give another folder" in words
    assert not (tmp_path / "resumed.nc").exists()
    after = {file.name: file.read_bytes() for file in (tmp_path / "checkpoint").iterdir()}
    assert before.items() <= after.items()


@pytest.mark.parametrize("name", MADE)
def test_what_made_a_file_is_known(name):
    assert read_provenance(STORED / name).name


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_a_result_is_reproduced(name):
    """In a process that compiles as users' do: tests leave optimizations out."""
    given = FROM.get(Path(name).parts[0])
    words = ["reproduce", str(STORED / name), "--json"]
    words += ["--data", str(STORED / given)] if given else []
    command = [sys.executable, "-m", "attractor", *words]
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("JAX", "XLA"))}
    done = subprocess.run(command, capture_output=True, text=True, env=plain)
    found = json.loads(done.stdout)
    left_out = NO_LONGER_SAID.get(Path(name).parts[0], "$")
    differing = [one for one in found["differing"] if not re.match(left_out, one)]
    assert done.returncode == 0 and found["compared"] and not differing, done.stdout


if __name__ == "__main__":
    written = json.dumps(contents(), default=np.ndarray.tolist, indent=1)
    (STORED / "contents.json").write_text(written + "\n")
