"""How many tokens hold the max-margin solution, as a function of the sizes of the data."""

import numpy as np

import attractor as at
from attractor.maps.sweeps import Experiment


def support(**settings: object) -> Experiment:
    """The experiment; plans call it by the name ``support``."""
    measures = {"support": ("f8", "constraints at the margin (1)")}
    return Experiment("support", measures, axes=("n", "T", "d"), settings=settings)


def run(point, instances, seeds, **settings):  # noqa: ANN001, ANN003, ANN201
    """Solves the random data sets of one point of the grid."""
    n, T, d = (int(point[axis]) for axis in ("n", "T", "d"))
    tokens, head = at.datasets.unit_tokens(n, T, d, seeds=instances.tolist())
    solution = at.solve(at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head)))
    count = solution.support.sum(-1).astype(float)
    return {"support": np.repeat(count[:, None], len(seeds), axis=1)}
