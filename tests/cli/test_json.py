"""One JSON object on standard output, however a command ends."""

import json
import os
import signal
import subprocess
import sys

import pytest

from attractor.cli.session import ExitCode


@pytest.mark.parametrize(
    ("line", "command", "argument"),
    [
        ("solve", "solve", "file"),
        ("solve tokens.npz --nope", "solve", "--nope"),
        ("solve tokens.npz extra", "solve", None),
        ("train tokens.npz --steps 0", "train", "steps"),
        ("train tokens.npz --lr abc", "train", "lr"),
        ("sweep draw store", "sweep draw", "x"),
        ("sweep", "sweep run", "plan"),
        ("nope", None, None),
        ("", None, "--json"),
    ],
)
def test_a_command_line_that_cannot_be_read(run, line, command, argument):
    result = run(*line.split(), "--json")
    assert result.exit_code == ExitCode.BAD_INPUT
    found = json.loads(result.stdout)
    assert found["command"] == command and found["exit_code"] == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == argument
    assert found["error"]["message"] in result.stderr
    assert "--help` says what there is" in found["error"]["remedy"]


def test_errors_name_the_option_and_not_the_argument_of_a_function(run_json, file):
    assert run_json("train", file, "--lr", -1)[0]["error"]["argument"] == "lr"
    assert run_json("solve", file, "--norm", "none")[0]["error"]["argument"] == "norm"


def test_an_error_of_the_library_itself_has_its_object_too(run, file, monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("attractor.cli.commands.solve.read_tokens", broken)
    result = run("solve", file, "--json")
    assert isinstance(result.exception, ZeroDivisionError)
    found = json.loads(result.stdout)
    assert found["exit_code"] == ExitCode.FAULT
    assert found["error"] == {"message": "ZeroDivisionError: division by zero"}


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_interrupted_before_the_work_begins():
    code = (
        "import os, signal, sys; sys.argv = ['attractor', 'solve', 'tokens.npz', '--json']\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from attractor.cli import interruption; interruption.take_charge()\n"
        "os.kill(os.getpid(), signal.SIGINT)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == ExitCode.INTERRUPTED == 128 + signal.SIGINT
    assert json.loads(done.stdout) == {
        "command": "solve", "exit_code": 130, "error": {"message": "interrupted"},
    }  # fmt: skip


def test_a_rank_that_is_not_known_is_null(run_json, contradictory):
    found, _ = run_json("solve", contradictory)
    assert found["exit_code"] == ExitCode.INFEASIBLE and found["rank"] is None


def test_what_would_print_and_write_nothing_is_refused(run, run_json, file):
    result = run("solve", file, "--quiet")
    assert result.exit_code == ExitCode.BAD_INPUT and "Give --out or --json" in result.stderr
    assert run_json("solve", file, "--quiet")[1].exit_code == ExitCode.DONE
