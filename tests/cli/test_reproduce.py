import json

import numpy as np

from attractor.cli.session import ExitCode

FEW = ("--steps", 100, "--seeds", 2)


def test_a_report_comes_out_the_same_and_changes_are_named(run_json, file, tmp_path):
    _, result = run_json("check", file, "--out", "report", *FEW)
    assert result.exit_code == 0
    found, result = run_json("reproduce", "report/training.svg", "--data", file)
    assert result.exit_code == 0, result.stderr
    assert found["same"] and found["kind"] == "report" and found["compared"] > 20
    summary = tmp_path / "report" / "summary.json"
    contents = json.loads(summary.read_text())
    contents["verdict"]["trials"] = 3
    summary.write_text(json.dumps(contents))
    found, _ = run_json("reproduce", "report/report.html", "--data", file)
    assert found["differing"] == {"verdict.trials": "was 3 and is 2"}


def test_other_data_are_told(run_json, file, change):
    run_json("check", file, "--out", "report", *FEW)
    with np.load(file) as stored:
        change(file, keys=2 * stored["keys"])
    found, result = run_json("reproduce", "report/report.html", "--data", file)
    assert result.exit_code == 0
    assert not found["same"]
    assert any(words.startswith("the data were those of hash") for words in found["changed"])


def test_a_file_that_says_nothing_is_refused(run_json, tmp_path):
    (tmp_path / "plain.json").write_text("{}")
    found, result = run_json("reproduce", "plain.json")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "file"
