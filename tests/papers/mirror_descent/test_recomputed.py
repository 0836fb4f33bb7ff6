"""Two claims recomputed from the definitions, by programs that share nothing but the data.

The divergence at the end of mirror descent, by a loop in NumPy with a softmax of its own and a
max-margin solution by SciPy; the bound of the divergence by the distance, in many digits.
"""

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from attractor.papers import get_claim
from attractor.papers.mirror_descent.claims._examples import with_exponent
from attractor.papers.mirror_descent.training import length, starts

LOCAL = get_claim("mirror-descent/local-convergence")
DIVERGENCE = get_claim("mirror-descent/divergence-bounds-distance")


def arrays_of(case):
    """Keys, queries, token scores and the tokens selected: all that is taken from the case."""
    tokens = case.tokens
    keys, queries = np.array(tokens.keys), np.array(tokens.queries)[:, 0]
    scores = tokens.labels[:, :1] * (keys @ np.array(case.head.weight))
    return keys, queries, scores, case.selection.mask[:, 0].argmax(-1)


def constraints(keys, queries, chosen):
    """Rows ``vec((x_chosen - x_t) z^T)`` of the margin problem."""
    rows = []
    for tokens, query, own in zip(keys, queries, chosen, strict=True):
        for other in set(range(len(tokens))) - {own}:
            rows.append(np.outer(tokens[own] - tokens[other], query).ravel())
    return np.array(rows)


def margin_solution(keys, queries, chosen, p):
    """The matrix of least ``sum |W_ij|^p`` with all margins at least one, by SLSQP.

    It starts from one that meets them, by least squares.
    """
    A = constraints(keys, queries, chosen)
    start = np.linalg.lstsq(A, np.ones(len(A)), rcond=None)[0]
    start /= (A @ start).min()
    found = minimize(
        lambda w: (np.abs(w) ** p).sum() / p,
        start,
        jac=lambda w: np.sign(w) * np.abs(w) ** (p - 1),
        constraints={"type": "ineq", "fun": lambda w: A @ w - 1, "jac": lambda w: A},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    assert (A @ found.x).min() > 1 - 1e-9
    return found.x


def divergence(solution, W, p):
    """``1 - <grad psi(b), a>`` of the directions a of the solution and b of W."""
    a, b = (one / (np.abs(one) ** p).sum() ** (1 / p) for one in (solution, W))
    return 1 - (np.sign(b) * np.abs(b) ** (p - 1) * a).sum()


def direction_of_gradient(W, keys, queries, scores):
    """The gradient of the logistic loss, of dual norm anything: the largest term counts as one.

    Probabilities are kept as logarithms, and the gap of the mean score from the best token of a
    row is summed over the others, so that nothing cancels when attention has all but settled.
    """
    raised, terms = [], []
    for tokens, query, score in zip(keys, queries, scores, strict=True):
        logits = tokens @ W @ query
        own = logits.argmax()
        logs = logits - logits.max()
        logs -= np.log(np.exp(logs).sum())
        probability = np.exp(logs)
        mean = (probability * score).sum()
        slope = -1 / (1 + np.exp(mean))  # of log(1 + exp(-m))
        below = (probability * (score[own] - score)).sum()  # of the mean from that of the best
        for t in set(range(len(tokens))) - {own}:
            raised.append(logs[t])
            terms.append(
                slope * (score[t] - score[own] + below) * np.outer(tokens[t] - tokens[own], query)
            )
    weights = np.exp(np.array(raised) - max(raised))
    return np.tensordot(weights, np.array(terms), 1)


def end_of_descent(W, keys, queries, scores, p, rate, steps):
    q = p / (p - 1)
    for _ in range(steps):
        gradient = direction_of_gradient(W, keys, queries, scores)
        size = np.abs(gradient).max()
        gradient /= size * ((np.abs(gradient) / size) ** q).sum() ** (1 / q)
        image = np.sign(W) * np.abs(W) ** (p - 1) - rate * gradient
        W = np.sign(image) * np.abs(image) ** (1 / (p - 1))
    return W


@pytest.mark.slow
@pytest.mark.parametrize(("place", "p", "rate"), [(0, 1.75, 0.1), (2, 2.0, 0.1)])
def test_divergence_at_the_end_of_mirror_descent(place, p, rate):
    """To four digits: the loop does the same steps, and SLSQP solves to about 1e-7."""
    case = LOCAL.data(0)[place]
    keys, queries, scores, chosen = arrays_of(case)
    solution = margin_solution(keys, queries, chosen, p).reshape(keys.shape[-1], -1)
    ends = [
        divergence(
            solution,
            end_of_descent(W, keys, queries, scores, p, rate, int(length(case))),
            p,
        )
        for W in starts(case, 0)[0]
    ]
    assert max(ends) == pytest.approx(LOCAL.measured(case, 0).value, rel=1e-4)


def in_many_digits(array):
    return np.vectorize(mpmath.mpf, otypes=[object])(array)


def share_of_bound(a, b, p):
    """The bound over the divergence of two directions, both made so in many digits."""
    a, b = (one / (abs(one) ** p).sum() ** (1 / mpmath.mpf(p)) for one in (a, b))
    there = 1 - (np.vectorize(mpmath.sign)(b) * abs(b) ** (p - 1) * a).sum()
    p = mpmath.mpf(p)
    if p <= 2:
        return (p - 1) / 2 * ((a - b) ** 2).sum() / there
    return (abs(a - b) ** p).sum() / (p * 2**p) / there


@pytest.mark.parametrize("p", [1.1, 1.75, 3.0])
def test_share_of_the_bound_in_the_divergence(p):
    """To six digits, those of the solution by SLSQP; divergences go down to 1e-18."""
    case = with_exponent(DIVERGENCE.example(), p)
    keys, queries, scores, _ = arrays_of(case)
    solution = margin_solution(keys, queries, scores.argmax(-1), p)
    drawn = np.random.default_rng([0, 71]).standard_normal((20, len(solution)))
    turns = [*(drawn / np.abs(drawn).max(1, keepdims=True)), *np.eye(16), *-np.eye(16)]
    two = np.repeat([1.0, 0.0], [2, 14])
    largest = 0
    with mpmath.workdps(60):
        for base in (solution, two):
            a = in_many_digits(base)
            a /= (abs(a) ** p).sum() ** (1 / mpmath.mpf(p))
            near = [
                a + size * in_many_digits(turn)
                for size in (1e-6, 1e-3, 0.1, 1.0, 10.0)
                for turn in turns
            ]
            largest = max(largest, *(share_of_bound(a, b, p) for b in [*near, -a]))
    measured = DIVERGENCE.measured(case, 0)
    assert float(largest) == pytest.approx(measured.value, rel=1e-6)
    assert largest <= 1
