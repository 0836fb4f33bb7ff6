"""Memory that training takes, so that what does not fit is refused before work begins."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import jax
from jaxtyping import PyTree

from attractor.support.memory import require_memory_for
from attractor.support.precision import double_precision
from attractor.support.randomness import traced
from attractor.training.objective import Objective

BOOKKEEPING = 64
"""Bytes that a trial takes whatever is recorded of it: its status, its steps, its number."""
_DATA = 3
"""Copies of the data of a trial in work, about."""
_UNTRACED = 16
"""Times its state and data, and a kilobyte, that a record of a trial takes at the very most."""
_TRIFLE = 2**27
"""Bytes of records for which nothing is traced."""


class Footprint(NamedTuple):
    """Bytes that a run takes.

    Attributes:
        trial: For each trial.
        record: For each record of a trial besides.
        work: While it runs.
    """

    trial: float
    record: float
    work: float


@traced
def footprint(
    objective: Objective,
    state: PyTree,
    data: PyTree,
    *,
    trials: int,
    records: int,
    block: int,
    blocks: int,
    last_only: Collection[str] = (),
) -> Footprint:
    """Estimates the memory of a run.

    Args:
        objective: What is trained.
        state: The state of one trial; shapes and types will do.
        data: Its data.
        trials: Number of trials.
        records: Number of records of each.
        block: Trials in a block.
        blocks: Blocks in work at a time.
        last_only: Names of measurements kept at the last record alone.
    """
    one = size_of((state, data))
    each = objective.copies * size_of(state) + _DATA * size_of(data)
    work = each * block * min(blocks, -(-trials // block))
    if trials * records * _UNTRACED * (one + 1024) < _TRIFLE:
        return Footprint(BOOKKEEPING, 0, work)
    with double_precision():
        measured = jax.eval_shape(objective.record, state, data)
    once = size_of([leaf for name, leaf in measured.items() if name in last_only])
    return Footprint(BOOKKEEPING + once, size_of(measured) - once, work)


def check_run(found: Footprint, *, trials: int, records: int, instances: int) -> None:
    """Refuses a run that does not fit into memory.

    Args:
        found: The memory it takes.
        trials: Number of trials.
        records: Number of records of each.
        instances: Number of data sets; each has as many trials as there are seeds.

    Raises:
        InvalidInputError: With the number of seeds, or of records, that would fit.
    """
    each = found.trial + records * found.record
    seeds = trials // instances
    smallest = instances * (found.trial + found.record) + found.work
    if seeds == 1 and records > 1 and instances * each > smallest:
        require_memory_for(
            "record",
            records,
            f"records of {trials:,} trials",
            each=instances * found.record,
            besides=instances * found.trial + found.work,
            otherwise="Not even one would fit; give fewer or smaller data sets",
        )
    require_memory_for(
        "seeds",
        seeds,
        f"seeds ({trials:,} trials, {records:,} records of each)",
        each=instances * each,
        besides=found.work,
        otherwise="Not even one would fit; record fewer steps, keep fewer weights, or give fewer "
        "or smaller data sets",
    )


def size_of(tree: PyTree) -> float:
    """Bytes of all leaves."""
    return float(sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree)))
