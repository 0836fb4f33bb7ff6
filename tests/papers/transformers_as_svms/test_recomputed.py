"""Measured values of claims, computed again from the definitions by programs of their own.

Nothing is shared with the library but the arrays of the data: softmax, gradients, descent, flow and
margin problems are written here, in NumPy, SciPy and cvxpy.
"""

import cvxpy
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize

from attractor.papers import examine, get_claim

STEPS = 1000
DECAY = float(np.finfo(float).eps)
"""The factor of ``|K|^2 + |Q|^2`` in the published loss, and what is added to norms there."""


def arrays(case):
    """Keys, queries, labels and head of a data set of one query a sequence."""
    tokens = case.tokens
    return tokens.keys, tokens.queries[:, 0], tokens.labels[:, 0], np.asarray(case.head.weight)


def gradient(X, z, gamma, W):
    """Gradient of the mean logistic loss of linear scores, times a factor whose log comes with it.

    The weight of a token is ``s_t sum_u s_u (gamma_t - gamma_u)``, without cancellation.
    """
    logits = np.einsum("itd,de,ie->it", X, W, z)
    logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    pairs = logs[:, :, None] + logs[:, None] - np.where(np.eye(X.shape[1]), np.inf, 0)
    largest = pairs.max()
    differences = gamma[:, :, None] - gamma[:, None]
    pulls = (np.exp(pairs - largest) * differences).sum(-1)
    slopes = -1 / (1 + np.exp((np.exp(logs) * gamma).sum(-1))) / len(X)
    return np.einsum("i,it,itd,ie->de", slopes, pulls, X, z), -largest


def margin_rows(X, z, selected):
    """A row ``(x_selected - x_t) z^T`` for every other token of every sequence."""
    return np.array(
        [
            np.outer(own[best] - own[t], query).ravel()
            for own, query, best in zip(X, z, selected, strict=True)
            for t in range(len(own))
            if t != best
        ]
    )


def least_nuclear_norm(X, z, selected):
    """``argmin ||W||_*`` with margins of one, by an interior-point solver of semidefinite cones."""
    W = cvxpy.Variable((X.shape[-1], z.shape[-1]))
    margins = margin_rows(X, z, selected) @ cvxpy.vec(W, order="C")
    cvxpy.Problem(cvxpy.Minimize(cvxpy.normNuc(W)), [margins >= 1]).solve(solver="CLARABEL")
    return W.value


def cosine(A, B):
    return float((A * B).sum() / np.linalg.norm(A) / np.linalg.norm(B))


def test_ranks_of_nuclear_solutions():
    claim = get_claim("transformers-as-svms/nearly-full-rank")
    for case in claim.data(0):
        X, z, y, v = arrays(case)
        W = least_nuclear_norm(X, z, (y[:, None] * (X @ v)).argmax(-1))
        values = np.linalg.svd(W, compute_uv=False) / np.linalg.norm(W, 2)
        rank = int((values > 1e-5).sum())
        # The solver is accurate to 1e-8 or so, and leaves no singular value near the cut.
        assert values[:rank].min() > 1e-3 and values[rank:].max(initial=0) < 1e-6
        assert rank <= len(X)
        measured = examine(claim, case).measured
        assert measured.details["certified rank"] == rank
        assert measured.value == pytest.approx(abs(rank / min(len(X), X.shape[-1]) - 1), abs=1e-15)


@pytest.mark.parametrize("number", [0, 1, 4, 5])
def test_training_of_keys_and_queries_with_decay_and_without(number):
    claim = get_claim("transformers-as-svms/key-query-training")
    case = claim.data(0)[number]
    decay = DECAY if number < 4 else 0.0
    X, z, y, v = arrays(case)
    d = X.shape[-1]
    K, Q = start = np.random.default_rng(number).uniform(-(d**-0.5), d**-0.5, (2, d, d))
    gamma = y[:, None] * (X @ v)
    for _ in range(STEPS):
        G, log_factor = gradient(X, z, gamma, K @ Q.T)
        scale = decay * np.exp(log_factor) if decay else 0.0
        steps = G @ Q + 2 * scale * K, G.T @ K + 2 * scale * Q
        K, Q = (
            factor - 0.1 * step / (np.linalg.norm(step) + scale)
            for factor, step in zip((K, Q), steps, strict=True)
        )
    W = K @ Q.T
    reached = np.einsum("itd,de,ie->it", X, W, z).argmax(-1)
    found = cosine(W, least_nuclear_norm(X, z, reached))
    started = case.replace(initial=dict(zip("KQ", start, strict=True)))
    # With decay steps settle, and the solver is good to 1e-6. Without it they go to and fro, and a
    # start that is changed by 1e-12 changes the correlation by up to 1e-4.
    tolerance = 1e-6 if decay else 2e-4
    assert examine(claim, started).measured.value == pytest.approx(found, abs=tolerance)


def flow_from_zero(X, z, y, v, penalty, log_times):
    """The gradient flow of W under the head ``v^T x - lambda |x|^2``, in the logarithm of time."""

    def velocity(log_time, flat):
        W = flat.reshape(X.shape[-1], z.shape[-1])
        logits = np.einsum("itd,de,ie->it", X, W, z)
        s = np.exp(logits - logits.max(1, keepdims=True))
        s /= s.sum(1, keepdims=True)
        outputs = np.einsum("it,itd->id", s, X)
        f = y * (outputs @ v - penalty * (outputs**2).sum(-1))
        gamma = y[:, None] * np.einsum("itd,id->it", X, v - 2 * penalty * outputs)
        pulls = s * (gamma - (s * gamma).sum(1, keepdims=True))
        ascent = np.einsum("i,it,itd,ie->de", 1 / (1 + np.exp(f)), pulls, X, z) / len(X)
        return np.exp(log_time) * ascent.ravel()

    found = scipy.integrate.solve_ivp(
        velocity,
        (-8.0, log_times[-1]),
        np.zeros(X.shape[-1] * z.shape[-1]),
        method="LSODA",
        t_eval=log_times,
        rtol=1e-8,
        atol=1e-8,
    )
    assert found.success
    return found.y.T.reshape(-1, X.shape[-1], z.shape[-1])


def least_norm_of_kept(X, z, kept):
    """``argmin |W|_F`` with equal scores of kept tokens and margins of one before the others."""
    equal, above = [], []
    for own, query, mask in zip(X, z, kept, strict=True):
        first = int(mask.argmax())
        for t in set(range(len(own))) - {first}:
            row = np.outer(own[first] - own[t], query).ravel()
            (equal if mask[t] else above).append(row)
    equal, above = np.reshape(equal, (len(equal), -1)), np.array(above)
    # A least distance problem on the null space of the equalities, by non-negative least squares.
    basis = scipy.linalg.null_space(equal) if len(equal) else np.eye(above.shape[1])
    rows = above @ basis
    columns = np.vstack([rows.T, np.ones(len(rows))])
    target = np.append(np.zeros(rows.shape[1]), 1.0)
    residual = target - columns @ scipy.optimize.nnls(columns, target)[0]
    return (basis @ (-residual[:-1] / residual[-1])).reshape(X.shape[-1], z.shape[-1])


@pytest.mark.parametrize("number", [2, 3, 8, 9])
def test_late_growth_where_several_tokens_are_kept(number):
    claim = get_claim("transformers-as-svms/several-tokens")
    case = claim.data(0)[number]
    X, z, y, v = arrays(case)
    # Times are in units of the longest key, less the mean of its row, and the longest query.
    longest = [np.linalg.norm(x, axis=-1).max() for x in (X - X.mean(1, keepdims=True), z)]
    times = np.array([12.0, 24.0]) - 2 * np.log(np.prod(longest))
    half, end = flow_from_zero(X, z, y, v, float(case.head.penalty), times)
    logits = np.einsum("itd,de,ie->it", X, end, z)
    logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    kept = logs > np.log(1e-4)
    assert (kept.sum(-1) > 1).any()
    found = 1 - cosine(end - half, least_norm_of_kept(X, z, kept))
    # The flow is stiff; the library follows it to 1e-7 a step, and from another start in time.
    assert examine(claim, case).measured.value == pytest.approx(found, rel=1e-4)
