"""Long commands that are ended keep what is done, and the same command goes on from there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attractor.heads import command as audit
from attractor.heads.audit.finished_heads import FinishedHeads
from attractor.heads.inputs import ModelShape

SCRIPT = Path(__file__).with_name("continued_commands.py")


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_matrix_goes_on_from_its_finished_rows(tmp_path, number):
    found = subprocess.run(
        [sys.executable, SCRIPT, number], cwd=tmp_path, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    seen = json.loads(found.stdout)
    whole, ended, continued = seen["whole"], seen["ended"], seen["continued"]
    assert whole["code"] == continued["code"] == 0, continued
    assert (whole["trained"], ended["trained"], continued["trained"]) == (3, 2, 1)
    assert "2 runs are done" in continued["complained"]
    stored = [(tmp_path / one / "here" / "matrix.nc").read_bytes() for one in ("whole", "one")]
    assert stored[0] == stored[1]
    assert len(ended["beside"]) == 1 and not continued["beside"] and not whole["beside"]
    if number == "SIGKILL":
        return
    assert ended["code"] == {"SIGINT": 130, "SIGTERM": 143}[number]
    rows = [row["optimizer"] for row in json.loads(ended["said"])["so_far"]["optimizers"]]
    assert rows == ["gd, step 0.1", "gd, step 0.2"]
    assert "Unfinished, 2 rows so far" in ended["complained"]
    assert "the same command goes on" in ended["complained"]
    if number == "SIGINT":
        unkept, another = seen["unkept"], seen["another"]
        assert not unkept["beside"] and len(json.loads(unkept["said"])["so_far"]["optimizers"]) == 2
        assert "nothing is kept without --out" in unkept["complained"]
        assert another["trained"] == 0 and "are done" not in another["complained"]
        assert "so_far" not in json.loads(another["said"])


@pytest.mark.long
def test_an_audit_keeps_its_capture_and_finished_heads(run, run_json, tmp_path, monkeypatch):
    assert run("example", "heads", "heads.nc").exit_code == 0
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "texts.txt").write_text("one two\n" * 9)
    captured, written = [], []

    def capture(file, model, *rest, **options):
        captured.append(model.name)
        shutil.copyfile(tmp_path / "heads.nc", file)

    monkeypatch.setattr(audit, "_check_source", lambda *given: False)
    monkeypatch.setattr(ModelShape, "of", classmethod(lambda cls, model: ModelShape(None, None)))
    monkeypatch.setattr(audit, "_capture", capture)
    monkeypatch.setattr("attractor.heads.page.write_audit_report", lambda *given, **options: {})
    whole = FinishedHeads.write

    def write(self, name, *rest):
        whole(self, name, *rest)
        written.append(name)
        if len(written) < 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(FinishedHeads, "write", write)
    few = ("--heads", "1.0,1.1", "--draws", 19, "--out", "report")
    result = run("audit", "model", "texts.txt", *few)
    assert result.exit_code == 130 and "the same command goes on" in result.stderr
    assert captured == ["model"] and len(list(tmp_path.glob(".report.unfinished-*"))) == 1
    run("audit", "model", "texts.txt", *few, "--seed", 1)
    assert captured == ["model", "model"], "another command must not find the capture"
    assert len(list(tmp_path.glob(".report.unfinished-*"))) == 2
    result = run("audit", "model", "texts.txt", *few)
    assert result.exit_code == 0, result.output
    assert captured == ["model", "model"] and "model is captured" in result.output
    assert len(written) == 3 and written[2] != written[0]
    assert not list(tmp_path.glob(".report.unfinished-*"))
