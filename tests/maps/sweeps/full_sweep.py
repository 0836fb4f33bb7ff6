"""Sweeps on a small file system that is full at first: ``full_sweep.py FOLDER``, mounted apart."""

import os
import sys
from pathlib import Path

from made_up import PLAIN

from attractor.maps.sweeps import Grid, check_sweep, sweep
from attractor.support.errors import WriteError

GRID = Grid({"n": [1, 2, 3], "rate": [0.1, 0.2]}, instances=8, chunk=4)
ROOM = 50
"""Pages that are left: for the descriptions and for a few chunks."""


def main(folder):
    assert os.path.ismount(folder) and os.statvfs(folder).f_bavail * 4096 < 2**21
    store, filler = Path(folder) / "s", Path(folder) / "filler"
    sweep(Grid({"n": [1]}, 1), PLAIN, Path(folder) / "first")  # what is loaded is loaded
    with open(filler, "wb", buffering=0) as file:
        while os.statvfs(folder).f_bavail > ROOM:
            file.write(bytes(4096))
    try:
        sweep(GRID, PLAIN, store)
    except WriteError as error:
        print(error)
    found = check_sweep(store)
    print(found.passed, 0 < found.read < 12)
    filler.unlink()
    summary = sweep(GRID, PLAIN, store)
    print(
        summary.computed + found.read, summary.status.left, check_sweep(store, 12, 0, PLAIN).passed
    )


if __name__ == "__main__":
    main(sys.argv[1])
