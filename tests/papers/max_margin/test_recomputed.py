"""Two claims recomputed from the definitions, by programs that share nothing but the data."""

import mpmath
import numpy as np
from scipy.optimize import nnls

from attractor.papers import get_claim


def margin_solution(keys, best):
    """Least-norm p with ``(k_best - k_t)^T p >= 1``: Lawson and Hanson's distance programming."""
    rows = [
        keys[i, best] - keys[i, t]
        for i in range(len(keys))
        for t in range(keys.shape[1])
        if t != best
    ]
    A = np.array(rows)
    E = np.vstack([A.T, np.ones(len(A))])
    target = np.append(np.zeros(A.shape[1]), 1.0)
    u, _ = nnls(E, target)
    rest = E @ u - target
    return -rest[:-1] / rest[-1], -u / rest[-1], A


def test_the_loss_along_the_solution_in_a_thousand_digits():
    """max-margin/least-loss-at-infinity: the rate of log(L(R p) - L_best) in R."""
    claim = get_claim("max-margin/least-loss-at-infinity")
    for case in claim.data(0):
        keys, scores = case.tokens.keys, case.tokens.values[..., 0] * np.ravel(case.head.weight)
        best = int(scores[0].argmax())
        assert (scores.argmax(-1) == best).all()
        p, _, _ = margin_solution(keys, best)
        measured = claim.measured(case, 0)
        with mpmath.workdps(1200):
            logs = [mpmath.log(excess(keys, scores, R * p)) for R in (1000, 2000)]
            rate = float((logs[1] - logs[0]) / 1000)
        np.testing.assert_allclose(measured.details["rate"], rate, rtol=1e-9)
        np.testing.assert_allclose(measured.value, abs(rate + 1), atol=1e-9)


def excess(keys, scores, p):
    """``mean_i log(1 + exp(-sum_t s_t gamma_t)) - log(1 + exp(-gamma_best))``."""
    total = mpmath.mpf(0)
    for rows, gammas in zip(keys, scores, strict=True):
        gammas = [mpmath.mpf(float(gamma)) for gamma in gammas]
        weights = [mpmath.exp(mpmath.fdot(map(float, row), map(float, p))) for row in rows]
        mean = mpmath.fdot(weights, gammas) / mpmath.fsum(weights)
        total += mpmath.log1p(mpmath.exp(-mean)) - mpmath.log1p(mpmath.exp(-max(gammas)))
    return total / len(keys)


def test_offsets_of_normalized_descent_by_a_loop_in_numpy():
    """max-margin/finite-offset: where normalized steps run beside the ray of the solution."""
    claim = get_claim("max-margin/finite-offset")
    case = claim.data(0)[2]
    keys, scores = case.tokens.keys, case.tokens.values[..., 0] * np.ravel(case.head.weight)
    keys, scores = keys[:, ::-1], scores[:, ::-1]  # the best token first
    p_mm, multipliers, A = margin_solution(keys, 0)
    gaps = (scores[:, :1] - scores)[:, 1:]
    apart = (keys[:, :1] - keys[:, 1:]).reshape(*gaps.shape, -1)
    p = np.zeros(keys.shape[-1])
    for _ in range(4000):
        # Terms |l'| s_t (mean gamma - gamma_t) (k_0 - k_t), over the largest s_t.
        logits = -(apart @ p)
        log_all = np.logaddexp.reduce(np.append(np.zeros((len(keys), 1)), logits, 1), axis=1)
        log_s = logits - log_all[:, None]
        s = np.exp(log_s)
        short = (s * gaps).sum(1)
        slope = 1 / (1 + np.exp(scores[:, 0] - short))
        weights = np.exp(log_s - log_s.max()) * slope[:, None] * (gaps - short[:, None])
        step = np.einsum("it,itd->d", weights, apart)
        p = p + 0.1 * step / np.linalg.norm(step)
    beside = p - (p @ p_mm) / (p_mm @ p_mm) * p_mm
    margins = A @ beside
    held = multipliers > 1e-9
    predicted = np.log((1 / (1 + np.exp(scores[:, :1])) * gaps).ravel()[held] / multipliers[held])
    # The law gives margins up to what the ray shares: it is orthogonal to the solution.
    predicted -= multipliers[held] @ predicted / multipliers[held].sum()
    np.testing.assert_allclose(margins[held], predicted, atol=1e-8)
    measured = claim.measured(case, 0)
    np.testing.assert_allclose(
        np.sort(measured.details["reached"]), np.sort(margins[held]), atol=1e-8
    )
