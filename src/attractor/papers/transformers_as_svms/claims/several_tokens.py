"""Attention that keeps several tokens: a finite part, and a margin solution for the rest."""

from __future__ import annotations

import numpy as np

from attractor.attention import ConcaveHead
from attractor.files.case import Case
from attractor.geometry.vectors import cosines
from attractor.margin import Decomposition, Solution, decompose
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import trains
from attractor.papers.ledger.claim import once
from attractor.papers.measurements.loss_gradients import flow
from attractor.papers.measurements.near_misses import drop_largest_multiplier
from attractor.papers.transformers_as_svms.claims.concave_head import CONCAVE_HEAD
from attractor.papers.transformers_as_svms.random_data import SMALL, random_unit_tokens
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.tokens import Tokens

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

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


def _case(seed: int, penalty: float, size: tuple[int, int, int] = SMALL) -> Case:
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
        _case(number, penalty) for number in range(seed, seed + 5) for penalty in (0.3, 0.5)
    ],
    note="an empirical claim; measured on the gradient flow, which needs none of the published "
    "filter, as the kept weights settle that normalized steps leave going to and fro",
)
