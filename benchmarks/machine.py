"""What a benchmark must say about where it ran, and workers that are timed in turn."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
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


def graphics_processor() -> str | None:
    """The GPU that JAX would compute on, by its name, if there is one."""
    code = "import jax; device = jax.devices()[0]; print(device.platform, device.device_kind)"
    asked = subprocess.run(
        [sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, check=True
    )
    platform, name = asked.stdout.strip().split(" ", 1)
    return None if platform == "cpu" else name


def peak_memory() -> float:
    """Most memory this process has held, in GB."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def seconds_of_steps(train: Callable[[int], object], steps: int) -> float:
    """How long training takes beyond its first step.

    Drawing the start and measuring both ends are no part of that.
    """
    return seconds(lambda: train(steps)) - seconds(lambda: train(1))


def spread(values: list[float], form: str = "{:.3g}") -> str:
    """The median, with the smallest and the largest."""
    shown = [form.format(value) for value in (median(values), min(values), max(values))]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


class Worker:
    """A process that runs one side of a comparison each time it is told to.

    The process prints a line of numbers when it is ready, and one after each run.
    """

    def __init__(
        self, module: str, *arguments: str, single_thread: bool, gpu: bool = False
    ) -> None:
        """Starts the process; with ``single_thread`` it is held to one core and one thread."""
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        if not gpu:
            environment["JAX_PLATFORMS"] = "cpu"
        # The compile time told beside the ratio is that of a fresh machine.
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        for name in names:
            environment.pop(name, None)
            if single_thread:
                environment[name] = "1"
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=_hold_to_one_core if single_thread else None,
        )
        self.ready = self._numbers()

    def run(self, what: str = "run") -> list[float]:
        """Runs once and returns what the process measured; ``what`` is the line it reads."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
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
