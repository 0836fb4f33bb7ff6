import json

import numpy as np
import pytest

from attractor.cli.session import ExitCode
from attractor.files import load

QUICK = ("--steps", 200, "--seeds", 2, "--lr", 1.0)


@pytest.mark.long
def test_predicts_trains_and_reports(run, file, tmp_path):
    result = run("check", file, "--out", tmp_path / "report", *QUICK)
    assert result.exit_code == 0
    assert "A matrix that selects the tokens with the highest scores exists" in result.stdout
    assert "margin ratio" in result.stdout
    assert (tmp_path / "report" / "report.html").is_file()


@pytest.mark.usefixtures("blank_pictures")
def test_json_is_one_object_and_all_there_is_on_standard_output(run_json, file, tmp_path):
    found, result = run_json("check", file, "--out", tmp_path / "report", *QUICK)
    assert found["command"] == "check"
    assert found["exit_code"] == result.exit_code == 0
    assert found["prediction"]["norm"] == pytest.approx(2.9073738904, rel=1e-6)
    assert found["verdict"]["trials"] == 2
    assert found["report"] == str(tmp_path / "report" / "report.html")
    assert "margin ratio" in result.stderr


@pytest.mark.usefixtures("blank_pictures")
def test_quiet_prints_nothing(run, file, tmp_path):
    result = run("check", file, "--out", tmp_path / "report", "--quiet", *QUICK)
    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.long
@pytest.mark.usefixtures("blank_pictures")
def test_infeasible_still_writes_a_report(run_json, contradictory, tmp_path):
    found, result = run_json("check", contradictory, "--out", tmp_path / "report", *QUICK)
    assert result.exit_code == found["exit_code"] == ExitCode.INFEASIBLE
    assert {one["sequence"] for one in found["prediction"]["conflicts"]} == {0, 1}
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Constraints that conflict" in page


def test_without_head_says_how_to_add_one(run, file, tmp_path, change):
    change(file, head=None)
    result = run("check", file, "--out", tmp_path / "report")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "Add head (10,)" in result.stderr
    assert "--selection 0,2,1" in result.stderr
    assert not (tmp_path / "report").exists()


def test_without_head_takes_a_selection(run_json, file, tmp_path, change):
    change(file, head=None)
    found, result = run_json(
        "check", file, "--out", tmp_path / "report", "--selection", "7,4,6,1,3,2"
    )
    assert result.exit_code == 0
    assert found["prediction"]["norm"] == pytest.approx(2.9073738904, rel=1e-6)
    assert "verdict" not in found


@pytest.mark.usefixtures("blank_pictures")
def test_holds_the_run_against_the_selection_given(run_json, file, tmp_path):
    found, result = run_json(
        "check", file, "--out", tmp_path / "report", "--selection", "7,4,6,1,3,1", *QUICK
    )
    assert result.exit_code == 0
    assert found["verdict"]["margin_ratio"]["median"] < 0  # not the tokens training keeps


@pytest.mark.parametrize("selection", ["1,2", "a,b,c,d,e,f", "9,0,0,0,0,0", ""])
def test_refuses_a_selection_that_does_not_fit(run, file, selection):
    result = run("check", file, "--selection", selection)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "selection" in result.stderr


@pytest.mark.parametrize(
    ("arrays", "named"),
    [
        ({"queries": None}, "queries"),
        ({"keys": np.full((6, 8, 10), np.nan)}, "keys"),
        ({"queries": np.ones((5, 10))}, "queries"),
        ({"labels": np.array([0, 1, 0, 1, 0, 1])}, "2 * labels - 1"),
        ({"keys": np.array([{"a": 1}], dtype=object)}, "keys: the array holds Python objects"),
        ({"head": np.ones(3)}, "head"),
    ],
)
def test_bad_files_end_in_a_message_and_leave_nothing(
    run, run_json, file, tmp_path, arrays, named, change
):
    change(file, **arrays)
    result = run("check", file, "--out", tmp_path / "report")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert named in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.output
    assert result.stdout == ""
    found, _ = run_json("check", file, "--out", tmp_path / "report")
    assert found["exit_code"] == ExitCode.BAD_INPUT
    assert named in found["error"]["message"]
    assert [path.name for path in tmp_path.iterdir()] == ["tokens.npz"]


def test_truncated_file(run, file):
    file.write_bytes(file.read_bytes()[:-50])
    result = run("check", file)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "is damaged" in result.stderr


def test_missing_file(run):
    result = run("check", "nowhere.npz")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "attractor example tokens" in result.stderr


@pytest.mark.parametrize("option", ["--steps", "--seeds"])
def test_refuses_a_count_of_zero(run, file, option):
    assert run("check", file, option, 0).exit_code == ExitCode.BAD_INPUT


def test_refuses_a_step_of_no_length(run, file):
    result = run("check", file, "--lr", -1)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "lr: " in result.stderr


def test_refuses_a_folder_of_somebody_else_before_it_starts(run, file, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    result = run("check", file, "--out", tmp_path / "mine", "--steps", 10**9)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_help_shows_the_layout(run):
    text = run("check", "--help").stdout
    for line in ("keys", "(n, T, d)", "queries", "(n, e)", "labels", "head", "mask", "(n, T)"):
        assert line in text


@pytest.mark.long
@pytest.mark.usefixtures("blank_pictures")
def test_several_data_sets(run_json, file, tmp_path):
    one = load(file)
    several = {
        name: np.stack([getattr(one.tokens, name)] * 2)
        for name in ("keys", "queries", "labels", "mask")
    }
    many = tmp_path / "many.npz"
    np.savez(many, head=one.head.weight, **several)
    found, result = run_json("check", many, "--out", tmp_path / "report", *QUICK)
    assert result.exit_code == 0
    assert found["prediction"]["status"] == {"optimal": 2}
    assert found["verdict"]["trials"] == 4


@pytest.fixture
def joint(tmp_path):
    """The published setting in which one label lies beyond the margin; the head starts at zero."""
    keys = np.array([[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, 1.5]]])
    path = tmp_path / "joint.npz"
    np.savez(
        path, keys=keys, labels=[1.0, -1.0, 1.0], initial_head=np.zeros(2), parameterization="v, p"
    )
    return path


@pytest.mark.long
@pytest.mark.usefixtures("blank_pictures")
def test_joint_training_from_a_head_of_zero_is_held_against_the_relaxed_problem(
    run, run_json, joint, tmp_path
):
    result = run("check", joint, "--out", tmp_path / "report", "--steps", 1000, "--seeds", 1)
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "norm 0" not in said and "certified to a relative gap of 0" not in said
    assert "predicted for the tokens that training reaches" in said
    assert "Training got there" in said
    assert "1 of 3 labels lie beyond its margin" in said
    page = (tmp_path / "report" / "report.html").read_text()
    for words in ("relaxed margin problem", "label margin ratio of the head", "1 of 3 labels"):
        assert words in page
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    assert "prediction" not in summary
    assert summary["verdict"]["problem"] == {"relaxed margin problem": 1}
    assert summary["verdict"]["label_margin_ratio"]["median"] > 0.999
    verified, _ = run_json("verify", tmp_path / "report")
    assert verified["verdict"] == summary["verdict"]


def test_a_selection_named_for_a_trained_head_takes_its_relaxed_problem(run_json, joint, run):
    solved, _ = run_json("solve", joint, "--selection", "1,1,1")
    assert solved["problem"] == "relaxed margin problem"
    np.testing.assert_allclose(np.ravel(solved["W"]), [1, 0], atol=1e-9)  # plain: (1.25, 0.25)
    refused = run("solve", joint)
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert "selection: joint.npz trains the head" in refused.stderr.replace("\n", " ")


@pytest.mark.slow
def test_a_trained_head_is_held_against_the_selection_named(run_json, joint):
    options = ("--selection", "1,1,1", "--steps", 1000, "--seeds", 1)
    found, result = run_json("check", joint, *options)
    assert result.exit_code == 0
    assert found["prediction"]["norm"] == pytest.approx(1)
    assert found["verdict"]["selection_as_predicted"] == 1


def test_a_trained_head_must_start_somewhere(run, joint, change):
    change(joint, initial_head=None)
    result = run("check", joint)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "Add initial_head (2,)" in result.stderr


def test_a_fixed_head_of_zero_predicts_no_direction(run, file, change):
    change(file, head=np.zeros(10))
    said = " ".join(run("solve", file).stdout.split())
    assert "No direction is predicted" in said
    assert "norm 0, certified" not in said


def test_without_a_folder_nothing_is_written_and_the_last_line_says_how(run, file, tmp_path):
    result = run("check", file, *QUICK)
    assert result.exit_code == 0 and [path.name for path in tmp_path.iterdir()] == [file.name]
    given = " ".join(map(str, ("attractor check", file, *QUICK)))
    assert result.stdout.splitlines()[-1] == f"A report with pictures: {given} --out check-report"


def test_an_infeasible_problem_leads_on_and_not_in_a_circle(run, tmp_path):
    # The best tokens contradict each other; training keeps the second of the second sequence, which
    # a low score alone holds in place.
    contradictory = tmp_path / "tokens.npz"
    keys = [[[1.0, 0], [0, 0], [-1, 0]], [[-5, 0], [0, 0], [-1, 0]]]
    scores = [[1, 0.5, 0], [1, 0.5, 0]]
    np.savez(contradictory, keys=keys, queries=[[1.0, 0]] * 2, scores=scores, initial=3 * np.eye(2))
    solved = run("solve", contradictory)
    assert f"attractor check {contradictory}\n" in solved.stdout
    checked = run("check", contradictory, *QUICK)
    assert checked.exit_code == ExitCode.INFEASIBLE and "in conflict: data set" in checked.stdout
    (line,) = [one for one in checked.stdout.splitlines() if "Next" in one]
    assert "--steps" not in line and "--selection" in line
    kept = run(*line.partition(": attractor ")[2].split())
    assert kept.exit_code == 0 and "A matrix that selects" in kept.stdout
    assert "Next" not in kept.stdout


def test_where_nothing_attracts_no_direction_is_offered(run, contradictory, tmp_path, monkeypatch):
    checked = run("check", contradictory, *QUICK)
    assert checked.exit_code == ExitCode.INFEASIBLE
    said = " ".join(checked.stdout.split())
    assert "a finite minimum of the loss" in said and "no limit direction to compare with" in said
    (line,) = [one for one in checked.stdout.splitlines() if "Next" in one]
    monkeypatch.chdir(tmp_path)
    assert run(*line.partition(": attractor ")[2].split()).exit_code == 0
    assert (tmp_path / "explorer.html").is_file()


def test_what_is_suggested_spares_the_folder_that_is_written(monkeypatch):
    from attractor.cli import session

    current = session.Session("check", as_json=False, quiet=True)
    for given, other in (
        (["--out", "report/"], "--out report-2"),
        (["--out=r-9"], "--out r-10"),
        (["-q"], "-q"),
    ):
        monkeypatch.setattr(session, "called", ["check", "f", *given])
        assert current.again(steps=5).startswith("attractor check f --steps 5") or "-q" in given
        assert other in current.again(steps=5)
        assert "-2" not in current.again(False, steps=5)
