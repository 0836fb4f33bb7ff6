"""How far key and query matrices are from stationary points of their own margin problem."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

from attractor.geometry import Lp
from attractor.margin import MarginProblem

_NEAR = 0.2
"""Constraints whose margin exceeds the least by no more than this part of it may push."""


def factor_residual(
    K: Float[np.ndarray, "d m"], Q: Float[np.ndarray, "e m"], problem: MarginProblem, p: float
) -> float:
    """Distance of the potential's gradient from the cone of the constraints' gradients.

        min over lambda >= 0 of  || grad psi(K, Q) - sum_j lambda_j grad (a_j^T K Q^T b_j) ||_F
                                 -----------------------------------------------------------
                                                  || grad psi(K, Q) ||_F

    with ``psi = (sum |K|^p + sum |Q|^p) / p``, over the constraints near the least margin. It is
    zero where the direction of (K, Q) is that of a stationary point of

        min  sum |K|^p + sum |Q|^p   subject to   a_j^T K Q^T b_j >= 1  for every j.

    Args:
        K: Keys.
        Q: Queries.
        problem: The constraints on ``K Q^T``, of one data set.
        p: The exponent, more than 1.

    Returns:
        The relative distance, from 0 to 1; NaN where the least margin is not positive.
    """
    margins = problem.margins(K @ Q.T)
    if not margins.min() > 0:
        return float("nan")
    near = margins <= (1 + _NEAR) * margins.min()
    left, right = problem.left[near], problem.right[near]
    of_K = np.einsum("jd,jm->jdm", left, right @ Q)
    of_Q = np.einsum("je,jm->jem", right, left @ K)
    gradients = np.concatenate([of_K.reshape(len(left), -1), of_Q.reshape(len(left), -1)], axis=1)
    size = max(np.abs(K).max(), np.abs(Q).max())
    image = Lp(p).mirror_map(np.concatenate([K.ravel(), Q.ravel()])[:, None] / size)[:, 0]
    _, distance = nnls(gradients.T / np.abs(gradients).max(), image)
    return float(distance / np.linalg.norm(image))
