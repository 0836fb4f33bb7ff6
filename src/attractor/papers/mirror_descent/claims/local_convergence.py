"""Mirror descent from near a locally optimal direction."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.papers.claim import Claims, Contrast, Measurement
from attractor.papers.mirror_descent.claims._examples import (
    another_norm,
    examples,
    next_to_selection,
    out_of_reach,
)
from attractor.papers.mirror_descent.hypotheses import NEAR_A_SOLUTION
from attractor.papers.mirror_descent.training import divergence_from, own_solution, run, steps_known
from attractor.papers.paper import MIRROR_DESCENT

CLAIMS = Claims(MIRROR_DESCENT, Case)


def _at_end(case: Case, seed: int, solution: np.ndarray) -> Measurement:
    trajectory = run(case, seed)
    if trajectory is None:
        return out_of_reach(case)
    along = divergence_from(case, trajectory, solution)
    details = {
        "p": steps_known(case).p,
        "at the start": float(along[:, 0].max()),
        "log k": float(trajectory.data["log_time"][..., -1].min()),
    }
    return Measurement(float(along[:, -1].max()), len(along), details)


def _widest(case: Case, seed: int) -> Measurement:
    trajectory = run(case, seed)
    if trajectory is None:
        return out_of_reach(case)
    along = divergence_from(case, trajectory, own_solution(case).W)
    start = along[:, 0].max()
    details = {
        "p": steps_known(case).p,
        "at the start": float(start),
        "largest of a run over its own start": float((along.max(1) / along[:, 0]).max()),
    }
    return Measurement(float(along.max() / start), len(along), details)


def _widest_of_another_selection(case: Case, seed: int) -> Measurement:
    """The same about a selection that is not locally optimal, one token away."""
    other = next_to_selection(case)
    if other is None:
        return Measurement(float("nan"))
    return _widest(case.replace(chosen=other, initial=None), seed)


LOCAL_CONVERGENCE = CLAIMS.claim(
    "local-convergence",
    "from near a locally optimal direction, W tends to the max-margin solution in l_p",
    statement="local convergence of mirror descent",
    assuming=NEAR_A_SOLUTION,
    contrast=Contrast(
        "directional divergence from the solution in the own norm, at the end",
        lambda case, seed: _at_end(case, seed, own_solution(case).W),
        "directional divergence from the solution in another norm",
        lambda case, seed: _at_end(case, seed, case.solution(another_norm(case)).W),
        bound=1e-3,
        reason="D falls like (log k)^(-2 min(p - 1, 1)); training goes on until that is about 5e-4",
    ),
    data=examples,
    note="normalized steps, which follow the path of raw ones and much further: raw steps, ten "
    "times as many, have barely begun; p and the learning rate are those of the data's optimizer",
)

STAYS_IN_CONE = CLAIMS.claim(
    "stays-in-cone",
    "iterates that start in a cone about the solution stay in one twice as wide",
    statement="local convergence of mirror descent: iterates stay in a cone",
    assuming=NEAR_A_SOLUTION,
    contrast=Contrast(
        "largest divergence on the way, over the largest at the start",
        _widest,
        "the same about a selection one token away that is not locally optimal",
        _widest_of_another_selection,
        bound=2.0,
        reason="the statement is that of a cone; single runs rise above their start, by up to 1.9",
    ),
    data=examples,
    note="the divergence of single runs need not fall from the first",
)
