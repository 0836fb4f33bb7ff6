"""The expected squared error of several heads, whose outputs add up, on a finite prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.checks import check_items
from attractor.errors import InvalidInputError
from attractor.prompt.finite_length.functions import check_queries, prompt_moments
from attractor.prompt.finite_length.squared_errors import covariance_factor
from attractor.prompt.finite_length.two_heads import along_scores, two_head_moments
from attractor.prompt.head import AttentionHead


def multi_head_output_error(
    covariance: Float[ArrayLike, "d d"],
    heads: Sequence[AttentionHead],
    query: Float[ArrayLike, "*batch e"],
    length: ArrayLike,
) -> Float[np.ndarray, "..."]:
    """Computes the expected squared error of the sum of some heads, exactly, for Gaussian tokens.

    With ``a_h = U_h z`` and attended means ``m_h`` of a prompt, whose limits are ``m + Gamma a_h``,

        E || sum_h V_h (m_h - m - Gamma a_h) ||^2
            = sum_hk tr(V_h E[(m_h - m - Gamma a_h) (m_k - m - Gamma a_k)^T] V_k^T).

    Each mean is a combination of ``Gamma`` and of ``Gamma a a'^T Gamma`` for ``a`` and ``a'`` among
    ``a_h`` and ``a_k``; see ``two_head_moments``. The mean of the tokens need not be zero: where
    the values of the heads cancel, as of two heads of opposite signs, it is gone from the sum.

    Args:
        covariance: ``Gamma`` of the tokens, ``(d, d)``, positive semidefinite.
        heads: The heads, for tokens and queries of the same size and outputs of one size.
        query: Queries ``z``, ``(*batch, e)``.
        length: Numbers of tokens ``L >= 1``; broadcasts against the batch of queries.

    Returns:
        The error, of the shape to which the batch of queries and ``length`` broadcast.

    Raises:
        InvalidInputError: If shapes do not fit, an entry is not finite, the covariance is not
            symmetric positive semidefinite, a length is below 1, or scores of one of several heads
            have a standard deviation beyond 16.
    """
    heads = check_items("heads", heads, AttentionHead, 1)
    shapes = {(*head.score_matrix.shape, len(head.value_matrix)) for head in heads}
    if len(shapes) > 1:
        raise InvalidInputError(
            "heads",
            "their tokens, queries and outputs have "
            + " and ".join(str(shape) for shape in sorted(shapes))
            + " entries",
            "Give heads of one size",
        )
    scores, values = (
        np.stack([np.asarray(getattr(head, name), dtype=np.float64) for head in heads])
        for name in ("score_matrix", "value_matrix")
    )
    z, lengths = check_queries(query, scores.shape[-1], length)
    factor = covariance_factor(covariance, scores.shape[1])
    alphas = np.einsum("dw,hde,...e->...hw", factor, scores, z)
    score_covariance = alphas @ np.swapaxes(alphas, -1, -2)
    seen = values @ factor  # of white tokens
    total = np.zeros(np.broadcast_shapes(z.shape[:-1], lengths.shape))
    for h, first in enumerate(seen):
        variance = score_covariance[..., h, h]
        alone = prompt_moments(np.sqrt(variance), lengths)
        outputs = alphas[..., h, :] @ first.T
        total = total + np.sum(first**2) * alone.sum_of_squared_weights
        total += np.sum(outputs**2, axis=-1) * alone.error_per_variance
        for k, second in enumerate(seen[h + 1 :], start=h + 1):
            pair = score_covariance[..., [[h, h], [k, k]], [[h, k], [h, k]]]
            found = two_head_moments(pair, lengths)
            # V_h alpha_h, V_h alpha_k and the same by V_k, which meet in pairs.
            by_first, by_second = (alphas[..., [h, k], :] @ side.T for side in (first, second))
            inner = by_first @ np.swapaxes(by_second, -1, -2)
            total += 2 * np.sum(first * second) * found.shared
            total += 2 * along_scores(found, inner)
    return total
