"""What a benchmark must say about where it ran, and workers that are timed in turn."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]


def machine() -> str:
    """Processor, number of cores this process may use, and operating system."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = models[0].split(":")[1].strip() if models else name
    return f"{name}, {len(cores())} cores, {platform.system()}"


def versions(*packages: str) -> str:
    """Versions of Python and of some packages."""
    found = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    return ", ".join([f"Python {platform.python_version()}", *found])


def cores() -> list[int]:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def spread(values: list[float], form: str = "{:.3g}") -> str:
    """The median, with the smallest and the largest."""
    shown = [form.format(value) for value in (median(values), min(values), max(values))]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


class Worker:
    """A process that runs one side of a comparison each time it is told to.

    The process prints a line of numbers when it is ready, and one after each run.
    """

    def __init__(self, module: str, side: str, *, single_thread: bool) -> None:
        """Starts the process; with ``single_thread`` it is held to one core and one thread."""
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        # The compile time told beside the ratio is that of a fresh machine.
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        for name in names:
            environment.pop(name, None)
            if single_thread:
                environment[name] = "1"
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, side],
            cwd=ROOT,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=_hold_to_one_core if single_thread else None,
        )
        self.ready = self._numbers()

    def run(self) -> list[float]:
        """Runs once and returns what the process measured."""
        assert self.process.stdin is not None
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return self._numbers()

    def close(self) -> None:
        """Ends the process."""
        self.process.communicate("", timeout=60)

    def _numbers(self) -> list[float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with status {self.process.wait()}")
        return [float(number) for number in line.split()]


def _hold_to_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores()[:1])
