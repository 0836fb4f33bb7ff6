import json

from attractor.papers.large_prompt.data import random_head

CLAIM = "large-prompt/output-concentration"


def test_a_head_is_checked_by_the_claims_that_speak_of_one(run_json, tmp_path):
    random_head(0, 2, rank=1, centered=True, horizon=0.3).save(tmp_path / "head.npz")
    found, result = run_json("claims", CLAIM, "--data", "head.npz", "--out", "report")
    assert result.exit_code == 0
    claim = found["claims"][CLAIM]
    assert claim["outcome"] == "fails" and claim["counterexample"]["about"].startswith("head.npz")
    smallest = tmp_path / "report" / claim["counterexample"]["file"]
    again, result = run_json("claims", CLAIM, "--data", smallest, "--out", "again")
    assert result.exit_code == 0 and again["claims"][CLAIM]["outcome"] == "fails"
    assert "read by: attractor prompt-length again/counterexamples" in " ".join(
        result.stderr.split()
    )


def test_claims_about_other_data_are_refused(run, tmp_path):
    random_head(0).save(tmp_path / "head.npz")
    result = run("claims", "max-margin/no-stationary-point", "--data", "head.npz", "--json")
    assert result.exit_code == 2
    assert "head.npz is a head file" in json.loads(result.stdout)["error"]["problem"]
