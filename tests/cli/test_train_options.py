import pytest

from attractor.cli.session import ExitCode
from attractor.training import Trajectory

QUICK = ("--steps", 20, "--seeds", 2)


def test_optimizer_parameterization_and_loss(run_json, file, tmp_path):
    found, result = run_json(
        "train", file, "--optimizer", "md:p=3", "--lr", 2, "--loss", "exponential", *QUICK
    )
    assert result.exit_code == 0, result.stderr
    assert found["geometry"] == "l_3"
    run = Trajectory.load(tmp_path / "run.nc")
    assert run.settings["loss"] == "exponential"
    assert run.settings["optimizer"]["learning_rate"] == 2


def test_factors_in_mini_batches(run_json, file, tmp_path):
    batches = ("--batch-size", 2, "--batch-order", "cyclic")
    options = ("--parameterization", "KQ", *batches, "--out", "kq.nc")
    found, result = run_json("train", file, *options, *QUICK)
    assert result.exit_code == 0, result.stderr
    assert found["geometry"] == "nuclear"
    run = Trajectory.load(tmp_path / "kq.nc")
    assert run.settings["batch_size"] == 2 and run.settings["batch_order"] == "cyclic"
    assert {"K", "Q"} <= set(run.data)


@pytest.mark.long
def test_an_optimizer_of_a_module_and_a_checkpoint(run_json, file, tmp_path):
    (tmp_path / "my_descent.py").write_text(
        "import optax\n\ndef sgd():\n    return optax.sgd(0.1)\n"
    )
    options = ("--optimizer", "my_descent:sgd", "--checkpoint", "kept", *QUICK)
    first, result = run_json("train", file, *options)
    assert result.exit_code == 0, result.stderr
    assert "exact at every magnitude" in first["reads"]
    assert first["geometry"] == "not known"
    assert (tmp_path / "kept").is_dir()
    again, _ = run_json("train", file, *options)
    assert again["final_loss"] == first["final_loss"]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        (("--optimizer", "nobody"), "optimizer"),
        (("--optimizer", "nowhere:sgd"), "optimizer"),
        (("--loss", "hinge"), "loss"),
        (("--parameterization", "V"), "parameterization"),
        (("--batch-size", 7), "batch_size"),
        (("--batch-size", 2, "--batch-order", "sorted"), "batch_order"),
    ],
)
def test_bad_input(run_json, file, tmp_path, options, argument):
    found, result = run_json("train", file, *options, *QUICK)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == argument
    assert not (tmp_path / "run.nc").exists()


@pytest.mark.torch
def test_a_torch_optimizer_is_sent_to_the_matrix(run, file):
    pytest.importorskip("torch")
    result = run("train", file, "--optimizer", "torch.optim:SGD", *QUICK)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "attractor matrix" in result.stderr
