"""Margin solutions: their norms and ranks, those that keys and queries reach, several tokens."""

from __future__ import annotations

import numpy as np

from attractor.attention import ConcaveHead
from attractor.files.case import Case
from attractor.geometry import Frobenius, Geometry, Lp, Nuclear
from attractor.geometry.vectors import cosines
from attractor.margin import Decomposition, MarginProblem, Solution, decompose
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import FEASIBLE, SCORES_DIFFER, SEVERAL_ROWS, trains
from attractor.papers.ledger.claim import Assumption, Check, once
from attractor.papers.measurements.attended import attended
from attractor.papers.measurements.directions import NORMALIZED, trained
from attractor.papers.measurements.loss_gradients import flow
from attractor.papers.measurements.margin_ratios import margin_ratios
from attractor.papers.measurements.near_misses import drop_largest_multiplier
from attractor.papers.transformers_as_svms.claims.heads import CONCAVE_HEAD
from attractor.papers.transformers_as_svms.first_order import ranks_when_stopped
from attractor.papers.transformers_as_svms.random_data import SMALL, random_unit_tokens
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.tokens import Tokens

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_ROUNDING = 1e-12
_SAME = 1e-8
"""Relative excess up to which norms are the smallest."""


def _parallel(case: Case) -> Check:
    rows = case.tokens.mask.sum(-1) > 1
    values = np.linalg.svd(case.tokens.queries[rows], compute_uv=False)
    second = float(values[1] / values[0]) if len(values) > 1 and values[0] > 0 else 0.0
    return Check(
        second <= _ROUNDING,
        f"{int(rows.sum())} queries, their second singular value {second:.3g} of the first",
    )


PARALLEL_QUERIES = Assumption(
    "parallel queries",
    "There is one query, or all are multiples of one.",
    _parallel,
    lambda: random_unit_tokens(0),
)


def _excess(solution: Solution, W: np.ndarray) -> float:
    """Norm of a matrix, scaled to meet the constraints, over the least there can be, less 1."""
    problem = solution.problem
    margins, equal = problem.margins(W), problem.equality
    least = float((margins[~equal] / problem.bounds[~equal]).min(initial=np.inf))
    if least <= 0 or np.abs(margins[equal]).max(initial=0.0) > _SAME * least:
        return np.inf  # no multiple of it meets them
    return float(solution.geometry.norm(W)) / least / float(solution.dual_value) - 1


def _nuclear_excess(case: Case, seed: int, W: np.ndarray) -> Measurement:
    solution = case.solution(Nuclear())
    details = {
        "its Frobenius norm": float(np.linalg.norm(W)),
        "its nuclear norm": float(solution.geometry.norm(W)),
        "least nuclear norm, at least": float(solution.dual_value),
    }
    return Measurement(_excess(solution, W), len(solution.problem.bounds), details)


NORMS_COINCIDE = CLAIMS.claim(
    "norms-coincide",
    "for one query, or parallel ones, the Frobenius solution is the nuclear one as well",
    statement="cases where Frobenius and nuclear solutions are the same",
    assuming=(FEASIBLE, PARALLEL_QUERIES),
    contrast=Comparison(
        "nuclear norm of the Frobenius solution over the smallest possible, less 1",
        _nuclear_excess,
        lambda case, seed: case.solution().W,
        "that of the solution in the entrywise norm with p = 3/2",
        lambda case, seed: case.solution(Lp(1.5)).W,
        bound=_SAME,
        reason="the smallest norm is known from below to a relative duality gap of 1e-9",
    ),
    data=lambda seed: [
        *(random_unit_tokens(number, (1, 4, 4)) for number in range(seed, seed + 3)),
        *(_multiples_of_a_query(number) for number in range(seed, seed + 3)),
    ],
    note="W = w z^T has one singular value, so that both norms are ||w|| ||z||",
)


def _multiples_of_a_query(seed: int) -> Case:
    """Three sequences whose queries are multiples of one, of either sign."""
    case = random_unit_tokens(seed)
    tokens = case.tokens
    factors = np.array([1.0, -0.5, 2.0])
    queries = factors[:, None] * tokens.queries[0, 0]
    parallel = Tokens(tokens.keys, queries, tokens.labels)
    return case.replace(tokens=parallel, about=f"{case.about}, parallel queries")


def _orthogonal_pairs(case: Case) -> Check:
    problem = case.solution().problem
    if len(problem.bounds) < 2:
        return Check(False, "there are fewer than two constraints")
    largest = 0.0
    for vectors in (problem.left, problem.right):
        lengths = np.linalg.norm(vectors, axis=-1)
        if not lengths.all():
            return Check(False, "a query or a difference of keys is zero")
        cosines = vectors @ vectors.T / np.outer(lengths, lengths)
        largest = max(largest, float(np.abs(cosines - np.eye(len(vectors))).max()))
    return Check(largest <= _ROUNDING, f"largest cosine between two of them {largest:.3g}")


ORTHOGONAL_PAIRS = Assumption(
    "orthogonal pairs",
    "There are several constraints, with orthogonal queries and orthogonal key differences.",
    _orthogonal_pairs,
    lambda: random_unit_tokens(0, (2, 2, 2)),
)


def _larger_excess(case: Case, seed: int, matrices: tuple[np.ndarray, np.ndarray]) -> Measurement:
    solution = case.solution(Nuclear())
    found = [_excess(solution, W) for W in matrices]
    details = {
        "of each": found,
        "singular values": [np.linalg.svd(W, compute_uv=False).tolist() for W in matrices],
        "least nuclear norm, at least": float(solution.dual_value),
    }
    return Measurement(max(found), 2, details)


def _of_full_rank_and_rank_one(
    case: Case, seed: int, first: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """The Frobenius solution D, and the matrix of rank one with the same diagonal.

    In the bases of key differences and queries D is diagonal, and the other is that of the entries
    ``sqrt(D_ii D_jj)``, here with the first row times a number and the first column divided by it.
    """
    solution = case.solution()
    problem = solution.problem
    left, right = (np.linalg.norm(a, axis=-1) for a in (problem.left, problem.right))
    roots = np.sqrt(problem.bounds / (left * right))
    factors = np.where(np.arange(len(roots)) == 0, first, 1.0)
    rows, columns = factors * roots / left, roots / factors / right
    return solution.W, np.outer(rows @ problem.left, columns @ problem.right)


def _axes(seed: int, count: int = 2) -> Case:
    """Sequences of two tokens, one at zero, whose other tokens and queries are orthogonal."""
    random = np.random.default_rng([seed, 43])
    turn, other = (np.linalg.qr(random.standard_normal((count, count)))[0] for _ in range(2))
    lengths = np.exp(random.standard_normal(count) / 2) if seed else np.ones(count)
    keys = np.zeros((count, 2, count))
    keys[:, 0] = lengths[:, None] * (turn if seed else np.eye(count))
    return Case.from_scores(
        keys,
        np.tile([1.0, 0.0], (count, 1)),
        queries=other if seed else np.eye(count),
        parameterization="KQ",
        about=f"{count} orthogonal tokens and queries, turn {seed}",
    )


NUCLEAR_SOLUTIONS_NOT_UNIQUE = CLAIMS.claim(
    "nuclear-solutions-not-unique",
    "with orthogonal tokens and queries, solutions of rank one and of full rank share the norm",
    statement="nuclear norm problem of keys and queries, whose solutions need not be unique",
    assuming=(FEASIBLE, ORTHOGONAL_PAIRS),
    contrast=Comparison(
        "larger nuclear norm of the Frobenius solution and of one of rank one over the smallest, "
        "less 1",
        _larger_excess,
        _of_full_rank_and_rank_one,
        "that with the first row of the latter half as long again, the first column as much less",
        lambda case, seed: _of_full_rank_and_rank_one(case, seed, 1.5),
        bound=_SAME,
        reason="the smallest norm is known from below to a relative duality gap of 1e-9",
    ),
    data=lambda seed: [_axes(0), _axes(0, 3), _axes(seed + 1), _axes(seed + 2)],
    note="in bases of the tokens and queries, any positive semidefinite matrix with the diagonal "
    "of the Frobenius solution is one: [[1, c], [c, 1]] with |c| <= 1 for unit vectors",
)


_STOPPED = 1e-5


def _full(case: Case, seed: int = 0) -> int:
    """The smaller of the number of rows that choose and the dimensions."""
    tokens = case.tokens
    rows = int((tokens.mask.sum(-1) > 1).sum())
    return min(rows, tokens.key_dimension, tokens.query_dimension)


def _beyond(case: Case, seed: int, rank: int) -> Measurement:
    """The largest singular value past a rank, relative to the first, of both solutions."""
    details, worst = {}, 0.0
    for geometry in (Frobenius(), Nuclear()):
        solution = case.solution(geometry)
        values = np.linalg.svd(solution.W, compute_uv=False)
        details[f"certified rank, {geometry.name}"] = int(solution.rank)
        worst = max(worst, float(values[rank:].max(initial=0.0) / values[0]))
    spare = min(case.tokens.key_dimension, case.tokens.query_dimension) - _full(case)
    return Measurement(worst, max(spare, 0), details)


def _off(case: Case, seed: int, rank: int) -> Measurement:
    """The difference of the nuclear solution's certified rank from one, over the most possible.

    Only where there is one solution: of several others may have other ranks.
    """
    solution, full = case.solution(Nuclear()), _full(case)
    evidence = solution.rank_evidence
    assert evidence is not None
    problem = solution.problem
    details = {
        "certified rank": int(evidence.rank),
        "nuclear solution": str(solution.uniqueness),
        "rank of the Frobenius solution": int(case.solution().rank),
        "most there can be": full,
    }
    if not problem.equality.any():
        stopped = MarginProblem(problem.left[None], problem.right[None])
        words = f"singular values above 1e-7 at an accuracy of {_STOPPED:g}"
        details[words] = int(ranks_when_stopped(stopped, [_STOPPED])[0, 0])
    certain = evidence.rank >= 0 and len(problem.bounds) > 0 and solution.uniqueness == "unique"
    return Measurement(abs(evidence.rank - rank) / full, int(certain), details)


RANK = CLAIMS.claim(
    "rank",
    "Frobenius and nuclear solutions have at most the rank n, the number of queries",
    statement="rank of the solutions of the margin problems",
    assuming=(FEASIBLE,),
    contrast=Comparison(
        "largest singular value past the n-th, relative to the first",
        _beyond,
        _full,
        "largest singular value past the (n - 1)-th, relative to the first",
        lambda case, seed: _full(case) - 1,
        bound=1e-9,
        reason="rounding; solutions lie in the span of the queries",
    ),
    data=lambda seed: [
        random_unit_tokens(number, size)
        for number in range(seed, seed + 4)
        for size in ((3, 4, 4), (4, 4, 6), (6, 8, 10))
    ],
    note="nothing is claimed where the dimension is at most n",
)

NEARLY_FULL_RANK = CLAIMS.claim(
    "nearly-full-rank",
    "nuclear solutions of random data have nearly the full rank min(n, d)",
    statement="experiment: rank of the solutions of the margin problems",
    assuming=(SEVERAL_ROWS, FEASIBLE),
    contrast=Comparison(
        "difference of the nuclear solution's certified rank from min(n, d), over min(n, d)",
        _off,
        _full,
        "difference of it from half of that, over min(n, d)",
        lambda case, seed: _full(case) // 2,
        bound=0.1,
        reason="published means are 0.91 to 0.99 of min(n, d) from d = 5 on",
    ),
    data=lambda seed: [
        random_unit_tokens(15),
        *(
            random_unit_tokens(number, size)
            for size in ((5, 5, 10), (10, 5, 10), (15, 5, 15))
            for number in range(seed, seed + 3)
        ),
    ],
    note="fails: the certified rank of such data is 2 to 5, however large n and d; the published "
    "curve counts singular values above 1e-7 of solutions that are accurate to 1e-5 or so",
)


_STEPS = 1000
_STARTS = 8
_PLAIN = f"{NORMALIZED},per_factor=true"
_DECAYED = f"{_PLAIN},eps=2.220446049250313e-16,weight_decay=4.440892098500626e-16"


def _correlation(case: Case, seed: int, geometry: Geometry) -> Measurement:
    """Mean correlation at the end with the solutions of the tokens attended to most."""
    run = trained(case, seed, steps=_STEPS, optimizer=_PLAIN, seeds=_STARTS, record=[_STEPS])
    correlations, ratios = [], []
    for W in run.W()[0]:
        solution = case.solution(geometry, attended(case, W))
        if np.isfinite(solution.value):
            correlations.append(float(cosines(W, solution.W)))
            ratios.append(float(margin_ratios(W, solution)))
    details = {
        "least correlation": min(correlations, default=np.nan),
        f"mean margin ratio in the {geometry.name} norm": float(np.mean(ratios or [np.nan])),
        "starts": len(run.W()[0]),
        "at tokens that have no solution": len(run.W()[0]) - len(correlations),
    }
    return Measurement(float(np.mean(correlations or [np.nan])), len(correlations), details)


def _as_published(seed: int, *, decay: bool, size: tuple[int, int, int] = (6, 8, 10)) -> Case:
    case = random_unit_tokens(seed, size, "KQ", optimizer=_DECAYED if decay else _PLAIN)
    how = "with a weight decay of 2.2e-16" if decay else "without weight decay"
    return case.replace(about=f"{case.about}, {how}")


KEY_QUERY_TRAINING = CLAIMS.claim(
    "key-query-training",
    "1,000 normalized steps on (K, Q) reach the nuclear solution to a correlation of .99",
    statement="experiment: gradient descent on keys and queries",
    assuming=(
        trains("KQ"),
        SCORES_DIFFER.broken_by(
            lambda: Case.from_scores(
                [[[1.0, 0], [0, 1]]], [[1.0, 1.0]], queries=[[1.0, 0]], parameterization="KQ"
            )
        ),
    ),
    contrast=Comparison(
        "mean correlation with the nuclear solutions of the tokens reached",
        _correlation,
        lambda *_: Nuclear(),
        "mean correlation with the Frobenius solutions of the tokens reached",
        lambda *_: Frobenius(),
        bound=0.99,
        reason="the published mean is .995",
        sense=">=",
    ),
    data=lambda seed: [
        *(_as_published(number, decay=True) for number in range(seed, seed + 4)),
        *(_as_published(number, decay=False) for number in range(seed, seed + 4)),
    ],
    holding=lambda: _as_published(0, decay=True, size=(4, 4, 6)),
    note="fails without the penalty of 2.2e-16 (|K|^2 + |Q|^2) in the published code, by which the "
    "norm converges near 130; without it the margin ratio is higher, the correlation lower",
)


_LOG_TIMES = np.array([12.0, 24.0])


@once
def _end(case: Case) -> tuple[np.ndarray, np.ndarray, Decomposition] | None:
    """The end of the flow from zero, its late change, and both parts that its attention fixes.

    None where the flow could not be followed.
    """
    half, end = flow(case, _LOG_TIMES)
    if not np.isfinite(end).all():
        return None
    parts = decompose(case.tokens, case.tokens.scores(end), logarithmic=True)
    return end, end - half, parts


def _distance(case: Case, seed: int, direction: np.ndarray | None) -> Measurement:
    found = _end(case)
    if found is None:
        return Measurement(np.nan, 0, {"gradient flow": "could not be followed to its end"})
    end, late, parts = found
    kept = parts.selection.mask.sum(-1)
    details = {
        "tokens kept": kept.ravel().tolist(),
        "ambiguous rows": int(parts.ambiguous.sum()),
        "norm": float(np.linalg.norm(end)),
        "1 - correlation of W with both parts": float(1 - parts.correlation(end)),
        "1 - correlation of W with the direction alone": float(
            1 - cosines(end, parts.directional.W)
        ),
    }
    if parts.ambiguous.any() or parts.all_kept:
        return Measurement(np.nan, 0, details)
    return Measurement(float(1 - cosines(late, direction)), 1, details)


def _direction(case: Case) -> Solution | None:
    """The margin solution for the kept tokens, None without a flow."""
    found = _end(case)
    return None if found is None else found[2].directional


def _right(case: Case, seed: int) -> np.ndarray | None:
    solution = _direction(case)
    return None if solution is None else solution.W


def _one_fewer(case: Case, seed: int) -> np.ndarray | None:
    solution = _direction(case)
    return None if solution is None else drop_largest_multiplier(solution)


def _penalized(seed: int, penalty: float, size: tuple[int, int, int] = SMALL) -> Case:
    case = random_unit_tokens(seed, size)
    tokens = Tokens(case.tokens.keys, case.tokens.queries, np.ones(size[0]))
    head = ConcaveHead(np.asarray(case.head.weight), penalty)
    about = f"{case.about}, labels 1, concave head with lambda = {penalty:g}"
    return case.replace(tokens=tokens, head=head, about=about)


SEVERAL_TOKENS = CLAIMS.claim(
    "several-tokens",
    "where several tokens are kept, W grows along the margin solution that keeps them equal",
    statement="generalized margin problem of attention that keeps several tokens",
    assuming=(trains("W"), CONCAVE_HEAD),
    contrast=Comparison(
        "1 - cos of what the flow adds late with the solution that keeps those tokens equal",
        _distance,
        _right,
        "1 - cos of it with the same solution for one support token fewer",
        _one_fewer,
        bound=0.02,
        reason="from t = e^12 to e^24 in units of the data; the beginning fades with the logarithm",
    ),
    data=lambda seed: [
        _penalized(number, penalty) for number in range(seed, seed + 5) for penalty in (0.3, 0.5)
    ],
    note="an empirical claim; measured on the gradient flow, which needs none of the published "
    "filter, as the kept weights settle that normalized steps leave going to and fro",
)
