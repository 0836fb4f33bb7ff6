"""Judges pairs of parameters and hostile values in a process of their own, which may die."""

from __future__ import annotations

import importlib.util
import inspect
import json
import multiprocessing
import os
import random
import resource
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault(
    "JAX_DISABLE_MOST_OPTIMIZATIONS", "1"
)  # of what a call takes most is compiling

from fuzzing.arguments.calls import CALLS
from fuzzing.arguments.exempt import NEEDS
from fuzzing.arguments.hostile import VALUES, Hostile
from fuzzing.arguments.judge import TookTooLong, judge, perform, within
from fuzzing.arguments.same_numbers import WAYS, Held, is_held, known_ways
from fuzzing.arguments.table import Call, Lazy

EVERY: dict[str, Hostile | Held] = {value.name: value for value in (*VALUES, *WAYS)}
"""Values and ways to hold the valid one, by name."""
BYTES = 6 * 2**30
"""What calls may have of memory, beyond what the process has after its first."""
HANGS = 60
"""Seconds without an outcome after which a process hangs in compiled code."""


def pairs_of(names: list[str], sample: int | None = None) -> list[tuple[str, str, str]]:
    """Every callable and parameter with every value, or with a seeded sample of the values."""
    found = []
    for name in names:
        if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
            continue
        taken = inspect.signature(CALLS[name].function).parameters
        for parameter in CALLS[name].parameters:
            draw = random.Random(f"{name} {parameter}")
            default = taken[parameter].default
            hostile = [value for value in VALUES if not _is_default(default, value)]
            hostile += _ways(CALLS[name], parameter)
            chosen = hostile if sample is None else draw.sample(hostile, sample)
            found += [(name, parameter, value.name) for value in chosen]
    return found


def _ways(call: Call, parameter: str) -> tuple[Held, ...]:
    """The ways to hold the valid value of a parameter, if that is an array."""
    valid, kinds = call.valid.get(parameter), call.parameters[parameter]
    if isinstance(valid, Lazy):
        valid = valid.value if "array" in kinds else None
    return known_ways() if is_held(valid, kinds) else ()


def _is_default(default: Any, value: Hostile) -> bool:
    """Whether a value is what a parameter has where it is left out."""
    return any(value.name == repr(one) and default is one for one in (None, True))


def run(pairs: list[tuple[str, str, str]]) -> list[list[str]]:
    """Outcomes of pairs, in a process of their own that may die: then the next goes on."""
    found: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        while len(found) < len(pairs):
            file = Path(folder) / f"found-{len(found)}"
            file.touch()
            ended = _watch(pairs[len(found) :], file)
            begun, *lines = file.read_text().splitlines() or [""]
            if not begun:
                raise RuntimeError(f"no process could begin: {ended}")
            found += [json.loads(line) for line in lines]
            if len(found) < len(pairs):
                found.append([*pairs[len(found)], "killed the process", ended])
    return found


def _watch(pairs: list[tuple[str, str, str]], file: Path) -> str:
    """Lets a process judge pairs, and ends it where it hangs; says how it ended."""
    child = multiprocessing.get_context("spawn").Process(
        target=_work, args=(pairs, str(file), str(file.parent)), daemon=True
    )
    child.start()
    seen = -1
    while child.is_alive():
        child.join(HANGS)
        if (size := file.stat().st_size) == seen and child.is_alive():
            child.kill()
            child.join()
            return f"nothing for {HANGS} s"
        seen = size
    return f"exit status {child.exitcode}"


def _work(pairs: list[tuple[str, str, str]], file: str, folder: str) -> None:
    """Judges pairs one after another; each is on the disk before the next begins."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    broken: dict[str, str] = {}
    checked = ""
    with open(file, "a", buffering=1, encoding="utf-8") as out, within(folder):
        print("begun", file=out)
        for name, parameter, value in pairs:
            call = CALLS[name]
            if name != checked:
                broken |= {name: problem} if (problem := _fails(call)) else {}
                if not checked:
                    _limit_memory()
                checked = name
            outcome = ("the valid call fails", broken.get(name, ""))
            if name not in broken:
                outcome = judge(call, parameter, EVERY[value])
            print(json.dumps([name, parameter, value, *outcome]), file=out)


def _fails(call: Call) -> str:
    """What goes wrong in the valid call; nothing where nothing does."""
    try:
        perform(call, call.arguments())
    except (Exception, TookTooLong) as error:
        return f"{type(error).__name__}: {error}"[:300]
    return ""


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
