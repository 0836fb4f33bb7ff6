"""Processes of this machine: nobody else reaches them, and no file beside them is run."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import made_up
import pytest

import attractor
from attractor.maps.sweeps import open_sweep

pytestmark = pytest.mark.processes

HERE = Path(__file__).parent
PATHS = os.pathsep.join([str(HERE), str(Path(attractor.__file__).parents[1])])


def run(*command, path, folder=None):
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="this system has no /proc")
def test_nothing_listens_while_processes_compute(tmp_path):
    with socket.create_server(("127.0.0.1", 0)):
        assert made_up.listening_sockets(os.getpid())  # which shows that one is seen
    code = """
import sys, made_up
from attractor.maps.sweeps import Grid, sweep
print(sweep(Grid({"n": [1, 2, 3, 4]}, 1, chunk=1), made_up.LISTENING, sys.argv[1], 2).status.done)
"""
    assert run("-c", code, tmp_path / "s", path=PATHS).stdout == "4\n"
    assert open_sweep(tmp_path / "s")["listening"].to_numpy().ravel().tolist() == [0, 0, 0, 0]


HOSTILE = """
from pathlib import Path
Path(__file__).with_name("was_run").touch()
raise ImportError("this is no module of Python")
"""
NAMES = ("struct", "random", "multiprocessing", "json", "numpy", "pickle", "sitecustomize", "zarr")
OWN = """
import struct, random, json, wave
import numpy as np
from attractor.maps.sweeps import Experiment

def run(point, instances, seeds):
    return {"number": np.ones((len(instances), len(seeds)))}

EXPERIMENT = Experiment("own_of_this_folder:run", {"number": ("f8", "one")}, ["n"])
"""
PLAN = "[axes]\nn = [1, 2, 3]\n[trials]\ninstances = 1\nchunk = 1\n"
COMMAND = """
from attractor.cli import main
if __name__ == "__main__":
    main()
"""


def test_a_file_of_the_current_folder_takes_the_place_of_no_module(tmp_path):
    """As in a folder of somebody else's; one's own experiment is found there all the same."""
    (tmp_path / "command.py").write_text(COMMAND)
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in (*NAMES, "wave"):
        (folder / f"{name}.py").write_text(HOSTILE)
    (folder / "own_of_this_folder.py").write_text(OWN)
    (folder / "plan.toml").write_text(PLAN)
    own = ("--experiment", "own_of_this_folder:EXPERIMENT")
    run(tmp_path / "command.py", "sweep", "plan.toml", "--store", "s", "--workers", "2", *own,
        path=str(Path(attractor.__file__).parents[1]), folder=folder)  # fmt: skip
    assert not (folder / "was_run").exists()
    assert (open_sweep(folder / "s")["number"] == 1).all()
