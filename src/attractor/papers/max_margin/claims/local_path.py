"""The regularization path in a narrow cone around a direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from attractor.files.case import Case
from attractor.margin import AttractingCone, attracting_cone
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import (
    FEASIBLE,
    LOCALLY_OPTIMAL,
    ONE_TOKEN_A_ROW,
    SCORES_DIFFER,
    trains,
)
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.max_margin.claims.local_convergence import every_locally_optimal, second_token
from attractor.papers.max_margin.data import one_sequence, random_prompt_data
from attractor.papers.measurements.attended import choosing
from attractor.papers.measurements.near_misses import turned
from attractor.results.paper import MAX_MARGIN
from attractor.training import local_path

CLAIMS = Claims(MAX_MARGIN, Case)

_NARROW = 1e-5
"""Opening around directions of which it is claimed for every one that is small enough.

In wider ones, of 1e-3 for instance, other directions that attract may lie.
"""
_FAR = (1000.0, 10000.0)
"""Radii, in norms of the solution."""


def _shares(case: Case, seed: int, direction: Any, opening: float, radii: Any) -> np.ndarray:
    """The angle to the axis of the cone, as a share of the largest in it, at every radius."""
    run = local_path(
        case.tokens,
        case.head,
        direction,
        opening,
        radii=radii,
        parameterization=case.parameterization,
        seed=seed,
    )
    return run.data["angle"].to_numpy()[0, 0] / np.arccos(1 - opening)


def _cone(case: Case) -> AttractingCone:
    return attracting_cone(case.tokens, case.head, case.selection, case.solution())


def _on_its_edge(case: Case, seed: int) -> np.ndarray:
    return turned(case.solution().W, np.arccos(1 - float(_cone(case).opening)), seed)


def _inside(case: Case, seed: int, axis: np.ndarray) -> Measurement:
    """The share in the attracting cone, turned to an axis."""
    cone = _cone(case)
    opening = float(cone.opening)
    radii = float(cone.radius) * np.array([1.0, 10.0, 100.0, 1000.0])
    shares = _shares(case, seed, axis, opening, radii)
    details = {"opening": opening, "radii": radii.tolist(), "shares": shares.tolist()}
    return Measurement(float(shares[-1]), 1, details)


def _at_edge(case: Case, seed: int, direction: np.ndarray | None) -> Measurement:
    """The least share in a narrow cone over large radii."""
    if direction is None or direction.size == 1:  # on a line there are no other directions
        return Measurement(np.nan, checked=0)
    radii = np.array(_FAR) * float(case.solution().value)
    shares = _shares(case, seed, direction, _NARROW, radii)
    return Measurement(
        float(shares.min()), len(radii), {"opening": _NARROW, "shares": shares.tolist()}
    )


def _best_direction(case: Case, seed: int) -> np.ndarray | None:
    solution = case.solution(selection=case.optimal)
    return solution.W if np.isfinite(solution.value) else None


def _support_token_scores_higher(case: Case) -> Check:
    check = LOCALLY_OPTIMAL.check(case)
    if check.met:
        return Check(False, check.found)
    scores, solution = case.scores, case.solution()
    kept = np.where(case.selection.mask, scores, -np.inf).max(-1, keepdims=True)
    gain = float(np.where(solution.support_tokens, scores - kept, -np.inf).max())
    scale = float(np.abs(scores[case.tokens.mask]).max())
    return Check(gain > 1e-9 * scale, f"a support token scores higher by {gain:.3g}")


SUPPORT_TOKEN_SCORES_HIGHER = Assumption(
    "a support token scores higher",
    "Some support token of the selection has a higher score than the selected one.",
    _support_token_scores_higher,
    second_token,
)


def worst_token() -> Case:
    """One sequence whose third token, of the lowest score, is selected."""
    return choosing(one_sequence(equal_scores=False), [2], "third token")


def _not_locally_optimal(seed: int) -> Case:
    """Random data with a selection that a support token of the first row outscores."""
    case = random_prompt_data(seed, 3, 4, 8)
    index = case.optimal.index.copy()
    solution = case.solution(selection=case.optimal)
    row = np.flatnonzero(solution.support_tokens[:, 0].any(-1))[0]
    index[row] = np.flatnonzero(solution.support_tokens[row, 0])[0]
    return choosing(case, index, f"tokens {index.tolist()}")


LOCAL_PATH = CLAIMS.claim(
    "local-path",
    "in a small cone around a locally optimal direction, the path tends to that direction",
    statement="local regularization path",
    assuming=(trains("p", "W"), ONE_TOKEN_A_ROW, FEASIBLE, LOCALLY_OPTIMAL),
    contrast=Comparison(
        "angle of the path to the direction, as a share of the largest in the cone",
        _inside,
        lambda case, seed: case.solution().W,
        "that share in the same cone around a direction on the edge of this one",
        _on_its_edge,
        bound=0.05,
        reason="it falls like c / R, here at 1,000 times the radius from which descent is held",
    ),
    data=lambda seed: [
        second_token(),
        one_sequence(equal_scores=False),
        *every_locally_optimal(random_prompt_data(seed, 3, 4, 8)),
    ],
    note="wider cones may hold directions of better tokens, and there it fails as it should",
)

LOCAL_PATH_CONVERSE = CLAIMS.claim(
    "local-path-converse",
    "around a solution that is not locally optimal the path leaves every small cone",
    statement="converse for local regularization paths",
    assuming=(trains("p", "W"), ONE_TOKEN_A_ROW, FEASIBLE, SUPPORT_TOKEN_SCORES_HIGHER),
    contrast=Comparison(
        "least angle of the path to the direction, as a share of the largest in the cone",
        _at_edge,
        lambda case, seed: case.solution().W,
        "that share around the direction of the best tokens",
        _best_direction,
        bound=0.999,
        reason="the minimizer lies on the edge, to rounding, however small the cone",
        sense=">=",
    ),
    data=lambda seed: [
        worst_token(),
        *(_not_locally_optimal(number) for number in range(seed, seed + 3)),
    ],
    note="tokens of the same score are left out: among them nothing is decided by the loss",
    exchange="the path leaves nearly every direction",
)

LOCAL_PATH_ELSEWHERE = CLAIMS.claim(
    "local-path-elsewhere",
    "around a direction that solves no margin problem the path leaves every small cone",
    statement="converse for local regularization paths",
    assuming=(trains("p", "W"), FEASIBLE, SCORES_DIFFER),
    contrast=Comparison(
        "least share of the largest angle, around the solution turned by 0.1",
        _at_edge,
        lambda case, seed: turned(case.solution().W, 0.1, seed),
        "that share around the direction of the best tokens",
        _best_direction,
        bound=0.999,
        reason="the minimizer lies on the edge, to rounding, however small the cone",
        sense=">=",
    ),
    data=lambda seed: [
        one_sequence(equal_scores=False),
        *(random_prompt_data(number, 3, 4, 8) for number in range(seed, seed + 3)),
    ],
    exchange="the path leaves nearly every direction",
)
