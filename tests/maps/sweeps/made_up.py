"""Experiments without JAX, for the tests of sweeps; some points of some go wrong."""

import contextlib
import os
import random
import time
from pathlib import Path

import numpy as np

from attractor.maps.sweeps import Experiment

MEASURES = {
    "number": ("f8", "made of the trial alone"),
    "coarse": ("f4", "the same, in half the bytes"),
    "flag": ("i1", "whether it is positive"),
}


def run(point, instances, seeds, *, cured="", seconds=0.0, scale=1.0):
    """Numbers made of the trial; ``kind`` says what else happens, unless a file is there."""
    kind = point.get("kind", "fine")
    if kind != "fine" and not (cured and Path(cured).exists()):
        if kind == "raises":
            raise RuntimeError("this point cannot be computed")
        if kind == "kills":
            os._exit(1)
        if kind == "hangs":
            time.sleep(3600)
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    trial = 100.0 * instances[:, None] + np.array(seeds)
    number = np.sin(scale * trial + sum(v for v in point.values() if not isinstance(v, str)))
    return {"number": number, "coarse": number, "flag": number > 0}


def experiment(**settings):
    return Experiment("made_up:run", MEASURES, ["n", "rate", "kind"], ["n", "kind"], settings)


PLAIN = experiment()


def run_empty(point, instances, seeds):
    return {"number": np.zeros((len(instances), len(seeds)))}


def run_drawing(point, instances, seeds):
    numbers = [[np.random.normal() + random.random() for _ in seeds] for _ in instances]
    return {"number": np.array(numbers)}


DRAWING = Experiment("made_up:run_drawing", {"number": ("f8", "drawn")}, ["n"])
EMPTY = Experiment("made_up:run_empty", {"number": ("f8", "nothing")}, ["n"])


def run_along(point, instances, seeds):
    shape = (len(instances), len(seeds), 3)
    return {"number": np.broadcast_to(np.arange(3.0), shape)}


ALONG = Experiment(
    "made_up:run_along", {"number": ("f8", "the horizon")}, ["n"], along={"horizon": [1, 10, 100]}
)


def run_wrong(point, instances, seeds, *, returned):
    """Returns what no experiment may."""
    shape = (len(instances), len(seeds))
    number = np.zeros(shape)
    flag = np.zeros(shape, dtype=bool)
    return {
        "shape": {"number": number.T, "flag": flag},
        "name": {"numbers": number, "flag": flag},
        "missing": {"number": number},
        "nothing": None,
        "nan in flags": {"number": number, "flag": np.full(shape, np.nan)},
        "large flags": {"number": number, "flag": np.full(shape, 200)},
        "complex": {"number": number + 1j, "flag": flag},
        "texts": {"number": np.full(shape, "1"), "flag": flag},
    }[returned]


def wrong(returned):
    measures = {"number": ("f8", "a number"), "flag": ("i1", "a flag")}
    return Experiment("made_up:run_wrong", measures, ["n"], settings={"returned": returned})


def check(grid, **settings):
    from attractor.support.errors import InvalidInputError

    if min(grid.axes["n"]) < 1:
        raise InvalidInputError("axes['n']", "it is below 1", "Give at least 1")


CHECKED = Experiment("made_up:run_empty", {"number": ("f8", "nothing")}, ["n"], check="check")


def listening_sockets(*processes):
    """What listens in some processes, as Linux tells it: TCP, and named sockets of the system."""
    listening = set()
    for kind, state, inode in (("tcp", "0A", 9), ("tcp6", "0A", 9), ("unix", "00010000", 6)):
        with contextlib.suppress(FileNotFoundError):
            lines = Path("/proc/net", kind).read_text().splitlines()[1:]
            listening |= {line.split()[inode] for line in lines if line.split()[3] == state}
    held = set()
    for number in processes:
        for file in Path(f"/proc/{number}/fd").iterdir():
            with contextlib.suppress(OSError):
                held.add(os.readlink(file).removeprefix("socket:[").removesuffix("]"))
    return listening & held


def run_listening(point, instances, seeds):
    """How many sockets listen in the process that started this one, and in all that it started."""
    import psutil

    started = psutil.Process(os.getppid())
    tree = [started.pid, *(child.pid for child in started.children(recursive=True))]
    found = len(listening_sockets(*tree)) if len(tree) > 2 else -1
    return {"listening": np.full((len(instances), len(seeds)), found)}


LISTENING = Experiment("made_up:run_listening", {"listening": ("i1", "sockets")}, ["n"])
