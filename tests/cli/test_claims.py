import dataclasses
import json

import numpy as np
import pytest

from attractor.cli.session import ExitCode
from attractor.papers import PAPERS

CLAIM = "max-margin/no-stationary-point"
ELSEWHERE = {
    "keys": [[[1.0, 0], [0, 0]], [[-2, 3], [0, 0]]],
    "scores": [[1.0, 0], [1, 0]],
    "parameterization": "p",
    "initial": [5.0, 0],
}


@pytest.fixture
def elsewhere(tmp_path):
    np.savez(tmp_path / "elsewhere.npz", **ELSEWHERE)
    return tmp_path / "elsewhere.npz"


def test_lists_the_claims_of_a_paper(run, run_json):
    found, result = run_json("claims")
    assert result.exit_code == 0
    assert CLAIM in found["claims"]
    assert "no finite stationary point" in run("claims").stdout


def test_lists_statements_with_what_checks_them(run, run_json):
    text = run("claims", "--statements", "--of", "next-token").stdout
    assert "Lemma 3: equal logits" in text and "claim next-token/equal-other-logits" in text
    assert "Support Vector Machines" not in text
    assert "not checked: " in run("claims", "--statements", "--of", "large-prompt").stdout
    found, result = run_json("claims", "--statements")
    assert result.exit_code == 0 and {*PAPERS} <= {one["paper"] for one in found["statements"]}
    _, refused = run_json("claims", "--statements", "--all")
    assert refused.exit_code == 2


@pytest.mark.installed("attractor_further")
def test_the_report_of_a_paper_lists_its_statements_with_outcomes(run_json, tmp_path):
    found, result = run_json("claims", "--of", "preconditioned-descent", "--out", "report")
    assert result.exit_code == 0
    assert "linear-attention-optimum: holds (1 of 1, " in result.stderr
    assert found["statements"][0]["claims"] == ["trained-linear-models/linear-attention-optimum"]
    page = (tmp_path / "report" / "report.html").read_text()
    assert "trained-linear-models/linear-attention-optimum (holds)" in page


def test_checks_a_claim_on_the_papers_data(run_json, tmp_path):
    found, result = run_json("claims", CLAIM, "--out", "report")
    assert result.exit_code == 0
    claim = found["claims"][CLAIM]
    assert claim["outcome"] == "holds"
    assert len(claim["data"]) > 1
    assert claim["data"][0]["assumptions"]["unique optimum"]["met"]
    stored = json.loads((tmp_path / "report" / "claims.json").read_text())
    assert stored["claims"] == found["claims"]
    assert "provenance" in stored
    again, _ = run_json("reproduce", "report/report.html")
    assert again["same"] and again["changed"] == []


@pytest.mark.usefixtures("blank_pictures")
def test_a_counterexample_is_a_file_that_check_reads(run_json, elsewhere, tmp_path):
    name = "max-margin/global-convergence"
    found, result = run_json("claims", name, "--data", elsewhere, "--out", "report")
    assert result.exit_code == 0
    claim = found["claims"][name]
    assert claim["outcome"] == "fails"
    file = tmp_path / "report" / claim["counterexample"]["file"]
    checked, result = run_json("check", file)
    assert result.exit_code == 0
    assert checked["verdict"]["selection_as_predicted"] == 0
    assert "did not reach the predicted tokens" in " ".join(result.stderr.split())


@pytest.mark.usefixtures("blank_pictures")
def test_a_corpus_is_checked_by_the_claims_that_speak_of_one(run, run_json, tmp_path, monkeypatch):
    import attractor.papers.commands.checking as checking
    from attractor.papers.next_token.data import missing_relations

    name = "next-token/closed-form"
    few = {each: checking.all_claims()[each] for each in (CLAIM, name)}
    monkeypatch.setattr(checking, "all_claims", lambda paper=None: few)
    missing_relations().save(tmp_path / "corpus.npz")
    found, result = run_json("claims", "--data", "corpus.npz", "--out", "report")
    assert result.exit_code == 0, result.stderr
    assert list(found["claims"]) == [name] and found["left_out"] == [CLAIM]
    assert found["claims"][name]["outcome"] == "fails"
    (table,) = found["hypotheses"]
    assert not table["hypotheses"]["complete orders"]["met"]
    words = " ".join(result.stderr.split())
    assert "Left out: 1 claim about data that are no corpus." in words
    assert "read by: attractor corpus report/counterexamples" in words
    file = tmp_path / "report" / found["claims"][name]["counterexample"]["file"]
    read, result = run_json("corpus", file, "--out", "structure")
    assert result.exit_code == 0, result.stderr
    assert read["exit_code"] == 0
    again, _ = run_json("reproduce", "report/claims.json", "--data", "corpus.npz")
    assert again["same"] and again["changed"] == []


def test_text_will_do_for_a_corpus(run_json, tmp_path):
    (tmp_path / "corpus.txt").write_text("S V O P\nV O P\nO P P\nP S V\n")
    found, result = run_json("claims", "next-token/closed-form", "--data", "corpus.txt")
    assert result.exit_code == 0, result.stderr
    assert found["claims"]["next-token/closed-form"]["outcome"] == "holds"
    (tmp_path / "other.txt").write_text("a b a\nb a a\na a b\n")
    found, result = run_json("claims", "next-token/closed-form", "--data", "other.txt")
    assert found["claims"]["next-token/closed-form"]["outcome"] == "assumption not met"


def test_a_claim_is_not_checked_on_another_kind_of_file(run_json, elsewhere):
    found, result = run_json("claims", "next-token/closed-form", "--data", elsewhere)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "data" and "corpus" in found["error"]["message"]


def test_says_which_hypotheses_a_file_meets(run_json, elsewhere, monkeypatch):
    import attractor.papers.commands.checking as checking

    few = {name: claim for name, claim in checking.all_claims().items() if name == CLAIM}
    monkeypatch.setattr(checking, "all_claims", lambda paper=None: few)
    found, result = run_json("claims", "--data", elsewhere, "--out", "report")
    assert result.exit_code == 0
    (table,) = found["hypotheses"]
    met = {name: each["met"] for name, each in table["hypotheses"].items()}
    assert met["unique optimum"] and met["equal other scores"] and met["all tokens support"]
    assert found["claims"][CLAIM]["outcome"] == "holds"
    without, _ = run_json("reproduce", "report/claims.json")
    assert without["exit_code"] == ExitCode.BAD_INPUT
    assert without["error"]["argument"] == "data"
    again, _ = run_json("reproduce", "report/claims.json", "--data", elsewhere)
    assert again["same"]


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        (("max-margin/no-stationery-point",), "name"),
        (("--of", "nobody"), "paper"),
        ((CLAIM, "--all"), "NAME"),
        ((CLAIM, "--data", "missing.npz"), "file"),
    ],
)
def test_bad_input(run_json, arguments, argument):
    found, result = run_json("claims", *arguments)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == argument


NAMES = ("max-margin/optimal-tokens-minimize-loss", "max-margin/finite-offset")


@pytest.mark.parametrize("out", [(), ("--out", "report")])
def test_interrupted_it_says_what_it_found_and_what_is_written(
    run_json, elsewhere, tmp_path, monkeypatch, out
):
    import attractor.papers.commands.checking as checking

    check_claim, calls = checking.check_claim, []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return check_claim(*arguments, **options)

    monkeypatch.setattr(checking, "check_claim", interrupted)
    found, result = run_json("claims", *NAMES, "--data", elsewhere, *out)
    assert result.exit_code == found["exit_code"] == ExitCode.INTERRUPTED
    assert list(found["claims"]) == [NAMES[0]] and found["error"]["message"] == "interrupted"
    words = " ".join(result.stderr.split())
    if out:
        assert "Stopped after 1 of 2 claims: they are in the report." in words
        kept = json.loads((tmp_path / "report" / "claims.json").read_text())
        assert list(kept["claims"]) == [NAMES[0]]
    else:
        assert "Stopped after 1 of 2 claims: no report is written." in words
        assert [path.name for path in tmp_path.iterdir()] == [elsewhere.name]


def test_interrupted_at_once_it_has_nothing_to_say(run_json, elsewhere, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("attractor.papers.commands.checking.check_claim", interrupted)
    found, result = run_json("claims", CLAIM, "--data", elsewhere)
    assert result.exit_code == ExitCode.INTERRUPTED and "claims" not in found


def test_names_are_whole_in_eighty_columns(run, elsewhere, monkeypatch):
    from attractor.papers import get_claim
    from attractor.papers.ledger.check import check_claim
    from attractor.papers.results import ClaimResults

    name = "large-prompt/sub-gaussian-value-gradient-concentration-repaired"
    monkeypatch.setattr("attractor.papers.results.ClaimResults.width", 80)
    case = get_claim(CLAIM).example()
    result = check_claim(get_claim(CLAIM), [case])
    named = dataclasses.replace(result.claim, name=name)
    lines = str(ClaimResults((result, dataclasses.replace(result, claim=named)))).splitlines()
    assert f"  {name}" in [line.rstrip() for line in lines] and max(map(len, lines)) <= 80
    assert lines[0] == f"{result.outcome.value}: 2"


def test_where_an_assumption_is_not_met_the_paper_s_own_data_are_next(run, elsewhere):
    name = "max-margin/single-sequence-convergence"
    result = run("claims", name, "--data", elsewhere)
    assert f"assumption not met: 1\n  {name}" in result.stdout
    assert f"the paper's: attractor claims {name}\n" in result.stdout
    assert result.stdout.rstrip().endswith(f"--data {elsewhere} --out claims-report")


def test_a_claim_of_another_paper_with_that_name_is_suggested(run):
    assert "Did you mean transformers-as-svms/rank?" in run("claims", "max-margin/rank").stderr
