"""The posterior mean of a point that is seen with noise, and heads that return it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from attractor.papers.measures import attended_means
from attractor.prompts import AttentionHead, HeadCase
from attractor_further.gaussian_mixtures.denoising_data import variances
from attractor_further.gaussian_mixtures.mixture_data import clusters
from attractor_further.gaussian_mixtures.quadrature import cluster_points
from attractor_further.shapes import Outputs

Points = Float[np.ndarray, "query d"]
"""Points as they are seen, which are the queries, or as they are returned."""


def posterior_mean(case: HeadCase, seen: Points) -> Points:
    """The mean of a point given what is seen of it: Bayes' rule for each cluster.

    Given the cluster ``k`` it is ``m_k + gamma^2 / (gamma^2 + xi^2) (z - m_k)``.
    """
    weights, means, _ = clusters(case)
    spread, noise = variances(case)
    total = spread + noise
    squares = ((seen[:, None] - means) ** 2).sum(-1)
    posterior = softmax(np.log(weights) - squares / (2 * total), axis=-1)
    return spread / total * seen + noise / total * posterior @ means


def size(case: HeadCase) -> float:
    """The root mean square length of seen points, which what heads return is compared with.

    The posterior mean itself may be zero, as where all that is seen is noise around one mean.
    """
    weights, means, covariances = clusters(case)
    squares = (means**2).sum(-1) + np.trace(covariances, axis1=1, axis2=2)
    return float(np.sqrt(weights @ squares))


def attention(case: HeadCase, head: AttentionHead, queries: Points) -> Outputs:
    """The output of a head, by quadrature over the law of seen points."""
    directions = queries @ np.asarray(head.score_matrix).T
    tokens = cluster_points(case, 48 if case.tokens.dimension < 3 else 40)
    return attended_means(tokens, directions) @ np.asarray(head.value_matrix).T


def two_heads(case: HeadCase) -> tuple[AttentionHead, AttentionHead]:
    """Two heads whose outputs add up to the mean of a point given what is seen of it.

    In coordinates along the half difference ``delta`` of the means, along their middle ``mu``,
    which is orthogonal to it as norms are equal, and across both: the gates of the first head are
    those of the posterior, those of the second are constant. With ``x = xi^2 / (gamma^2 + xi^2)``,

        V_1 U_1 + V_2 U_2 = gamma^2 / (gamma^2 + xi^2)^2 I,    V_1 delta = x delta,
        V_1 mu + V_2 mu = x mu,    V_2 delta = 0.

    It takes two dimensions: a second head with constant gates carries what is along ``delta`` in
    a coordinate across it.
    """
    _, (first, second), _ = clusters(case)
    spread, noise = variances(case)
    total = spread + noise
    share = noise / total
    basis = _basis((first - second) / 2, (first + second) / 2)
    d = len(first)
    U_1, V_1, U_2, V_2 = np.zeros((4, d, d))
    U_1[0, 0], V_1[0, 0] = 1 / total, share
    U_1[1, 0] = 1 / total
    V_1[0, 1], V_2[0, 1] = (spread - noise) / total, (noise - spread) / total
    across = np.arange(1, d)
    V_2[across, across] = share
    U_1[1, 1] = U_2[1, 1] = spread / (noise * total)
    U_2[across, across] = spread / (noise * total)
    heads = ((U_1, V_1), (U_2, V_2))
    turned = [AttentionHead(basis @ U @ basis.T, basis @ V @ basis.T) for U, V in heads]
    return turned[0], turned[1]


def _basis(
    first: Float[np.ndarray, "d"], second: Float[np.ndarray, "d"]
) -> Float[np.ndarray, "d d"]:
    """Orthonormal columns: along one vector, along another orthogonal to it, and the rest."""
    rest = np.eye(len(first))
    columns = [vector for vector in (first, second) if vector.any()]
    return np.linalg.qr(np.column_stack([*columns, rest]))[0]


def together(case: HeadCase, heads: Sequence[AttentionHead], seen: Points) -> Points:
    """The sum of the outputs of heads."""
    return np.sum([attention(case, head, seen) for head in heads], axis=0)


def both_heads(case: HeadCase, seen: Points) -> Points:
    """The sum of the outputs of the two heads."""
    return together(case, two_heads(case), seen)


def with_residual(case: HeadCase, seen: Points, left_out: float) -> Points:
    """The output of the head, added to its query less a multiple of that."""
    return attention(case, case.head, seen) + (1 - left_out) * seen


def left_out(case: HeadCase) -> float:
    """The multiple ``2 xi^2 / (gamma^2 + xi^2)`` that makes of that the posterior mean."""
    spread, noise = variances(case)
    return 2 * noise / (spread + noise)


def residual(case: HeadCase, seen: Points) -> Points:
    """The output of the head, added to its query less ``2 xi^2 / (gamma^2 + xi^2)`` of it."""
    return with_residual(case, seen, left_out(case))
