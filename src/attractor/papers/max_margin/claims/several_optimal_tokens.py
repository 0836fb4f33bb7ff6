"""The path where several tokens of a row share the highest score, under any head."""

from __future__ import annotations

import numpy as np

from attractor.attention import ConcaveHead, ReLUHead
from attractor.attention.mixing import measure_mixing
from attractor.files.case import Case
from attractor.geometry import Frobenius
from attractor.margin import MarginProblem, SeveralSolution, solve, solve_several
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import SEVERAL_OPTIMAL_TOKENS, trains
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.measurements.near_misses import drop_largest_multiplier
from attractor.papers.measurements.paths import distance_of_path, path
from attractor.results.paper import MAX_MARGIN
from attractor.tokens import Tokens
from attractor.training import Trajectory

CLAIMS = Claims(MAX_MARGIN, Case)


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
