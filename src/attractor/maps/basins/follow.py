"""Training many starts until it is decided which selection each of them settles on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attractor.maps.basins.attractors import Attractors, Judgement
from attractor.maps.basins.problem import BasinProblem, Starts
from attractor.support.checks import MOST_STEPS, check_steps
from attractor.support.errors import InvalidInputError, TrialStatus

DOUBLINGS = 4
"""Doublings of the number of steps, by default, for starts that have not settled."""


class Followed(NamedTuple):
    """The end of the run from every start.

    Attributes:
        W: The effective matrix at the end.
        judgement: The tokens attended to, and whether it has settled on them.
        steps: Steps it was followed for.
        status: How its training ended.
    """

    W: Float[np.ndarray, "start d e"]
    judgement: Judgement
    steps: Int[np.ndarray, "start"]
    status: Int[np.ndarray, "start"]


def check_horizon(steps: int, most_steps: int | None) -> tuple[int, int]:
    """Checks how long starts are to be followed.

    Raises:
        InvalidInputError: If either is no count, or ``most_steps`` is the smaller one.
    """
    steps = check_steps("steps", steps)
    if most_steps is None:
        return steps, min(steps * 2**DOUBLINGS, MOST_STEPS)
    most = check_steps("most_steps", most_steps)
    if most < steps:
        raise InvalidInputError(
            "most_steps", f"{most} is less than {steps} steps", f"Give {steps} or more"
        )
    return steps, most


def follow(
    problem: BasinProblem,
    attractors: Attractors,
    starts: Starts,
    *,
    steps: int,
    most_steps: int,
    progress: bool = False,
) -> Followed:
    """Trains all starts, and those that have not settled for twice as long, and so on.

    An optimizer without memory goes on from where it was, which gives the numbers of one long
    run; any other begins again. Trials that can move no further are not followed.

    Args:
        problem: What is trained.
        attractors: The attractors met so far; new ones are added.
        starts: Initial parameters.
        steps: Steps that every start takes.
        most_steps: Steps that none exceeds.
        progress: Whether to show progress bars.
    """
    pending = np.arange(len(next(iter(starts.values()))))
    begin, done, horizon = starts, 0, steps
    found: Followed | None = None
    while True:
        taken = horizon - done if problem.memoryless else horizon
        run = problem.train(begin, taken, progress=progress)
        W, status = np.array(run.W()[0]), np.array(run.data["status"].values[0])
        judged = attractors.judge(W)
        ended = Followed(W, judged, np.full(len(W), horizon), status)
        found = ended if found is None else _updated(found, pending, ended)
        again = ~judged.settled & (status == TrialStatus.TRAINED)
        pending = pending[again]
        if not pending.size or horizon == most_steps:
            return found
        begin = {name: array[pending] for name, array in starts.items()}
        if problem.memoryless:
            last = run.data.isel(instance=0, step=-1, missing_dims="ignore")
            begin = {name: last[name].values[again] for name in starts}
        done, horizon = horizon, min(2 * horizon, most_steps)


def _updated(found: Followed, places: Int[np.ndarray, "some"], new: Followed) -> Followed:
    """The same with some starts replaced."""

    def put(old: np.ndarray, values: np.ndarray) -> np.ndarray:
        old[places] = values
        return old

    judged = Judgement(*map(put, found.judgement, new.judgement))
    return Followed(
        put(found.W, new.W), judged, put(found.steps, new.steps), put(found.status, new.status)
    )
