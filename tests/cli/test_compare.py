import json

from attractor.cli.session import ExitCode


def written(folder, outcome):
    folder.mkdir()
    claims = {"claims": {"a/b": {"outcome": outcome}, "a/c": {"outcome": "holds"}}}
    (folder / "claims.json").write_text(json.dumps(claims))


def test_outcomes_that_changed(run_json, tmp_path):
    written(tmp_path / "before", "holds")
    written(tmp_path / "after", "fails")
    found, result = run_json("compare", "before", "after", "--out", "here")
    assert result.exit_code == 0, result.stderr
    assert found["words"] == {"a/b": ["holds", "fails"]} and found["numbers"] == []
    assert "a/b: holds in before, fails in after." in result.stderr
    assert "a/b: holds in before" in (tmp_path / "here" / "report.html").read_text()


def test_bad_input(run_json, tmp_path):
    written(tmp_path / "before", "holds")
    found, result = run_json("compare", "before", "gone", "--out", "here")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "SECOND"
    assert not (tmp_path / "here").exists()


def test_a_comparison_is_made_again(run_json, tmp_path):
    written(tmp_path / "before", "holds")
    written(tmp_path / "after", "fails")
    run_json("compare", "before", "after", "--out", "here")
    page = "here/report.html"
    found, result = run_json("reproduce", page, "--data", "before", "--data", "after")
    assert result.exit_code == 0 and found["same"] and not found["changed"], result.stderr
    found, result = run_json("reproduce", page, "--data", "after", "--data", "before")
    assert not found["same"] and "the data were" in found["changed"][0]
    found, result = run_json("reproduce", page, "--data", "before")
    assert "takes first, second; 1 are given" in found["error"]["message"]
