"""Heads that are not linear: concave ones, and one hidden layer of ReLU."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attractor.attention import ConcaveHead, LinearHead, ReLUHead
from attractor.files.case import Case
from attractor.margin.selection import Selection
from attractor.papers.claim import Claims, Comparison, Measurement
from attractor.papers.hypotheses import ONE_ROW, SCORES_DIFFER, UNIQUE_OPTIMUM, trains
from attractor.papers.ledger.claim import Assumption, Check
from attractor.papers.max_margin.claims.objective import one_second_best
from attractor.papers.measurements.directions import random_starts, trained
from attractor.papers.transformers_as_svms.random_data import random_unit_tokens
from attractor.papers.transformers_as_svms.several_tokens_data import relu_data_of_positive_labels
from attractor.results.paper import TRANSFORMERS_AS_SVMS
from attractor.tokens import Tokens

CLAIMS = Claims(TRANSFORMERS_AS_SVMS, Case)

_ROUNDING = 1e-12


CONCAVE_HEAD = Assumption[Case](
    "concave head",
    "The head is v^T x - lambda ||x||^2.",
    lambda case: Check(isinstance(case.head, ConcaveHead), f"the head is {case.head.name}"),
    lambda: Case(*_orthogonal(0), "W"),
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
    lambda: Case(_orthogonal(0)[0], ConcaveHead(np.asarray(_orthogonal(0)[1].weight), 100.0), "W"),
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


def _orthogonal(seed: int, length: int = 10) -> tuple[Tokens, LinearHead]:
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
        tokens, head = _orthogonal(number)
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


_STEPS = 10_000
_LENGTHS = (0.1, 1.0)
"""Norms of starts; those of the published experiment are near one."""
_KEPT = 1e-3
"""Smallest weight that counts as kept."""
_CONCENTRATIONS = (0.03, 0.3, 3.0)
_EACH = 1000
_RELU_ROUNDING = 1e-9
_STATEMENT = "heads with which attention selects a single token"
_SIZES = ((3, 4, 4), (3, 4, 6), (3, 4, 8), (3, 4, 10))


def _convex(case: Case) -> Check:
    if not isinstance(case.head, ReLUHead):
        return Check(False, f"the head is {case.head.name}")
    least = float(np.min(case.head.weight))
    return Check(least >= 0, f"the smallest weight of a unit is {least:g}")


CONVEX_RELU_HEAD = Assumption[Case](
    "convex ReLU head",
    "The head is c^T max(V^T x, 0) with c >= 0.",
    _convex,
    lambda: random_unit_tokens(0),
)


def _positive_labels(case: Case) -> Check:
    rows = case.tokens.mask.sum(-1) > 1
    labels = np.zeros(rows.shape) if case.tokens.labels is None else case.tokens.labels
    other = int((labels != 1)[rows].sum())
    return Check(other == 0, f"{other} of {int(rows.sum())} rows have other labels than 1")


POSITIVE_LABELS = Assumption[Case](
    "positive labels",
    "The labels of all rows are 1.",
    _positive_labels,
    lambda: _with_labels(_with_relu_head(1), np.array([1.0, -1.0, 1.0])),
)


def _weightings(length: int, seed: int) -> Float[np.ndarray, "weighting token"]:
    """Random weights of several tokens, from nearly one token alone to nearly all alike."""
    random = np.random.default_rng([seed, 73])
    drawn = np.concatenate(
        [random.dirichlet(np.full(length, each), _EACH) for each in _CONCENTRATIONS]
    )
    return drawn[drawn.max(-1) <= 1 - _RELU_ROUNDING]


def _not_below(case: Case, seed: int, selection: Selection) -> Measurement:
    """The number of weightings of several tokens that the head likes as well as a selection."""
    labels = case.tokens.labels
    assert labels is not None  # they are ones
    found, checked = 0, 0
    for i, k in np.argwhere(case.tokens.mask.sum(-1) > 1):
        values = case.tokens.values[i][case.tokens.mask[i, k]]
        weights = _weightings(len(values), seed)
        kept = case.scores[i, k][selection.mask[i, k]].min()
        scores = labels[i, k] * np.asarray(case.head.predict(weights @ values))
        found += int((scores >= kept).sum())
        checked += len(weights)
    return Measurement(float(found), checked)


def _counts(case: Case, seed: int) -> Int[np.ndarray, "start row"]:
    """How many tokens training keeps in every row that has a choice."""
    starts = random_starts(case, seed, lengths=_LENGTHS)
    count = 1 if starts is None else starts["W"].shape[1]
    run = trained(case, seed, steps=_STEPS, initial=starts, seeds=count)
    mask = case.tokens.mask
    scores = np.where(mask, case.tokens.scores(run.W()[0]), -np.inf)
    logarithms = scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)
    return (logarithms >= np.log(_KEPT)).sum(-1)[:, mask.sum(-1) > 1]


def _off(case: Case, seed: int, kept: int) -> Measurement:
    """The largest difference of the number of tokens kept from a number."""
    counts = _counts(case, seed)
    details = {
        "starts": len(counts),
        "starts from which some row keeps several": int((counts > 1).any(-1).sum()),
        "most tokens kept": int(counts.max(initial=0)),
    }
    return Measurement(float(np.abs(counts - kept).max(initial=0)), counts.size, details)


def _with_labels(case: Case, labels: np.ndarray) -> Case:
    tokens = case.tokens
    labeled = Tokens(tokens.keys, tokens.queries, labels, tokens.mask, tokens.values)
    return case.replace(tokens=labeled)


def _most_kept_of_negative_labels(case: Case, seed: int) -> int:
    labels = case.tokens.labels
    assert labels is not None  # they are ones
    return int(_counts(_with_labels(case, -labels), seed).max(initial=0))


def _with_relu_head(seed: int, size: tuple[int, int, int] = _SIZES[0]) -> Case:
    tokens, head = relu_data_of_positive_labels(*size, seed)
    words = "random unit tokens ({}, {}, {}) with a random ReLU head, seed {}".format(*size, seed)
    return Case(tokens, head, "W", about=words)


def _published(seed: int) -> list[Case]:
    """Data sets of the sizes of the published experiment, with labels 1 alone."""
    numbers = range(2 * seed + 1, 2 * seed + 3)
    return [_with_relu_head(number, size) for size in _SIZES for number in numbers]


def _inactive(seed: int) -> Case:
    """The first of many draws of one sequence on whose average no unit of the head is active."""
    number = 100 * seed + 1
    while True:
        tokens, head = relu_data_of_positive_labels(1, 4, 4, number)
        if (tokens.values[0].mean(0) @ head.hidden < 0).all():
            about = f"one sequence, inactive on its average, seed {number}"
            return Case(tokens, head, "W", about=about)
        number += 1


def inactive_pair() -> Case:
    """Two tokens with a head of one unit, which is active on one of them but not on their average.

    From ``W = 0`` the gradient is zero, though attention on the first token alone would be better.
    """
    about = "two tokens with one unit, inactive on their average"
    return _one_unit([1.0, 0], [-2, 0]).replace(initial=np.zeros((2, 2)), about=about)


def _one_unit(*tokens: list[float]) -> Case:
    """One sequence of tokens in the plane under a head of one unit, max(x, 0)."""
    rows = Tokens([tokens], [[1.0, 0]], np.ones(1))
    return Case(rows, ReLUHead(np.array([[1.0], [0.0]])), "W")


def _equal_scores() -> Case:
    """Two tokens on neither of which a unit is active."""
    return _one_unit([-1.0, 0], [-2, 0])


def _tied_scores() -> Case:
    """Two tokens of one score, between which all weightings have that score too."""
    return _one_unit([1.0, 0], [1.0, 1.0], [-1.0, 0])


RELU_HEAD_BEST_ATTENTION = CLAIMS.claim(
    "relu-head-best-attention",
    "with a ReLU head and labels 1, the best token of a row beats any average of several",
    statement=_STATEMENT,
    assuming=(CONVEX_RELU_HEAD, POSITIVE_LABELS, UNIQUE_OPTIMUM.broken_by(_tied_scores)),
    contrast=Comparison(
        "weightings of several tokens whose prediction is not below that of the best token",
        _not_below,
        lambda case, seed: case.optimal,
        "weightings whose prediction is not below that of one second best token",
        one_second_best,
        bound=0,
        reason="a count, of 3,000 random weightings a row; not one is allowed",
    ),
    data=_published,
    note="the head is convex; where two tokens tie, averages of them may tie with them",
)

RELU_HEAD_TRAINING = CLAIMS.claim(
    "relu-head-training",
    "with a ReLU head and labels 1, training keeps one token of every sequence",
    statement=f"{_STATEMENT}, read for training",
    assuming=(
        trains("W"),
        CONVEX_RELU_HEAD,
        POSITIVE_LABELS,
        SCORES_DIFFER.broken_by(_equal_scores),
    ),
    contrast=Comparison(
        "largest difference of the number of tokens that a row keeps from one",
        _off,
        lambda *_: 1,
        "largest difference from the most that a row keeps with labels -1",
        _most_kept_of_negative_labels,
        bound=0,
        reason="a count, of tokens with a weight of 1e-3 or more after 10,000 normalized steps",
    ),
    data=lambda seed: [*_published(seed), _inactive(seed), inactive_pair()],
    note="fails where training starts with no active unit in any row: the gradient is zero there, "
    "and all tokens stay; such a row beside others goes where these move it, at whatever rate. "
    "A row that ends at a token on which no unit is active has no part in the direction",
)
