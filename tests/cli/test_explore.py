import json
import re

import numpy as np
import pytest

from attractor.cli.session import ExitCode


def shown(path):
    """The state that a page holds."""
    text = path.read_text("utf-8")
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', text)[1])


def test_a_file_and_its_options(run_json, tmp_path):
    keys = [[[[-0.1, 1], [1, 0], [0, 0]]]] * 2
    np.savez(
        tmp_path / "three.npz", keys=keys, scores=[[[1, 0.9, 0]], [[0, 1, 0]]],
        parameterization="p", initial=[0.5, 1], optimizer="md:p=3,learning_rate=0.2", steps=70,
    )  # fmt: skip
    found, result = run_json("explore", "three.npz", "--data-set", 1, "--title", "Mine")
    assert result.exit_code == 0, result.stderr
    assert found["page"] == str(tmp_path / "explorer.html") and found["projection"] is None
    state = shown(tmp_path / "explorer.html")
    assert state["keys"] == keys[0] and state["scores"] == [[0, 1, 0]] and state["steps"] == 70
    assert state["start"] == [0.5, 1] and "selection" not in state
    assert state["trainings"] == [{"optimizer": "mirror_descent", "learning_rate": 0.2, "p": 3}]
    assert "<title>Mine</title>" in (tmp_path / "explorer.html").read_text("utf-8")
    found, result = run_json(
        "explore", "three.npz", "--data-set", 0, "--out", "b.html", "--optimizer", "gd",
        "--optimizer", "sign descent", "--lr", 0.5, "--norm", "l_1", "--selection", 1, "--loss",
        "linear", "--steps", 9,
    )  # fmt: skip
    state = shown(tmp_path / "b.html")
    assert [t["optimizer"] for t in state["trainings"]] == ["gradient_descent", "sign_descent"]
    assert {t["learning_rate"] for t in state["trainings"]} == {0.5}
    assert (state["norm"], state["selection"], state["loss"], state["steps"]) == (
        "l_1", [1], "linear", 9,
    )  # fmt: skip


def test_the_example_is_seen_in_a_plane(file, run_json):
    found, result = run_json("explore", file, "--steps", 5, "--projection", "principal")
    assert result.exit_code == 0, result.stderr
    assert 0 < found["projection"]["hidden"] < 1
    assert "two principal directions" in result.stderr and "are hidden" in result.stderr


def test_scenes(run_json, tmp_path):
    found, result = run_json("explore", "--scene", "two-basins", "--out", "basins.html")
    assert result.exit_code == 0 and found["parameterization"] == "p"
    assert len(shown(tmp_path / "basins.html")["keys"]) == 2


@pytest.mark.parametrize(
    ("words", "argument"),
    [
        ((), "file"),
        (("tokens.npz", "--scene", "two-basins"), "file"),
        (("--scene", "two-basin"), "scene"),
        (("tokens.npz", "--out", "page.pdf"), "out"),
        (("tokens.npz", "--optimizer", "adam"), "optimizer"),
        (("tokens.npz", "--parameterization", "(v, p)"), "parameterization"),
        (("tokens.npz", "--projection", "best"), "projection"),
        (("tokens.npz", "--loss", "squared"), "loss"),
        (("tokens.npz", "--steps", 10**6), "steps"),
    ],
)
def test_bad_input(file, run_json, tmp_path, words, argument):
    found, result = run_json("explore", *words)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == argument
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
