"""Sweeps on processes that are killed, hang or are gone: the same bytes in the end."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import made_up
import psutil
import pytest
from run_sweep import GRID

import attractor
from attractor.maps.sweeps import Grid, check_sweep, sweep, sweep_status

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
SECONDS = 0.15
EXPERIMENT = made_up.experiment(seconds=SECONDS)
PATHS = os.pathsep.join([str(HERE), str(Path(attractor.__file__).parents[1])])
ENVIRONMENT = {**os.environ, "PYTHONPATH": PATHS}


def measures(path, names=tuple(made_up.MEASURES)):
    files = [
        file for name in names for file in (path / name).iterdir() if "partial" not in file.name
    ]
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(files)}


def until(met, seconds=90):
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.05)
    return found


def some_done(path, count=4):
    """Waits until some chunks are done, but not all."""
    records = path / "chunk_record"
    until(lambda: records.is_dir() and len(list(records.glob("c.*"))) >= count)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "s"
    sweep(GRID, EXPERIMENT, path)
    return measures(path)


@pytest.fixture
def start():
    """Starts a program that is gone when the test ends."""
    started = []

    def begin(*command):
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            for child in [*psutil.Process(process.pid).children(recursive=True)]:
                child.kill()
            process.kill()
        process.wait()


@pytest.fixture
def scheduler(start, tmp_path):
    """A scheduler in a process of its own, with its file."""
    file = tmp_path / "scheduler.json"
    process = start("-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
                    "--no-dashboard", "--scheduler-file", file)  # fmt: skip
    until(file.exists)
    return process, file


def worker(start, file, *more):
    return start("-m", "distributed.cli.dask_worker", "--scheduler-file", file, "--nthreads", "1",
                 "--no-dashboard", "--death-timeout", "20", *more)  # fmt: skip


def children(process):
    """The worker processes below a client: nannies are within it, trackers are none."""
    every = psutil.Process(process.pid).children(recursive=True)
    return [one for one in every if "spawn_main" in " ".join(one.cmdline())]


def test_two_processes_give_the_bytes_of_one(whole, start, tmp_path):
    process = start(HERE / "run_sweep.py", tmp_path / "s", 2, SECONDS)
    assert process.communicate(timeout=120)[0] == "0\n"
    assert measures(tmp_path / "s") == whole


def test_a_worker_that_is_killed(whole, start, tmp_path):
    process = start(HERE / "run_sweep.py", tmp_path / "s", 2, SECONDS)
    some_done(tmp_path / "s")
    os.kill(children(process)[0].pid, signal.SIGKILL)
    assert process.communicate(timeout=120)[0] == "0\n"
    assert measures(tmp_path / "s") == whole and check_sweep(tmp_path / "s").passed


def test_a_client_that_is_killed_with_its_cluster(whole, start, tmp_path):
    path = tmp_path / "s"
    process = start(HERE / "run_sweep.py", path, 2, SECONDS)
    some_done(path)
    workers = children(process)
    process.kill()
    until(lambda: not any(one.is_running() and one.status() != "zombie" for one in workers), 20)
    assert 0 < sweep_status(path).left and check_sweep(path).passed
    sweep(GRID, EXPERIMENT, path, share=(0, 2))
    assert sweep(GRID, EXPERIMENT, path, cluster=1).status.left == 0
    assert measures(path) == whole


def test_a_scheduler_that_is_killed(whole, start, scheduler, tmp_path):
    process, file = scheduler
    worker(start, file)
    client = start(HERE / "run_sweep.py", tmp_path / "s", file, SECONDS)
    some_done(tmp_path / "s")
    process.kill()
    said = client.communicate(timeout=60)[0]
    assert said.startswith("ClusterLostError the scheduler ") and "call sweep again" in said
    sweep(GRID, EXPERIMENT, tmp_path / "s")
    assert measures(tmp_path / "s") == whole


def test_all_workers_are_gone(whole, start, scheduler, tmp_path):
    file = scheduler[1]
    only = worker(start, file, "--no-nanny")
    client = start(HERE / "run_sweep.py", tmp_path / "s", file, SECONDS, 3)
    some_done(tmp_path / "s")
    only.kill()
    said = client.communicate(timeout=60)[0]
    assert said.startswith("ClusterLostError there was no worker for 3 s")
    worker(start, file)
    assert sweep(GRID, EXPERIMENT, tmp_path / "s", file).status.left == 0
    assert measures(tmp_path / "s") == whole


def test_chunks_that_kill_hang_or_raise_are_marked_and_no_other(tmp_path):
    cured = tmp_path / "cured"
    kinds = ["fine", "kills", "hangs", "raises"]
    grid = Grid({"kind": kinds, "n": [1, 2]}, instances=2)
    experiment = made_up.experiment(cured=str(cured), seconds=0.05)
    summary = sweep(grid, experiment, tmp_path / "s", cluster=2, patience_chunk=3)
    assert {place[0] for place in summary.newly_failed} == {1, 2, 3}
    assert summary.status.done == 2 and summary.status.left == 0
    errors = {kinds[one.place[0]]: one.error for one in summary.status.failed}
    assert "its process ended" in errors["kills"] and "it hangs" in errors["hangs"]
    cured.touch()
    again = sweep(grid, experiment, tmp_path / "s", cluster=2, retry_failed=True)
    assert again.computed == 6 and again.status.done == 8
    sweep(grid, experiment, tmp_path / "fine")
    assert measures(tmp_path / "s") == measures(tmp_path / "fine")


def test_a_full_disk_is_an_error_and_what_is_done_stays(tmp_path):
    mount = 'mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@"'
    apart = ["unshare", "--mount", "sh", "-c", mount, str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"]).returncode:
        pytest.skip("this machine does not let us mount a file system")
    command = [*apart, sys.executable, str(HERE / "full_sweep.py"), str(tmp_path)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, checked, resumed = done.stdout.splitlines()
    assert f"{tmp_path / 's'} cannot be written: No space left on device" in said
    assert checked == "True True" and resumed == "12 0 True"


def test_a_script_without_a_guard_is_told_so(tmp_path):
    code = f"""
import made_up
from attractor.maps.sweeps import Grid, sweep
try:
    sweep(Grid({{"n": [1]}}, 1), made_up.PLAIN, {str(tmp_path / "s")!r}, cluster=1)
except ValueError as error:
    print(error)
"""
    (tmp_path / "script.py").write_text(code)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert "cluster: its processes cannot be started" in done.stdout
    assert "below `if __name__ == '__main__':`" in done.stdout


CODE = """
import sys, trained
from attractor.maps.sweeps import Grid, sweep
grid = Grid({"T": [4, 5], "learning_rate": [0.1, 0.3]}, instances=12, seeds=2, chunk=8)
path, cluster, threads = sys.argv[1:4]
share = tuple(map(int, sys.argv[4:])) or None
if __name__ == "__main__":
    sweep(grid, trained.EXPERIMENT, path, int(cluster) or None, share=share, threads=int(threads))
"""


def test_training_and_solving_give_the_same_bits_wherever_they_run(tmp_path):
    (tmp_path / "train.py").write_text(CODE)

    def bits(name, cluster, threads, *shares, devices=1):
        flags = f"--xla_force_host_platform_device_count={devices}"
        environment = ENVIRONMENT | {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}"}
        for share in shares or ((),):
            command = [tmp_path / "train.py", tmp_path / name, cluster, threads, *share]
            subprocess.run([sys.executable, *map(str, command)], env=environment, check=True)
        return measures(tmp_path / name, ("margin_ratio", "norm"))

    here = bits("here", 0, 1)
    assert len(here) == 2 * (12 + 1)
    assert bits("two threads", 0, 2) == here
    assert bits("four devices", 0, 2, devices=4) == here
    assert bits("two processes", 2, 1) == here
    assert bits("shares", 0, 2, (1, 2), (0, 2)) == here
