"""Batches without their empty slots, for the same arithmetic as each instance has alone.

Slots left empty would be summed over, and make sums of another length, whose last digits differ.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Int

from attractor.margin.problem import MarginProblem, derived

Places: TypeAlias = slice | Int[np.ndarray, "k"]
"""Instances of a batch."""

PER_CONSTRAINT = ("left", "right", "bounds", "equality", "present")


def alike(problem: MarginProblem) -> list[tuple[int, Int[np.ndarray, "k"]]]:
    """Numbers of constraints that instances of a batch have, each with the instances that do."""
    counts = problem.constraints
    return [(int(m), np.flatnonzero(counts == m)) for m in np.unique(counts)]


def as_places(instances: Int[np.ndarray, "k"]) -> Places:
    """Increasing numbers of instances, as a slice where they are consecutive: it copies nothing."""
    run = slice(int(instances[0]), int(instances[-1]) + 1)
    return run if len(instances) == run.stop - run.start else instances


def without_empty_slots(problem: MarginProblem, places: Places) -> tuple[MarginProblem, Any]:
    """Instances with as many constraints each, and where these stand in arrays of the batch."""
    part = problem[places]
    if part.present.all():
        return part, places
    instance, slot = (index.reshape(len(part), -1) for index in np.nonzero(part.present))
    arrays = {name: getattr(part, name)[instance, slot] for name in PER_CONSTRAINT}
    return derived(part, **arrays), (np.arange(len(problem))[places][:, None], slot)
