"""A sweep in a process to be killed: ``run_sweep.py STORE CLUSTER SECONDS [PATIENCE]``."""

import sys

import made_up

from attractor.maps.sweeps import Grid, sweep
from attractor.support.errors import ClusterLostError

GRID = Grid({"n": [1, 2, 3], "rate": [0.1, 0.2, 0.3, 0.4]}, instances=10, chunk=5)


def main(store, cluster, seconds, patience="20"):
    cluster = None if cluster == "here" else int(cluster) if cluster.isdecimal() else cluster
    experiment = made_up.experiment(seconds=float(seconds))
    try:
        print(sweep(GRID, experiment, store, cluster, patience=float(patience)).status.left)
    except ClusterLostError as error:
        print(type(error).__name__, error)


if __name__ == "__main__":
    main(*sys.argv[1:])
