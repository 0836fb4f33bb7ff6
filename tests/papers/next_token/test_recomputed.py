"""Measured values of claims, computed again from the definitions by another program.

All that it shares with the package are the sentences: it has a softmax, a gradient, a loop of
training and a solver of margin problems of its own, in NumPy, SciPy and mpmath.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import nnls

from attractor.papers import Outcome, examine, get_claim
from attractor.papers.next_token.data import grammar, missing_relations, random_orders

GAP, STEP = 10, 1 / 16
"""Of the claims: the gap that stage one ends with, and lengths of steps in norms of solutions."""


def samples_of(corpus):
    """Contexts with their labels and shares, each once."""
    found = {}
    for start, end, count in zip(corpus.starts[:-1], corpus.starts[1:], corpus.counts, strict=True):
        sentence = corpus.tokens[start:end].tolist()
        for length in range(1 if corpus.every_prefix else len(sentence) - 1, len(sentence)):
            key = (tuple(sentence[:length]), sentence[length])
            found[key] = found.get(key, 0) + count
    total = sum(found.values())
    return [(list(context), label, count / total) for (context, label), count in found.items()]


def collocation_of(samples):
    return {context[0]: label for context, label, _ in samples if len(context) == 1}


def relations_of(samples):
    """``(query, better, other)`` of every context."""
    explains = {label: token for token, label in collocation_of(samples).items()}
    return sorted({
        (context[-1], explains[label], other)
        for context, label, _ in samples
        for other in context
        if other != explains[label]
    })  # fmt: skip


def margin_solution(relations, size):
    """The scores of smallest norm with margins of one: least distance by non-negative squares."""
    rows = np.zeros((len(relations), size, size))
    for row, (query, better, other) in zip(rows, relations, strict=True):
        row[better, query], row[other, query] = 1, -1
    A = rows.reshape(len(rows), -1)
    stacked = np.vstack([A.T, np.ones(len(A))])
    target = np.append(np.zeros(size * size), 1.0)
    weights, _ = nnls(stacked, target, maxiter=10_000)
    residual = stacked @ weights - target
    return (-residual[:-1] / residual[-1]).reshape(size, size)


def feed_forward(follows, size, gap):
    """The layer after stage one from zero: ``gap`` times its solution, columns ``e_n(x) - 1/V``."""
    W_ov = np.full((size, size), -1 / size)
    for token, label in follows.items():
        W_ov[label, token] += 1
    return gap * W_ov


def descent(samples, W_ov, W):
    """Minus the gradient of the cross-entropy in the scores ``W[token, query]``."""
    found = np.zeros_like(W)
    for context, label, share in samples:
        scores = W[context, context[-1]]
        phi = np.exp(scores - scores.max())
        phi /= phi.sum()
        logits = W_ov[:, context] @ phi
        predicted = np.exp(logits - logits.max())
        predicted /= predicted.sum()
        predicted[label] = 0
        predicted[label] = -predicted.sum()  # the difference from one keeps its digits
        gains = W_ov[:, context].T @ predicted
        pulls = phi * (phi[None, :] * (gains[:, None] - gains[None, :])).sum(1)
        np.subtract.at(found[:, context[-1]], context, share * pulls)
    return found


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(grammar, id="grammar"),
        pytest.param(lambda: random_orders(0), id="random orders", marks=pytest.mark.slow),
    ],
)
def test_the_distance_of_attention_from_its_direction(data):
    case = data()
    size, samples = case.corpus.vocabulary_size, samples_of(case.corpus)
    solution = margin_solution(relations_of(samples), size)
    norm = np.linalg.norm(solution)
    rate = STEP * norm
    longest = max(len(context) for context, *_ in samples)
    steps = math.ceil(1.25 * math.ceil(8 * longest * norm**2 / rate))
    W_ov = feed_forward(collocation_of(samples), size, GAP)
    W = np.zeros((size, size))
    for _ in range(steps):
        direction = descent(samples, W_ov, W)
        W += rate * direction / np.linalg.norm(direction)
    distance = np.sum((W / np.linalg.norm(W) - solution / norm) ** 2) / 2  # 1 - cos
    found = examine(get_claim("next-token/attention-direction"), case)
    assert found.outcome is Outcome.HOLDS
    # both are rounding away from the same path, and 1 - cos is the square of a distance
    assert found.measured.value == pytest.approx(distance, rel=1e-6)


def test_the_least_cosine_of_descent_where_a_query_lags_behind():
    case = grammar()
    size, samples = case.corpus.vocabulary_size, samples_of(case.corpus)
    relations = relations_of(samples)
    solution, W_ov = margin_solution(relations, size), feed_forward(collocation_of(samples), 4, GAP)
    ratios = []
    with mpmath.workdps(60):  # attention on other tokens is about exp(-50)
        for lagging in {query for query, *_ in relations}:
            factors = [7 if query == lagging else 50 for query in range(size)]
            cosine, optimal = in_many_digits(samples, W_ov, solution, factors)
            ratios.append(float(2 * mpmath.mpf(np.linalg.norm(solution)) * cosine / optimal))
    found = examine(get_claim("next-token/descent-along-attention-solution"), case)
    assert found.outcome is Outcome.HOLDS
    assert found.measured.value == pytest.approx(min(ratios), rel=1e-9)


def in_many_digits(samples, W_ov, solution, factors):
    """The cosine of descent with the solution, and the least attention on an optimal token."""
    size = len(solution)
    follows = collocation_of(samples)
    total = mpmath.matrix(size, size)
    least = mpmath.mpf(1)
    for context, label, share in samples:
        query = context[-1]
        weights = [mpmath.exp(factors[query] * mpmath.mpf(solution[t, query])) for t in context]
        phi = [weight / sum(weights) for weight in weights]
        least = min(least, sum(p for p, t in zip(phi, context, strict=True) if follows[t] == label))
        logits = [
            sum(p * mpmath.mpf(W_ov[v, t]) for p, t in zip(phi, context, strict=True))
            for v in range(size)
        ]
        odds = [mpmath.exp(logit) for logit in logits]
        missed = [odd / sum(odds) - (v == label) for v, odd in enumerate(odds)]
        gains = [sum(missed[v] * mpmath.mpf(W_ov[v, t]) for v in range(size)) for t in context]
        mean = sum(p * gain for p, gain in zip(phi, gains, strict=True))
        for p, gain, token in zip(phi, gains, context, strict=True):
            total[token, query] -= share * p * (gain - mean)
    pairs = [(total[i, j], mpmath.mpf(solution[i, j])) for i in range(size) for j in range(size)]
    lengths = [mpmath.sqrt(sum(pair[side] ** 2 for pair in pairs)) for side in (0, 1)]
    return sum(a * b for a, b in pairs) / (lengths[0] * lengths[1]), least


def test_the_distance_of_the_closed_form_where_relations_are_missing():
    case = missing_relations()
    size = case.corpus.vocabulary_size
    relations = relations_of(samples_of(case.corpus))
    solution, stated = margin_solution(relations, size), np.zeros((size, size))
    for query in {query for query, *_ in relations}:
        better = {b for q, b, _ in relations if q == query}
        others = {o for q, _, o in relations if q == query}
        count = len(better) + len(others)
        stated[list(better), query] = len(others) / count
        stated[list(others), query] = -len(better) / count
    distance = np.linalg.norm(stated - solution) / np.linalg.norm(solution)
    found = examine(get_claim("next-token/closed-form"), case)
    assert found.outcome is Outcome.FAILS
    assert found.measured.value == pytest.approx(distance, rel=1e-9)
