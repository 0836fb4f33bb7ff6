"""The rank of margin solutions."""

from __future__ import annotations

import numpy as np

from attractor.files.case import Case
from attractor.geometry import Frobenius, Nuclear
from attractor.margin import MarginProblem
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import FEASIBLE, SEVERAL_ROWS
from attractor.papers.transformers_as_svms.first_order import ranks_when_stopped
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.results.paper import TRANSFORMERS_AS_SVMS

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

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
