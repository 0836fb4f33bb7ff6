"""Runs the tests of what computes as on other machines, with one change at a time.

Numbers differ in their last digits between machines: OpenBLAS and XLA have other code for each
kind of processor. Tests may ask for equal bits only where the library promises them (same call,
same machine).

    python tools/processors.py                                      # every run, hours
    python tools/processors.py prescott oldest                      # these
    python tools/processors.py rounding --tests tests/geometry      # these tests
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = (
    *("analysis", "attention", "corpora", "geometry", "heads", "margin", "models", "papers"),
    *("prompts", "support", "tokens", "training"),
)
"""Folders and files of tests/ whose numbers depend on the machine."""


@dataclass(frozen=True)
class Run:
    """A run of the tests, and the one thing that is changed in it.

    Attributes:
        environment: Variables that are set.
        processors: How many of them the process may use; None for all.
        instructions: What the processor must have, as /proc/cpuinfo calls it.
        versions: Which versions of the libraries are installed for it, in build/.
        options: Further options of pytest.
    """

    environment: dict[str, str] = field(default_factory=dict)
    processors: int | None = None
    instructions: str = ""
    versions: str = ""
    options: tuple[str, ...] = ()


def threads(count: int) -> Run:
    """A run on that many processors, with as many threads in BLAS."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return Run(dict.fromkeys(names, str(count)), processors=count)


WITHOUT_HALF = "not float16 and not test_ordinary_settings_say and not test_the_range_is_that_of"
"""Without AVX, XLA compiles nothing in half precision (it looks for __extendhfsf2)."""

RUNS = {
    "rounding": Run(options=("-p", "tools.rounded_otherwise")),
    **{
        core.lower(): Run({"OPENBLAS_CORETYPE": core}, instructions=needed)
        for core, needed in (
            ("Prescott", ""),
            ("Nehalem", "sse4_2"),
            ("Haswell", "avx2"),
            ("SkylakeX", "avx512f"),
        )
    },
    "xla-sse4_2": Run({"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}, options=("-k", WITHOUT_HALF)),
    **{
        f"xla-{widest.lower()}": Run({"XLA_FLAGS": f"--xla_cpu_max_isa={widest}"})
        for widest in ("AVX2", "AVX512")
    },
    "threads-1": threads(1),
    "threads-2": threads(2),
    "oldest": Run(versions="oldest"),
    "newest": Run(versions="newest"),
}


def has_instructions(name: str) -> bool:
    """Whether the processor has these instructions; OpenBLAS's code for others would stop it."""
    said = Path("/proc/cpuinfo")
    return not name or (said.exists() and name in said.read_text("utf-8").split())


def interpreter(versions: str) -> str:
    """The Python whose libraries have these versions, installed in build/ at first.

    "oldest" are the lowest NumPy, SciPy and JAX that pyproject.toml allows, with what fits them;
    "newest" is what pip takes today.
    """
    if not versions:
        return sys.executable
    folder = ROOT / "build" / f"python-{versions}"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if versions == "oldest":
            command += ["--constraint", ROOT / "constraints" / "oldest.txt"]
        subprocess.run([*command, "--editable", f"{ROOT}[test]"], check=True)
        (folder / "installed").touch()
    return str(python)


def run_tests(run: Run, tests: list[str]) -> tuple[int, list[str]]:
    """Runs the tests and returns the exit code of pytest and what it printed."""
    allowed = sorted(os.sched_getaffinity(0))[: run.processors]
    command = [interpreter(run.versions), "-m", "pytest", "-q", *run.options]
    if len(allowed) > 1:
        command += ["--numprocesses", "2", "--dist", "worksteal"]
    done = subprocess.run(
        [*command, "-m", "not slow and not browser and not torch", *tests],
        cwd=ROOT,
        env=os.environ | run.environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    return done.returncode, done.stdout.splitlines()


def main() -> int:
    """Does the runs that are named, or all, and says which tests failed in which."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="RUN", help=", ".join(RUNS))
    parser.add_argument("--tests", nargs="+", default=[f"tests/{room}" for room in ROOMS])
    given = parser.parse_args()
    if unknown := [name for name in given.runs if name not in RUNS]:
        parser.error(f"there is no run {unknown[0]!r}; there are {', '.join(RUNS)}")
    failed = []
    for name in given.runs or RUNS:
        run, started = RUNS[name], time.monotonic()
        if not has_instructions(run.instructions):
            print(f"{name}: not run, this processor has no {run.instructions}", flush=True)
            continue
        code, lines = run_tests(run, given.tests)
        for line in lines:
            if re.match(r"(FAILED|ERROR)\b", line):
                print(f"  {line}")
        minutes = (time.monotonic() - started) / 60
        print(f"{name}: {lines[-1] if lines else 'no answer'} ({minutes:.1f} min)", flush=True)
        failed += [name] * bool(code)
    print(f"failed: {', '.join(failed)}" if failed else "no run failed")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
