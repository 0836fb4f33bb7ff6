"""How far matrices lie at most from ones that meet constraints exactly, for many at once.

With the constraints that W does not meet with room as rows A, and t what it lacks, the least D with
``A D = t`` has ``||D||^2 = t^T (A A^T)^{-1} t``, at most ``||t||^2`` over the smallest eigenvalue.
That one is no smaller than s, as ``A A^T - s I`` has a Cholesky factor in floating point but for
rounding that is known (Rump 2006, *Verification of positive definiteness*). It is a coarse
bound, good where W meets constraints to rounding and their rows are far from dependent.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.margin.batching.batches import inner_products
from attractor.margin.batching.scaling import ScaledConstraints

_ROUNDING = np.finfo(np.float64).eps / 2
_CLOSE = 1e-9
"""Slack, relative to ``||a|| ||b|| ||W||``, up to which a constraint is among the rows."""
_LEAST = 1e-6
"""Smallest eigenvalue for which this is tried."""


def nearby_radius(
    scaled: ScaledConstraints,
    places: Int[np.ndarray, "k"],
    W: Float[np.ndarray, "instances d e"],
    slack: Float[np.ndarray, "instances m"],
    doubt: Float[np.ndarray, "instances m"],
    curable: Bool[np.ndarray, "instances m"],
) -> Float[np.ndarray, "instances"]:
    """Bounds on the Frobenius distance from matrices that meet what scaling cannot cure.

    Args:
        scaled: The constraints of a batch.
        places: The instances to look at.
        W: Matrices.
        slack: ``a_j^T W b_j - c_j``.
        doubt: Bounds on its error.
        curable: The constraints that scaling up will meet.

    Returns:
        Infinite where nothing is known, and for other instances.
    """
    radius = np.full(len(W), np.inf)
    reach = scaled.norms[places] * np.sqrt(inner_products(W[places], W[places]))[:, None]
    bound = scaled.nonzero[places] & ~curable[places]
    held = bound & (scaled.equality[places] | (slack[places] <= _CLOSE * reach))
    lacking = np.where(
        scaled.equality[places], np.abs(slack[places]), np.maximum(-slack[places], 0.0)
    )
    lacking += doubt[places]
    counts = held.sum(-1)
    for count in np.unique(counts[counts > 0]):  # apart, so that none sees the size of others
        some = np.flatnonzero(counts == count)
        slots = np.nonzero(held[some])[1].reshape(len(some), count)
        row = np.arange(len(some))[:, None]
        left = scaled.left[places[some]][row, slots]
        right = scaled.right[places[some]][row, slots]
        least = _least_eigenvalue(left, right)
        size = np.sqrt((lacking[some][row, slots] ** 2).sum(-1)) * (1 + 1e-9)
        radius[places[some]] = size / np.sqrt(least) * (1 + 1e-9)
    spare = slack[places] - doubt[places] - radius[places, None] * scaled.norms[places]
    met = (~bound | held | (spare >= 0)).all(-1) & ~scaled.impossible[places].any(-1)
    radius[places[~met]] = np.inf
    return radius


def _least_eigenvalue(
    left: Float[np.ndarray, "k s d"], right: Float[np.ndarray, "k s e"]
) -> Float[np.ndarray, "k"]:
    """Lower bounds on the smallest eigenvalues of ``A A^T``; zero where there is none."""
    gram = left @ np.swapaxes(left, -1, -2)
    gram *= right @ np.swapaxes(right, -1, -2)
    k, s = gram.shape[:2]
    trace = np.einsum("kii->k", gram)
    # Of the entries, all of them at most one, and of the factorization.
    width = left.shape[-1] + right.shape[-1] + 4
    rounding = 4 * _ROUNDING * (s * width + (s + 2) * trace)
    goal = np.linalg.eigvalsh(gram)[:, 0] / 2
    least = np.zeros(k)
    for i in np.flatnonzero(goal > np.maximum(_LEAST, 4 * rounding)):
        try:
            np.linalg.cholesky(gram[i] - goal[i] * np.eye(s))
        except np.linalg.LinAlgError:
            continue
        least[i] = goal[i] - rounding[i]
    return least
