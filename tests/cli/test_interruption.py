"""Killed or interrupted while it writes, ``attractor check`` leaves nothing half-written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import attractor.training
from attractor.cli.session import ExitCode

QUICK = ("--steps", "100", "--seeds", "2", "--lr", "1.0")
SLOWLY = """
import runpy, signal, time
from attractor import plots
from attractor.support.storage import atomic

# Whoever runs the tests in the background may have them ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

def wait_and_swap(temporary, destination, old, swap=atomic._swap):
    (temporary.parent.parent / "ready").touch()
    time.sleep(3)  # where Ctrl-C always interrupts; a callback of a library may swallow it
    swap(temporary, destination, old)

def save_blank(figure, *arguments, save=plots.save_figure, **options):
    figure.clear()  # drawing takes longest, and is not where it ends
    figure.set_size_inches(0.5, 0.5)
    save(figure, *arguments, **options)

atomic._swap = wait_and_swap
plots.save_figure = save_blank
runpy.run_module("attractor", run_name="__main__")
"""


def start(*arguments, program=("-m", "attractor"), **options):
    command = [sys.executable, *program, *map(str, arguments)]
    paths = [str(Path(attractor.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.Popen(command, text=True, env=environment, **options)


def wait_until_it_writes(folder, process):
    """Waits until the report lies in its temporary folder, and only its renaming is left."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if any(folder.glob(".report.partial-*/ready")):
            return
        time.sleep(0.005)
    pytest.fail("the command did not begin to write")


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_half_written(run_json, file, tmp_path, sent):
    out = tmp_path / "report"
    slowly = {"program": ("-c", SLOWLY), "stderr": subprocess.DEVNULL}
    process = start("check", file, "--out", out, *QUICK, **slowly)
    wait_until_it_writes(tmp_path, process)
    process.send_signal(sent)
    code = process.wait(timeout=60)
    assert not out.exists()
    if sent != signal.SIGKILL:
        assert code == (ExitCode.INTERRUPTED if sent == signal.SIGINT else ExitCode.TERMINATED)
        assert not list(tmp_path.glob(".report*"))
        return
    found, again = run_json("check", file, "--out", out, *QUICK)
    assert again.exit_code == found["exit_code"] == 0
    assert (out / "report.html").is_file()
    assert not list(tmp_path.glob(".report*"))


def test_interrupted_in_training(run_json, file, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("attractor.training.train", interrupted)
    found, result = run_json("check", file, "--out", tmp_path / "report")
    assert result.exit_code == found["exit_code"] == ExitCode.INTERRUPTED
    assert not (tmp_path / "report").exists()
