"""Trials spread over all devices of a process give the numbers of one device."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attractor.training import loop

SCRIPT = Path(__file__).with_name("interrupted_run.py")
CODE = """
import sys, threading
import jax, numpy as np
import interrupted_run
from attractor.training.programs import blocks
from attractor.training import loop

used = set()
every_device = threading.Barrier(len(jax.local_devices()))
train = blocks.BlockTrainer.train

def watched(plan, place, data, store):
    (device,) = place.carry[0].devices()
    first = device not in used
    used.add(device)
    if first:
        every_device.wait(60)  # until each device has taken a block
    yield from train(plan, place, data, store)

blocks.BlockTrainer.train = watched
checkpoint = loop.Checkpoint(sys.argv[1] + ".run")
records = interrupted_run.run_loop(checkpoint, trials=110)
np.savez(sys.argv[1], devices=len(used), **interrupted_run.arrays_of(records))
"""


def numbers(devices, result, code=CODE):
    environment = dict(os.environ)
    environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, [environment.get("PYTHONPATH")])]
    )
    subprocess.run([sys.executable, "-c", code, result], env=environment, check=True)
    return dict(np.load(result))


def script():
    spec = importlib.util.spec_from_file_location("interrupted_run", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def check_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name


@pytest.mark.processes
def test_four_devices_give_the_bits_of_one(tmp_path):
    found = numbers(4, tmp_path / "four.npz")
    assert found.pop("devices") == 4
    module = script()
    check_same(found, module.arrays_of(module.run_loop(trials=110)))
    resumed = module.run_loop(loop.Checkpoint(tmp_path / "four.npz.run"), trials=110)
    check_same(found, module.arrays_of(resumed))


@pytest.mark.slow
def test_training_on_four_devices_gives_the_bits_of_one(tmp_path):
    code = "import sys, numpy, interrupted_run; numpy.savez(sys.argv[1], **interrupted_run.train())"
    four, one = (numbers(count, tmp_path / f"{count}.npz", code) for count in (4, 1))
    check_same(four, one)
