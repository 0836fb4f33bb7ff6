"""Empty chunks through the dispatcher of sweeps, with many simulated workers and few processors.

Run as ``python -m benchmarks.many_workers --workers 1000 --chunks 10000``. The scheduler has a
process of its own and default settings, but for what docs/sweeps.md says of its logs. Workers of
Dask are many in a process. What a worker does by the clock takes all processors here, and none of
the scheduler's: a tick every 20 ms, monitors, heartbeats. It is slowed, and the scheduler's time
for a heartbeat is measured apart.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

PROCESSES = 4
TOGETHER = 25
"""Workers of a process that register at once."""
PARTS = 10
HEARTBEATS = 5
PATIENCE = 1500
LOGS = {"DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "10"}


def run_empty(point: Any, instances: Any, seeds: Any) -> dict[str, np.ndarray]:
    """Computes nothing."""
    return {"number": np.zeros((len(instances), len(seeds)))}


async def serve(file: str, count: int) -> None:
    """Workers in this process, until it is ended."""
    from dask import config
    from distributed import Worker

    class Light(Worker):
        async def heartbeat(self) -> None:
            await super().heartbeat()
            self.periodic_callbacks["heartbeat"].callback_time = 120_000

    slow = {"admin.tick.interval": "60s", "admin.system-monitor.interval": "60s"}
    slow |= {"worker.profile.enabled": False}
    config.set({f"distributed.{name}": value for name, value in slow.items()})
    settings = {"nthreads": 1, "memory_limit": 0, "dashboard": False, "host": "127.0.0.1"}
    workers = []
    for first in range(0, count, TOGETHER):
        number = min(TOGETHER, count - first)
        new = [Light(scheduler_file=file, **settings) for _ in range(number)]
        workers += await asyncio.gather(*new)
    await asyncio.Event().wait()


async def beat(dask_worker: Any) -> None:
    """Some heartbeats of a worker."""
    for _ in range(HEARTBEATS):
        await dask_worker.heartbeat()


def measure(client: Any, watched: dict[str, list[psutil.Process]], count: int) -> None:
    """Computes chunks, and prints what each part of them cost."""
    from attractor.maps.sweeps import Experiment, Grid
    from attractor.maps.sweeps.dispatch import Dispatcher, Patience
    from attractor.maps.sweeps.experiment import source_of
    from attractor.maps.sweeps.storage.layout import Layout
    from attractor.maps.sweeps.work import Job, this_process

    name = "benchmarks.many_workers:run_empty"
    experiment = Experiment(name, {"number": ("f8", "nothing")}, ["n"])
    layout = Layout.of(Grid({"n": range(count)}, instances=1, chunk=1), experiment)
    job = Job("/nowhere", "0" * 32, experiment, source_of(name), 1, this_process())
    part, done = count // PARTS, 0

    def now() -> list[float]:
        taken = [sum(sum(p.cpu_times()[:2]) for p in group) for group in watched.values()]
        return [time.monotonic(), *taken]

    def settle(chunk: Any, outcome: Any) -> None:
        nonlocal done, last
        assert not outcome.error, outcome.traceback
        done += 1
        if done % part == 0:
            wall, *spent = np.subtract(now(), last)
            costs = ", ".join(
                f"{name} {1e3 * cpu / part:.2f} ms {group[0].memory_info().rss / 1e6:.0f} MB"
                for (name, group), cpu in zip(watched.items(), spent, strict=True)
            )
            print(f"{done:,} chunks: {part / wall:.0f} a second; {costs}", flush=True)
            last = now()

    began = last = now()
    Dispatcher(
        client, job, layout, numbers=np.arange(count), patience=600,
        patience_chunk=Patience(3600.0, layout, np.zeros((count, 5))), settle=settle,
    ).run()  # fmt: skip
    wall, *spent = np.subtract(now(), began)
    print(f"all: {count / wall:.0f} a second, ms a chunk {1e3 * np.array(spent) / count}")


def main() -> None:
    """Starts the scheduler and the workers, and measures."""
    from distributed import Client

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--chunks", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "scheduler.json")
        scheduler = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        started = [_start(*scheduler, "--no-dashboard", "--scheduler-file", file)]
        while not Path(file).exists():
            time.sleep(0.1)
        for number in np.array_split(np.arange(given.workers), min(PROCESSES, given.workers)):
            started.append(_start("-m", "benchmarks.many_workers", file, str(len(number))))
        try:
            with Client(scheduler_file=file, set_as_default=False) as client:
                began = time.monotonic()
                client.wait_for_workers(given.workers, timeout=PATIENCE)
                print(f"{given.workers:,} workers after {time.monotonic() - began:.0f} s")
                processes = [psutil.Process(one.pid) for one in started]
                first, *workers = processes
                watched = {"scheduler": [first], "client": [psutil.Process()], "workers": workers}
                measure(client, watched, given.chunks)
                spent = sum(first.cpu_times()[:2])
                client.run(beat)
                spent = sum(first.cpu_times()[:2]) - spent
                each = 1e3 * spent / (HEARTBEATS * given.workers)
                print(f"scheduler: {each:.2f} ms a heartbeat")
        finally:
            for one in started:
                one.kill()


def _start(*command: str) -> subprocess.Popen[bytes]:
    environment = os.environ | LOGS | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, *command], env=environment, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2].isdecimal() and not sys.argv[1].startswith("-"):
        asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
    else:
        main()
