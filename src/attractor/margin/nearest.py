"""The constraints that a matrix fulfills least, which solvers begin with."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from attractor.margin.problem import MarginProblem


def nearest_constraints(
    problem: MarginProblem, W: Float[np.ndarray, "d e"], count: int
) -> Bool[np.ndarray, "m"]:
    """The constraints of each query that a matrix fulfills least, of ties the first.

    Args:
        problem: A problem that knows of which query each constraint is.
        W: The matrix.
        count: How many of each query.
    """
    sequence, query = np.asarray(problem.sequence), np.asarray(problem.query)
    order = np.lexsort((problem.margins(W), query, sequence))
    changes = (np.diff(sequence[order]) != 0) | (np.diff(query[order]) != 0)
    first = np.flatnonzero(np.concatenate([[True], changes]))
    lengths = np.diff(np.append(first, len(order)))
    place = np.arange(len(order)) - np.repeat(first, lengths)
    nearest = np.zeros(len(order), bool)
    nearest[order[place < count]] = True
    return nearest
