"""Cases in which Frobenius and nuclear solutions coincide, or nuclear ones are not unique."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.geometry import Frobenius, Geometry, Lp, Nuclear
from attractor.papers.assumption import Assumption, Check
from attractor.papers.claim import Claims, Contrast, Measurement
from attractor.papers.hypotheses import FEASIBLE
from attractor.papers.paper import TRANSFORMERS_AS_SVMS
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.tokens import Tokens

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_ROUNDING = 1e-12


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


def _apart(case: Case, geometry: Geometry) -> Measurement:
    """Relative excess of the Frobenius solution over the least norm in another geometry."""
    ours, other = case.solution(), case.solution(geometry)
    excess = float(geometry.norm(ours.W)) / float(other.dual_value) - 1
    details = {
        "Frobenius norm of its solution": float(ours.value),
        f"{geometry.name} norm of that": float(geometry.norm(ours.W)),
        f"least {geometry.name} norm, at least": float(other.dual_value),
    }
    return Measurement(excess, len(ours.problem.bounds), details)


NORMS_COINCIDE = CLAIMS.claim(
    "norms-coincide",
    "for one query, or parallel ones, the Frobenius solution is the nuclear one as well",
    statement="cases where Frobenius and nuclear solutions are the same",
    assuming=(FEASIBLE, PARALLEL_QUERIES),
    contrast=Contrast(
        "nuclear norm of the Frobenius solution over the smallest possible, less 1",
        lambda case, seed: _apart(case, Nuclear()),
        "its entrywise norm with p = 3/2 over the smallest possible, less 1",
        lambda case, seed: _apart(case, Lp(1.5)),
        bound=1e-8,
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


def _other_solution(case: Case, geometry: Geometry) -> Measurement:
    """Distance of another solution from the one found; NaN where it fails verification."""
    solution = case.solution(geometry)
    other = solution.other_solution
    least = float((solution.problem.margins(other) / solution.problem.bounds).min())
    excess = float(geometry.norm(other)) / float(solution.value) - 1
    apart = float(np.linalg.norm(other - solution.W) / np.linalg.norm(solution.W))
    details = {
        "norm": float(solution.value),
        "relative difference of its norm": excess,
        "its smallest margin": least,
        "distance relative to the solution": apart,
    }
    verified = least >= 1 - 1e-8 and abs(excess) <= 1e-8
    return Measurement(apart if verified else np.nan, 1, details)


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
    "with orthogonal tokens and queries, solutions of several ranks share the nuclear norm",
    statement="nuclear norm problem of keys and queries, whose solutions need not be unique",
    assuming=(FEASIBLE, ORTHOGONAL_PAIRS),
    contrast=Contrast(
        "distance of a further nuclear solution, relative to the solution",
        lambda case, seed: _other_solution(case, Nuclear()),
        "distance of a further Frobenius solution, relative to the solution",
        lambda case, seed: _other_solution(case, Frobenius()),
        bound=0.1,
        reason="the solutions fill a convex set; two of it a tenth apart are not rounding",
        sense=">=",
    ),
    data=lambda seed: [_axes(0), _axes(0, 3), _axes(seed + 1), _axes(seed + 2)],
    note="in bases of the tokens and queries, any positive semidefinite matrix with the diagonal "
    "of the Frobenius solution is one: [[1, c], [c, 1]] with |c| <= 1 for unit vectors",
)
