"""Cases in which Frobenius and nuclear solutions coincide, or nuclear ones are not unique."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.geometry import Lp, Nuclear
from attractor.margin import Solution
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import FEASIBLE
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
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
