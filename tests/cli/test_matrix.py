import json

import pytest

from attractor.cli.session import ExitCode

FEW = ("--data-sets", 2, "--steps", 40)


@pytest.mark.long
def test_your_own_optimizer(run_json, tmp_path):
    (tmp_path / "my_signs.py").write_text(
        "import optax\n\ndef signs():\n    return optax.sign_sgd(0.1)\n"
    )
    found, result = run_json("matrix", "--optimizer", "my_signs:signs", "--out", "here", *FEW)
    assert result.exit_code == 0, result.stderr
    (row,) = found["optimizers"]
    assert row["optimizer"] == "my_signs:signs"
    assert "exact at every magnitude" in row["reads"]
    assert row["answer"]["outcome"] == "not settled"  # of two data sets
    assert set(row["margin_ratio"]) == {
        "frobenius", "nuclear", "spectral", "l_inf", "l_1", "l_1.75", "l_3",
    }  # fmt: skip
    files = {path.name for path in (tmp_path / "here").iterdir()}
    assert files == {
        "report.html", "summary.json", "matrix.nc", "matrix.csv", "matrix.png", "matrix.svg",
        "curves.png", "curves.svg",
    }  # fmt: skip
    page = (tmp_path / "here" / "report.html").read_text()
    assert "Which norm&#x27;s margin does my_signs:signs maximize?" in page
    assert "too few to compare" in page
    stored = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert stored["optimizers"] == found["optimizers"]


def test_several_by_name(run_json, tmp_path):
    names = ("--optimizer", "sign", "--optimizer", "sign descent")
    found, result = run_json("matrix", *names, "--lr", 0.2, *FEW)
    assert result.exit_code == 0, result.stderr
    assert "sign descent: step = 0.2" in result.stderr
    assert "Median margin ratio over 2 data sets" in result.stderr
    short, full = found["optimizers"]
    assert short["margin_ratio"] == full["margin_ratio"]
    assert found["same_selection"] == 2
    assert not list(tmp_path.iterdir())
    (command,) = found["next"]  # for both rows: two data sets are too few for seven norms
    words = "attractor matrix --optimizer sign --optimizer 'sign descent' --lr 0.2"
    assert command.startswith(words) and command.endswith("--data-sets 8")


@pytest.mark.long
def test_several_step_sizes_are_tried_and_the_best_one_is_said(run_json, tmp_path):
    given = ("--optimizer", "gd", "--data-sets", 3, "--steps", 9, "--out", "here")
    found, result = run_json("matrix", *given)
    assert result.exit_code == 0, result.stderr
    (row,) = found["optimizers"]
    constant = ["0.003", "0.03", "0.1", "0.3", "3"]
    assert row["settings"][:5] == constant and len(row["settings"]) == 9
    cell = row["margin_ratio"]["frobenius"]
    assert cell["setting"] in row["settings"] and not cell["settled"]
    assert len(found["settings"]) == 9
    (command,) = found["next"]  # three data sets are too few for seven norms and nine settings
    assert "--data-sets 12" in command
    page = (tmp_path / "here" / "report.html").read_text()
    assert "At every setting" in page and row["settings"][5] in page


@pytest.mark.long
def test_a_row_for_each_learning_rate_and_a_norm_of_ones_own(run_json, tmp_path):
    (tmp_path / "my_norm.py").write_text(
        "import attractor as at\n\nclass Mine(at.Lp):\n"
        "    def __init__(self):\n        super().__init__(1.25)\n"
    )
    given = ("--optimizer", "optax:sgd", "--lr", 0.5, "--lr", 1, "--norm", "my_norm:Mine")
    found, result = run_json("matrix", *given, *FEW)
    assert result.exit_code == 0, result.stderr
    assert [row["optimizer"] for row in found["optimizers"]] == [
        "optax:sgd, step 0.5", "optax:sgd, step 1",
    ]  # fmt: skip
    assert "l_1.25" in found["optimizers"][0]["margin_ratio"]
    assert "optax:sgd, step 0.5: step = 0.5" in result.stderr


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        (("--optimizer", "nowhere:signs"), "optimizer"),
        (("--optimizer", "ngd:q=1"), "optimizer"),
        (("--optimizer", "ngd", "--lr", -1), "lr"),
        (("--optimizer", "ngd", "--parameterization", "X"), "parameterization"),
        (("--size", "huge"), "size"),
        (("--lr", 0.1), "lr"),
        (("--norm", "no such norm"), "norm"),
        (("--norm", "nowhere:Mine"), "norm"),
        (("--norm", "optax:adam"), "norm"),
    ],
)
def test_bad_input(run_json, tmp_path, options, argument):
    found, result = run_json("matrix", *options)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == argument
    assert not (tmp_path / "attractor-matrix").exists()


def test_a_folder_of_somebody_else_is_refused(run_json, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").write_text("...")
    found, result = run_json("matrix", "--out", "precious")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "out"
