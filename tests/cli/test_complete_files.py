"""Token files that say themselves what is trained, from where, how and for how long."""

import numpy as np
import pytest

from attractor.attention import LinearHead
from attractor.cli.session import ExitCode
from attractor.files import save_tokens
from attractor.margin.selection import Selection
from attractor.tokens import Tokens
from attractor.training import Trajectory

STEPS = 400


def rows(second, queries):
    """Two sequences whose optimal token stands first, with scores 1 and 0."""
    keys = np.array([[[1.0, 0], [0, 0]], [second, [0, 0]]])
    values = np.array([[1.0, 0], [1, 0]])[..., None]
    return Tokens(keys, queries, np.ones(2), values=values), LinearHead([1.0])


@pytest.fixture
def prompt(tmp_path):
    """A prompt, all of whose tokens are support tokens; from (5, 0) it keeps a worse one."""
    path = tmp_path / "prompt.npz"
    save_tokens(
        path,
        *rows([-2.0, 3], np.ones((2, 1))),
        parameterization="p",
        initial=np.array([5.0, 0]),
        optimizer="ngd:learning_rate=0.1",
        steps=STEPS,
    )
    return path


@pytest.fixture
def matrix(tmp_path):
    """The same for a matrix, from diag(8, 0), in the other kind of file."""
    path = tmp_path / "matrix.safetensors"
    tokens, head = rows([-2.0, 0.1], np.eye(2)[[0, 0]])
    save_tokens(path, tokens, head, initial=np.diag([8.0, 0]), steps=STEPS)
    return path


def text(result):
    return " ".join(result.stderr.split())


def test_check_shows_that_a_prompt_ends_elsewhere(run_json, prompt):
    found, result = run_json("check", prompt)
    assert result.exit_code == 0, result.stderr
    assert found["prediction"]["norm"] == pytest.approx(2**0.5, rel=1e-9)
    verdict = found["verdict"]
    assert (verdict["trials"], verdict["steps"]) == (1, STEPS)
    assert "in 0 of 1 trials it did so in every sequence" in text(result)
    assert "training did not reach the predicted tokens" in text(result)


def test_check_shows_that_a_matrix_ends_elsewhere(run_json, matrix):
    found, result = run_json("check", matrix)
    assert result.exit_code == 0, result.stderr
    assert found["prediction"]["norm"] == pytest.approx(901**0.5, rel=1e-8)
    assert "training did not reach the predicted tokens" in text(result)


def test_train_does_what_the_file_says(run_json, prompt, tmp_path):
    found, result = run_json("train", prompt)
    assert result.exit_code == 0, result.stderr
    assert (found["trials"], found["steps"]) == (1, STEPS)
    run = Trajectory.load(tmp_path / "run.nc")
    assert run.settings["parameterization"] == "p"
    np.testing.assert_array_equal(run.data["p"].values[0, 0, 0], [5, 0])
    direction = run.data["p"].values[0, 0, -1]
    np.testing.assert_allclose(direction / np.linalg.norm(direction), [1, 0], atol=1e-3)


def test_options_stand_over_the_file(run_json, prompt, tmp_path):
    options = ("--steps", 20, "--lr", 0.5, "--seeds", 2, "--optimizer", "gd", "--loss", "linear")
    found, result = run_json("train", prompt, *options)
    assert result.exit_code == 0, result.stderr
    assert (found["trials"], found["steps"]) == (2, 20)
    run = Trajectory.load(tmp_path / "run.nc")
    assert run.optimizer_name == "gradient descent"
    assert run.settings["optimizer"]["learning_rate"] == 0.5
    assert run.settings["loss"] == "linear"


def test_another_parameterization_has_another_start(run_json, prompt):
    found, result = run_json("train", prompt, "--parameterization", "KQ")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "parameterization"
    assert "says where 'p' starts" in found["error"]["problem"]


def test_scores_go_with_losses_that_fall_with_them(run_json, matrix):
    found, result = run_json("train", matrix, "--loss", "squared")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "loss"


def test_solve_takes_prompt_norm_and_tokens_from_the_file(run_json, tmp_path):
    tokens, head = rows([-2.0, 3], np.ones((2, 1)))
    chosen = Selection.from_index(tokens, [0, 1])
    path = tmp_path / "named.npz"
    save_tokens(path, tokens, head, parameterization="p", selection=chosen, optimizer="md:p=3")
    found, result = run_json("solve", path)
    assert result.exit_code == 0, result.stderr
    assert found["selection"] == [0, 1]
    assert found["geometry"] == "l_3"
    np.testing.assert_allclose(found["W"], [[1], [0]], atol=1e-6)
    assert "the tokens that the file names" in text(result)
    found, _ = run_json("solve", path, "--selection", "0,0", "--norm", "frobenius")
    assert found["selection"] == [0, 0]
    np.testing.assert_allclose(found["W"], [[1], [1]], atol=1e-6)


def test_check_refuses_what_has_no_known_norm_before_it_trains(run_json, tmp_path):
    tokens, head = rows([-2.0, 3], np.ones((2, 1)))
    path = tmp_path / "signs.npz"
    save_tokens(path, tokens, head, parameterization="KQ", optimizer="sign", steps=10**9)
    found, result = run_json("check", path)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == "optimizer"
    assert not (tmp_path / "attractor-check").exists()


def test_help_shows_what_a_file_may_say(run):
    shown = run("train", "--help").stdout
    for name in ("scores", "initial", "parameterization", "selection", "optimizer", "steps"):
        assert f" {name} " in shown
