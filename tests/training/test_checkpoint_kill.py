"""Runs that are killed, again and again, end bit for bit as runs that are not."""

import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("interrupted_run.py")


def script():
    spec = importlib.util.spec_from_file_location("interrupted_run", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def start(what, folder, result, *, every, delay, processors=None):
    command = [sys.executable, SCRIPT, what, folder, result, str(every), str(delay)]
    if processors is not None:
        command = ["taskset", "-c", processors, *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for(event, process):
    limit = time.monotonic() + 300
    while not event():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < limit
        time.sleep(0.001)


def kill_repeatedly(what, folder, result, moments, *, delay):
    """Kills a run after each of the moments, in seconds; None is in the middle of a write.

    Returns how often a file was half written when the run was killed.
    """
    state, half_written = folder / "state.safetensors", 0
    for moment in moments:
        process = start(what, folder, result, every=0.05, delay=delay)
        before = state.stat().st_mtime_ns if state.exists() else 0
        # Work must go on for a while before the next kill, or the run would never end.
        wait_for(lambda: state.exists() and state.stat().st_mtime_ns != before, process)  # noqa: B023
        if moment is None:
            wait_for(lambda: list(folder.glob(".*.partial-*")), process)
        else:
            time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "the run ended before it could be killed"
        half_written += bool(list(folder.glob(".*.partial-*")))
    return half_written


def check_same(result, expected):
    found = np.load(result)
    assert set(found.files) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes(), name


@pytest.mark.processes
def test_a_killed_run_goes_on_bit_for_bit(tmp_path):
    folder, result = tmp_path / "run", tmp_path / "result.npz"
    moments = [None, random.Random(1).uniform(0, 0.3), None]
    assert kill_repeatedly("loop", folder, result, moments, delay=0.03) >= 2
    process = start("loop", folder, result, every=30, delay=0)
    skipped = float(process.communicate()[0])
    assert process.returncode == 0
    module = script()
    assert 0 < skipped < module.TRIALS * module.STEPS
    check_same(result, module.arrays_of(module.run_loop()))
    assert not list(folder.glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_training_killed_at_ten_moments_ends_bit_for_bit(tmp_path, seed):
    folder, result = tmp_path / "run", tmp_path / "result.npz"
    draw = random.Random(seed)
    moments = [None] * 3 + [draw.uniform(0, 1) for _ in range(7)]
    draw.shuffle(moments)
    assert kill_repeatedly("train", folder, result, moments, delay=0.06) >= 3
    assert start("train", folder, result, every=30, delay=0).wait() == 0
    check_same(result, script().train())


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a choice of processors")
def test_training_resumed_on_fewer_threads_ends_bit_for_bit(tmp_path):
    folder, result = tmp_path / "run", tmp_path / "result.npz"
    kill_repeatedly("train", folder, result, [0.2], delay=0.03)
    processor = str(min(os.sched_getaffinity(0)))
    assert start("train", folder, result, every=30, delay=0, processors=processor).wait() == 0
    check_same(result, script().train())
