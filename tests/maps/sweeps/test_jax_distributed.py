"""Shares of one sweep in the processes of ``jax.distributed``: the same bytes as without."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import trained

import attractor
from attractor.maps.sweeps import Grid, check_sweep, sweep

pytestmark = pytest.mark.slow
PATHS = os.pathsep.join([str(Path(__file__).parent), str(Path(attractor.__file__).parents[1])])
GRID = Grid({"T": [4, 5], "learning_rate": [0.1, 0.3]}, instances=6, chunk=4)
CODE = """
import sys, jax
process, processes, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4]
jax.distributed.initialize(f"127.0.0.1:{sys.argv[3]}", processes, process)
assert jax.process_count() == processes and len(jax.local_devices()) < len(jax.devices())
import trained
from test_jax_distributed import GRID
from attractor.maps.sweeps import sweep
print(sweep(GRID, trained.EXPERIMENT, store, share=(process, processes), threads=1).computed)
"""


def files(path):
    """Every chunk of the measures."""
    found = [file for name in trained.MEASURES for file in (path / name).glob("c.*")]
    return {str(file.relative_to(path)): file.read_bytes() for file in found}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_two_processes_share_a_sweep(tmp_path):
    port, environment = free_port(), {**os.environ, "PYTHONPATH": PATHS, "JAX_PLATFORMS": "cpu"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CODE, str(process), "2", str(port), str(tmp_path / "both")],
            env=environment, stdout=subprocess.PIPE, text=True,
        )
        for process in range(2)
    ]  # fmt: skip
    try:
        computed = [int(process.communicate(timeout=300)[0]) for process in started]
    finally:
        for process in started:
            process.kill()
    assert min(computed) > 0
    alone = sweep(GRID, trained.EXPERIMENT, tmp_path / "alone", threads=1)
    assert sum(computed) == alone.computed == alone.status.chunks
    assert files(tmp_path / "both") == files(tmp_path / "alone")
    assert len(files(tmp_path / "both")) == 2 * alone.computed
    assert check_sweep(tmp_path / "both").passed
