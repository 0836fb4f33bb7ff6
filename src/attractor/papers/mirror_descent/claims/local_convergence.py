"""Mirror descent from near a locally optimal direction."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.margin.selection import Selection
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.mirror_descent.claims._examples import (
    another_norm,
    examples,
    next_to_selection,
    out_of_reach,
)
from attractor.papers.mirror_descent.hypotheses import NEAR_A_SOLUTION
from attractor.papers.mirror_descent.training import (
    divergence_from,
    own_solution,
    run,
    starts_at,
    steps_known,
)
from attractor.results.paper import MIRROR_DESCENT

CLAIMS = Claims(MIRROR_DESCENT, Case)

_EDGE = 0.003
"""Divergence at the edge of the cone: so close that at 20 norms of the solution runs do rise."""


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


def _on_edge(case: Case, seed: int) -> np.ndarray:
    return starts_at(case, seed, _EDGE)


def _inside(case: Case, seed: int) -> np.ndarray:
    return starts_at(case, seed, _EDGE / 10)


def _largest_rise(case: Case, seed: int, selection: Selection | None) -> Measurement:
    """The largest divergence from the solution of a selection, over that of the start or edge."""
    if selection is None:
        return Measurement(float("nan"))
    if (selection.mask != case.selection.mask).any():
        case = case.replace(chosen=selection, initial=None)
    solution, rises, details = own_solution(case).W, [], {"p": steps_known(case).p}
    for where, begin in (("on the edge", _on_edge), ("at a tenth of it", _inside)):
        trajectory = run(case, seed, begin)
        if trajectory is None:
            return out_of_reach(case)
        along = divergence_from(case, trajectory, solution)
        largest, first = along.max(1), along[:, 0]
        rises.append(largest / np.maximum(first, _EDGE))
        details |= {
            f"largest of a run over its own start, {where}": float((largest / first).max()),
            f"runs that rise, {where}": int((largest > first).sum()),
        }
    return Measurement(float(np.max(rises)), np.size(rises), details)


LOCAL_CONVERGENCE = CLAIMS.claim(
    "local-convergence",
    "from near a locally optimal direction, W tends to the max-margin solution in l_p",
    statement="local convergence of mirror descent",
    assuming=NEAR_A_SOLUTION,
    contrast=Comparison(
        "directional divergence from the solution in the own norm, at the end",
        _at_end,
        lambda case, seed: own_solution(case).W,
        "directional divergence from the solution in another norm",
        lambda case, seed: case.solution(another_norm(case)).W,
        bound=1e-3,
        reason="D falls like (log k)^(-2 min(p - 1, 1)); training goes on until that is about 5e-4",
    ),
    data=examples,
    note="normalized steps, which follow the path of raw ones and much further: raw steps, ten "
    "times as many, have barely begun; p and the learning rate are those of the data's optimizer",
)

STAYS_IN_CONE = CLAIMS.claim(
    "stays-in-cone",
    "runs that start in a cone about the solution stay in one twice as wide",
    statement="local convergence of mirror descent: iterates stay in a cone",
    assuming=NEAR_A_SOLUTION,
    contrast=Comparison(
        "largest divergence of a run on its way, over that at its own start if that is on the edge "
        "of the cone, or at the edge",
        _largest_rise,
        lambda case, seed: case.selection,
        "the same about a selection one token away that is not locally optimal",
        lambda case, seed: next_to_selection(case),
        bound=2.0,
        reason="twice as wide, as stated; runs do rise first, by up to 1.5 from the edge",
    ),
    data=examples,
    note="the edge is a divergence of .003, 20 norms of the solution out; half of the runs start "
    "on it, half at a tenth of it, which rise to more than twice their own start: a narrower cone "
    "would have to begin further out",
)
