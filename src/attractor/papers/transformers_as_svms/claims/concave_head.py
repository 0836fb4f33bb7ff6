"""A concave head makes attention keep several tokens."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.attention import ConcaveHead, LinearHead
from attractor.files.case import Case
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import ONE_ROW
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.tokens import Tokens

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_ROUNDING = 1e-12


CONCAVE_HEAD = Assumption[Case](
    "concave head",
    "The head is v^T x - lambda ||x||^2.",
    lambda case: Check(isinstance(case.head, ConcaveHead), f"the head is {case.head.name}"),
    lambda: Case(*_drawn(0), "W"),
)


def _row(case: Case) -> tuple[int, int]:
    """Sequence and query of the row that chooses."""
    i, k = np.argwhere(case.tokens.mask.sum(-1) > 1)[0]
    return int(i), int(k)


def _positive_label(case: Case) -> Check:
    labels = case.tokens.labels
    label = 0.0 if labels is None else float(labels[_row(case)])
    return Check(label == 1, f"the label is {label:g}")


POSITIVE_LABEL = Assumption(
    "positive label",
    "The label of the row is 1.",
    _positive_label,
    lambda: _changed(labels=-np.ones(1)),
)


def _orthonormal(case: Case) -> Check:
    i, k = _row(case)
    own = case.tokens.values[i][case.tokens.mask[i, k]]
    off = float(np.abs(own @ own.T - np.eye(len(own))).max())
    return Check(off <= _ROUNDING, f"inner products of tokens differ from the unit's by {off:.3g}")


ORTHONORMAL_TOKENS = Assumption(
    "orthonormal tokens",
    "The tokens of the row are orthonormal.",
    _orthonormal,
    lambda: _changed(keys=random_unit_tokens(0, (1, 10, 10)).tokens.keys),
)


def _sorted_scores(case: Case) -> tuple[Float[np.ndarray, "token"], float]:
    """Linear scores ``v^T x_t`` from the highest on, and lambda."""
    i, k = _row(case)
    scores = case.tokens.values[i] @ np.asarray(case.head.weight)
    head: Any = case.head
    return np.sort(scores[case.tokens.mask[i, k]])[::-1], float(head.penalty)


def _most(case: Case) -> int | None:
    """The least tau from 2 on with ``g_1 < lambda < tau g_tau / 2``, or None."""
    scores, penalty = _sorted_scores(case)
    gaps = -np.diff(scores)
    if penalty <= gaps[0]:
        return None
    fits = [tau for tau in range(2, len(scores)) if penalty < tau * gaps[tau - 1] / 2]
    return min(fits, default=None)


def _penalty_between(case: Case) -> Check:
    scores, penalty = _sorted_scores(case)
    gaps = ", ".join(f"{gap:.3g}" for gap in -np.diff(scores))
    return Check(_most(case) is not None, f"lambda = {penalty:g}, score gaps {gaps}")


PENALTY_BETWEEN_GAPS = Assumption(
    "penalty between gaps",
    "With score gaps g_1, g_2, ... there is tau > 1 with g_1 < lambda < tau g_tau / 2.",
    _penalty_between,
    lambda: Case(_drawn(0)[0], ConcaveHead(np.asarray(_drawn(0)[1].weight), 100.0), "W"),
)


def kept_by_projection(scores: Float[np.ndarray, "token"], penalty: float) -> int:
    """Number of positive weights of the best attention, in exact rational arithmetic.

    The maximum of ``gamma^T s - lambda ||s||^2`` over the simplex is the Euclidean projection of
    ``gamma / (2 lambda)`` on it, which keeps the k largest scores for the largest k with
    ``k gamma_k > gamma_1 + ... + gamma_k - 2 lambda``.

    Args:
        scores: gamma, from the highest on.
        penalty: lambda > 0.
    """
    exact = [Fraction(float(score)) for score in scores]
    slack = 2 * Fraction(float(penalty))
    return max(k for k in range(1, len(exact) + 1) if k * exact[k - 1] > sum(exact[:k]) - slack)


def _outside(case: Case, seed: int, ends: tuple[int, int]) -> Measurement:
    """The number of tokens by which the best attention misses a range, given by its ends."""
    (least, most), kept = ends, kept_by_projection(*_sorted_scores(case))
    details = {"tokens of the best attention": kept, "tokens claimed": f"{least} to {most}"}
    return Measurement(float(max(least - kept, kept - most, 0)), 1, details)


def _two_to_tau(case: Case, seed: int) -> tuple[int, int]:
    most = _most(case)
    assert most is not None  # as lambda lies between the gaps
    return 2, most


def _without_tau(case: Case, seed: int) -> tuple[int, int]:
    least, most = _two_to_tau(case, seed)
    return least, most - 1


def _drawn(seed: int, length: int = 10) -> tuple[Tokens, LinearHead]:
    """Orthonormal tokens, a random unit query, a random unit head, label 1."""
    random = np.random.default_rng([seed, 47])
    keys = np.linalg.qr(random.standard_normal((length, length)))[0]
    query, v = random.standard_normal((2, length))
    tokens = Tokens(keys[None], query[None] / np.linalg.norm(query), np.ones(1))
    return tokens, LinearHead(v / np.linalg.norm(v))


def _between_gaps(seed: int) -> Case:
    """The first of many random draws that has a lambda between its score gaps."""
    number = 100 * seed
    while True:
        tokens, head = _drawn(number)
        v = np.asarray(head.weight)
        gaps = -np.diff(np.sort(tokens.values[0] @ v)[::-1])
        highest = float((np.arange(2, len(gaps) + 1) * gaps[1:] / 2).max())
        if gaps[0] < highest:
            penalty = float(gaps[0] + highest) / 2
            about = f"orthonormal tokens, lambda = {penalty:.3g}, draw {number}"
            return Case(tokens, ConcaveHead(v, penalty), "W", about=about)
        number += 1


def _changed(**arrays: np.ndarray) -> Case:
    case = _between_gaps(0)
    tokens = case.tokens
    found = {"keys": tokens.keys, "queries": tokens.queries, "labels": tokens.labels} | arrays
    return case.replace(tokens=Tokens(**found))


CONCAVE_HEAD_KEEPS_SEVERAL = CLAIMS.claim(
    "concave-head",
    "with the head v^T x - lambda |x|^2, lambda between score gaps, 2 to tau tokens stay",
    statement="heads that make attention select several tokens",
    assuming=(ONE_ROW, CONCAVE_HEAD, POSITIVE_LABEL, ORTHONORMAL_TOKENS, PENALTY_BETWEEN_GAPS),
    contrast=Comparison(
        "tokens by which the best attention misses the range 2 to tau",
        _outside,
        _two_to_tau,
        "tokens by which it misses the range 2 to tau - 1",
        _without_tau,
        bound=0,
        reason="a count, of the Euclidean projection on the simplex in rational arithmetic",
    ),
    data=lambda seed: [_between_gaps(number) for number in range(seed, seed + 20)],
    holding=lambda: _between_gaps(1),
    note="for the correlation loss -y h and one sequence; lambda > g_1 / 2 is what it takes to "
    "keep two, so that the condition on g_1 is twice as strong as needed",
    exchange="one",
)
