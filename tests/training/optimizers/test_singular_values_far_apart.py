"""Steps along singular vectors, where sequences differ in score gaps, against 260 digits.

A sequence whose selected token is ahead by a score gap m has a gradient of about exp(-m). In one
array of floating point, the gradient of a sequence that is 36 further ahead than another is below
a rounding of the other's, and what depends on it alone is lost: docs/accuracy.md.
"""

import mpmath
import numpy as np
import pytest

import attractor as at

STEPS, RATE, DIGITS = 12, 0.1, 260


def problem(gap):
    """Two sequences of two tokens, and a start at which the second is ahead by more."""
    rng = np.random.default_rng(3)
    keys, queries, v = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 3)), rng.normal(size=3)
    differences = keys[:, 0] - keys[:, 1]
    maps = np.einsum("nd,ne->nde", differences, queries)
    start = np.linalg.lstsq(maps.reshape(2, 9), np.array([0.0, gap]), rcond=None)[0].reshape(3, 3)
    tokens = at.Tokens(keys, queries, np.sign(differences @ v))
    return tokens, at.LinearHead(v), start, maps


def gradient(tokens, head, W):
    """The gradient of the logistic loss, by its formula."""
    G, v = mpmath.zeros(3), [mpmath.mpf(x) for x in head.weight.tolist()]
    queries, labels = tokens.queries.reshape(2, 3), tokens.labels.ravel()
    for keys, z, y in zip(tokens.keys.tolist(), queries.tolist(), labels.tolist(), strict=True):
        best, other = ([mpmath.mpf(x) for x in key] for key in keys)
        ahead = mpmath.matrix([a - b for a, b in zip(best, other, strict=True)])
        score = (ahead.T * W * mpmath.matrix(z))[0]
        p, q = 1 / (1 + mpmath.exp(-score)), 1 / (1 + mpmath.exp(score))
        gain = y * mpmath.fdot(ahead, v)
        margin = y * mpmath.fdot(other, v) + p * gain
        G -= (p * q * gain / (2 * (1 + mpmath.exp(margin)))) * ahead * mpmath.matrix(z).T
    return G


def direction(G, p):
    """``U (s / ||s||_q)^(q - 1) V^T``, without what 260 digits cannot tell from zero."""
    U, values, V = mpmath.svd_r(G)
    kept = [s if s > values[0] * mpmath.mpf(10) ** -200 else mpmath.mpf(0) for s in values]
    q = mpmath.mpf(1) if p == np.inf else mpmath.mpf(p) / (p - 1)
    norm = mpmath.fsum(s**q for s in kept) ** (1 / q)
    return U * mpmath.diag([(s / norm) ** (q - 1) if s else s for s in kept]) * V


def loop(tokens, head, start, p, momentum=None):
    """Training in 260 digits; with a momentum that looks ahead, as Muon's does."""
    with mpmath.workdps(DIGITS):
        W, memory = mpmath.matrix(start.tolist()), mpmath.zeros(3)
        b = mpmath.mpf(momentum or 0)
        for t in range(1, STEPS + 1):
            G = gradient(tokens, head, W)
            memory = b * memory + (1 - b) * G
            ahead = b * memory / (1 - b ** (t + 1)) + (1 - b) * G / (1 - b**t) if b else G
            W -= mpmath.mpf(RATE) * direction(ahead, p)
        return np.array(W.tolist(), dtype=float)


OPTIMIZERS = {
    "spectral descent": (at.spectral_descent(RATE), np.inf, None),
    "Muon": (at.muon(RATE, method="exact"), np.inf, 0.95),
    "Schatten-3": (at.steepest_descent(RATE, "schatten_3"), 3, None),
    "Schatten-8": (at.steepest_descent(RATE, "schatten_8"), 8, None),
    "Schatten-1.5": (at.steepest_descent(RATE, "schatten_1.5"), 1.5, None),
}


@pytest.mark.parametrize("gap", [5, 20, 30, 40, 60, 200])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_how_exact_steps_are_at_a_difference_of_score_gaps(name, gap):
    optimizer, p, momentum = OPTIMIZERS[name]
    tokens, head, start, maps = problem(gap)
    W = at.train(tokens, head, optimizer, steps=STEPS, initial=start).W().reshape(3, 3)
    exact = loop(tokens, head, start, p, momentum)
    error = np.linalg.norm(W - exact) / np.linalg.norm(exact - start)
    # The second singular value is exp(-gap) of the first and known to a rounding of the first. It
    # counts by its power 1 / (p - 1): as much as the first in the spectral norm.
    known, weight = 2.0**-52 * np.exp(gap), np.exp(-gap / (p - 1))
    rounding = 1e-15 + 2.0**-52 * np.linalg.norm(start)
    assert error < 30 * (rounding + weight * min(known, 1))
    if p == np.inf and gap >= 60:
        # The second sequence is moved by the steps of the first alone; in 260 digits as much.
        moved, wanted = (np.einsum("nde,de->n", maps, end - start) for end in (W, exact))
        assert error > 0.5 and moved[1] < 0 < wanted[1]
        assert moved[0] == pytest.approx(wanted[0], rel=1e-9)
