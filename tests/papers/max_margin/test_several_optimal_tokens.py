"""The path of a nonlinear head with several best tokens, by brute force over the circle."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from attractor.margin import solve_several
from attractor.papers.max_margin.claims.paths import SEVERAL_OPTIMAL_TOKENS_PATH


def log_excess(angle, radius, keys, scores):
    """``log(L - L_best)`` for logistic loss and the head ``psi(u) = u - 0.3 u (1 - u)``.

    With mass ``delta`` lost by the best tokens, of score 1, the head gives ``psi(1 - delta)``,
    which is ``1 - delta (1.3 - 0.3 delta)``.
    """
    direction = np.stack([np.cos(angle), np.sin(angle)], -1)
    logits = radius * np.einsum("ntd,...d->...nt", keys, direction)
    lost = logsumexp(logits, axis=-1, b=1 - scores) - logsumexp(logits, axis=-1)
    short = lost + np.log(1.3 - 0.3 * np.exp(lost))
    rise = np.log1p(np.expm1(np.exp(short)) / (1 + np.e))
    with np.errstate(divide="ignore"):
        logs = np.where(short < -30, short - np.log(1 + np.e), np.log(rise))
    return logsumexp(logs, axis=-1)


def path_angle(radius, keys, scores):
    grid = np.linspace(-np.pi, np.pi, 2001)
    best = grid[np.argmin(log_excess(grid, radius, keys, scores))]
    around = (best - 0.01, best + 0.01)
    found = minimize_scalar(
        log_excess, bounds=around, args=(radius, keys, scores), method="bounded",
        options={"xatol": 1e-12},
    )  # fmt: skip
    return found.x


@pytest.mark.parametrize("seed", range(3))
def test_an_increasing_head_leads_to_the_same_direction(seed):
    case = SEVERAL_OPTIMAL_TOKENS_PATH.data(0)[seed]
    solution = solve_several(case.tokens, case.optimal).solution
    expected = np.arctan2(solution.W[1, 0], solution.W[0, 0])
    scores = case.scores[:, 0]
    angles = [
        abs(path_angle(radius * solution.value, case.tokens.keys, scores) - expected)
        for radius in (10, 100, 1000)
    ]
    assert angles[2] < 4e-3  # the angle falls like c / R, c about 2
    assert angles[0] > angles[1] > angles[2]
