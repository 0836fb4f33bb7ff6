"""Regularization paths: global, local, and with several best tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from attractor.attention import ConcaveHead, ReLUHead
from attractor.attention.mixing import measure_mixing
from attractor.files.case import Case
from attractor.geometry import Frobenius
from attractor.margin import (
    AttractingCone,
    MarginProblem,
    SeveralSolution,
    attracting_cone,
    solve,
    solve_several,
)
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import (
    FEASIBLE,
    LOCALLY_OPTIMAL,
    ONE_TOKEN_A_ROW,
    OPTIMUM_FEASIBLE,
    SCORES_DIFFER,
    SEVERAL_OPTIMAL_TOKENS,
    UNIQUE_OPTIMUM,
    trains,
)
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.max_margin.claims.descent import (
    contrast_with_one_token_fewer,
    every_locally_optimal,
    second_token,
)
from attractor.papers.max_margin.data import one_sequence, random_prompt_data, three_sequences
from attractor.papers.measurements.attended import choosing
from attractor.papers.measurements.near_misses import drop_largest_multiplier, turned
from attractor.papers.measurements.paths import distance_of_path, path
from attractor.papers.transformers_as_svms.random_data import enclosed_token, tied_scores
from attractor.results.paper import MAX_MARGIN
from attractor.tokens import Tokens
from attractor.training import Trajectory, local_path

CLAIMS = Claims(MAX_MARGIN, Case)

CONTRAST_OF_PATHS = contrast_with_one_token_fewer(
    "1 - cos of the path with the max-margin direction, at 10,000 norms of the solution",
    lambda case, seed, direction: distance_of_path(path(case, seed), direction),
    "1 - cos of the path with the solution for one support token fewer",
    bound=1e-5,
    reason="the angle falls like c / R; the bound lets c be 45 norms, where 2 are usual",
)
GLOBAL_PATH = CLAIMS.claim(
    "global-path",
    "minimizers over balls of growing radius tend to the max-margin direction",
    statement="global regularization path of the prompt",
    assuming=(
        trains("p"),
        UNIQUE_OPTIMUM.broken_by(lambda: tied_scores("p")),
        OPTIMUM_FEASIBLE.broken_by(lambda: enclosed_token("p")),
    ),
    contrast=CONTRAST_OF_PATHS,
    data=lambda seed: [
        three_sequences(),
        one_sequence(equal_scores=True),
        one_sequence(equal_scores=False),
    ],
)


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


def _several(case: Case) -> SeveralSolution:
    return case.once("several", lambda: solve_several(case.tokens, case.optimal))


def _feasible(case: Case) -> Check:
    value = _several(case).value
    if value == 0:
        return Check(False, "there is no token to be told from the best ones")
    if np.isfinite(value):
        return Check(True, f"the least norm is {value:.6g}")
    return Check(False, "no choice of one best token a row has a solution")


SOME_CHOICE_FEASIBLE = Assumption(
    "feasible",
    "Some choice of one best token a row can beat all tokens that are not.",
    _feasible,
    lambda: _enclosed(),
)


def _path(case: Case, seed: int) -> Trajectory:
    """The path, sought from the predicted directions besides."""
    found = _several(case)
    start = found.solution.W / found.value
    return path(
        case,
        seed,
        unit=found.value,
        starts=8,
        initial=start[:, 0] if case.parameterization == "p" else start,
    )


def _minimizers(case: Case, seed: int) -> list[np.ndarray]:
    return [solution.W for solution in _several(case).solutions]


def _distance(case: Case, seed: int, directions: list[np.ndarray]) -> Measurement:
    run, found = _path(case, seed), _several(case)
    each = [distance_of_path(run, direction) for direction in directions]
    nearest = min(each, key=lambda measured: measured.value)
    details = {**nearest.details, "norm": found.value, "choices": found.combinations}
    return Measurement(nearest.value, 1, details)


def _where_all_win(case: Case, seed: int) -> list[np.ndarray]:
    """The solution of the problem in which every best token has to beat all that are not."""
    best, others = case.optimal.mask, case.tokens.mask & ~case.optimal.mask
    sequence, query, winner, loser = np.nonzero(best[..., :, None] & others[..., None, :])
    keys = case.tokens.keys
    left = keys[sequence, winner] - keys[sequence, loser]
    every = solve(MarginProblem(left, case.tokens.queries[sequence, query]), Frobenius())
    feasible = np.isfinite(every.value)
    return [every.W if feasible else drop_largest_multiplier(_several(case).solution)]


def _two_best_tokens(seed: int) -> Case:
    """Three sequences of seven tokens in the plane; the first two, right and above, are best."""
    random = np.random.default_rng([seed, 17])
    centers = np.array([[2.0, 0.0], [0.0, 2.0]] + 5 * [[-1.0, -1.0]])
    keys = centers + 0.5 * random.standard_normal((3, 7, 2))
    scores = np.where(np.arange(7) < 2, 1.0, 0.5 * random.random((3, 7)))
    return Case.from_scores(keys, scores, about=f"two best tokens, seed {seed}")


def _concave(seed: int) -> Case:
    """The same under a head that rises less and less up to the best tokens: u + 0.3 u (1 - u)."""
    case = _two_best_tokens(seed)
    return case.replace(head=ConcaveHead([1.3], 0.3), about=f"{case.about}, concave head")


def _of_units(seed: int) -> Case:
    """The same under two units, max(x, 0) + max(y, 0), with best tokens at (2, 0) and (0, 2)."""
    case, random = _two_best_tokens(seed), np.random.default_rng([seed, 29])
    values = random.uniform(-1.0, 0.9, (3, 7, 2))
    values[:, :2] = 2 * np.eye(2)
    keys, queries = case.tokens.keys, case.tokens.queries
    tokens = Tokens(keys, queries, np.ones(3), values=values)
    about = f"{case.about}, head of two units"
    return case.replace(tokens=tokens, head=ReLUHead(np.eye(2)), about=about)


def _peaked() -> Case:
    """A concave head that is highest at u = 0.8, between tokens."""
    case = _concave(0)
    return case.replace(head=ConcaveHead([1.6], 1.0))


def _mixing(case: Case) -> Check:
    best = case.optimal.mask
    found = case.once("mixing", lambda: measure_mixing(case.tokens, case.head, best))
    return Check(
        found.holds,
        f"attention that leaves the best tokens costs {found.least:.3g} to {found.largest:.3g} of "
        f"what leaves, and mixtures of them differ by {found.uneven:.1e} of a score, as sampled",
    )


MIXING = Assumption(
    "mixing",
    "Mixtures of best tokens are as good as these; all others cost in proportion to what leaves.",
    _mixing,
    _peaked,
)


def _enclosed() -> Case:
    keys = [[[0.5, 0], [0.4, 0], [1, 0], [0, 0]]]
    return Case.from_scores(keys, [[1.0, 1, 0, 0]])


SEVERAL_OPTIMAL_TOKENS_PATH = CLAIMS.claim(
    "several-optimal-tokens-path",
    "with several best tokens the path leads to the least norm by which one of them wins",
    statement="regularization path with several optimal tokens and nonlinear heads",
    assuming=(trains("p", "W"), SEVERAL_OPTIMAL_TOKENS, MIXING, SOME_CHOICE_FEASIBLE),
    contrast=Comparison(
        "1 - cos of the path with the nearest minimizer, at 10,000 norms of it",
        _distance,
        _minimizers,
        "1 - cos of the path with the solution by which every best token wins",
        _where_all_win,
        bound=1e-5,
        reason="the angle falls like c / R; the bound lets c be 45 norms, where 2 are usual",
    ),
    data=lambda seed: [
        *(_two_best_tokens(number) for number in range(seed, seed + 3)),
        *(_concave(number) for number in range(seed, seed + 3)),
        *(_of_units(number) for number in range(seed, seed + 3)),
    ],
    note="linear heads, whose scores tie, and two that are not linear, under the assumption that "
    "the proof takes, which is sampled; the published form of it may be another",
)
