"""The scales of the error of a head's output, for each query."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from attractor.prompts.finite_length.squared_errors import covariance_factor
from attractor.prompts.head import AttentionHead
from attractor.prompts.length.affine import AffineLimit
from attractor.prompts.measures.gaussian import Gaussian
from attractor.support.errors import InvalidInputError
from attractor.support.precision import LARGEST, as_float64


class Scales(NamedTuple):
    """The spread of the values along the scores of each query and across.

    The expected squared error of the output is ``along E (ghat - s)^2 + across E sum_l p_l^2``.

    Attributes:
        deviation: Standard deviation ``s`` of the scores, ``sqrt(z^T U^T Gamma U z)``.
        along: ``|V Gamma U z|^2 / s^2``.
        across: ``tr(V Gamma V^T)`` less ``along``.
        output: Norm of the affine limit's output, ``|V m + V Gamma U z|``.
        horizon: ``||Gamma^(1/2) U Gamma_z^(1/2)||`` in the operator norm, one number.
    """

    deviation: Float[np.ndarray, "query"]
    along: Float[np.ndarray, "query"]
    across: Float[np.ndarray, "query"]
    output: Float[np.ndarray, "query"]
    horizon: float

    @classmethod
    def of(
        cls,
        head: AttentionHead,
        tokens: Gaussian,
        queries: Float[np.ndarray, "query e"],
        query_covariance: Float[np.ndarray, "e e"],
    ) -> Scales:
        """Computes them for Gaussian tokens.

        Raises:
            InvalidInputError: If dimensions do not fit, or a covariance is not finite.
        """
        queries = check_queries(head, queries)
        U, V = np.asarray(head.score_matrix), np.asarray(head.value_matrix)
        output = np.linalg.norm(AffineLimit(head, tokens)(queries), axis=-1)
        factor = covariance_factor(np.asarray(tokens.covariance), U.shape[0])
        scores = queries @ U.T @ factor
        deviation = np.linalg.norm(scores, axis=-1)
        direction = scores / np.where(deviation > 0, deviation, 1)[:, None]
        seen = V @ factor
        along = ((direction @ seen.T) ** 2).sum(-1)
        across = np.maximum((seen**2).sum() - along, 0)
        of_queries = covariance_factor(query_covariance, U.shape[1], "query_covariance")
        horizon = float(np.linalg.norm(factor.T @ U @ of_queries, 2))
        return cls(deviation, along, across, output, horizon)


def check_queries(head: AttentionHead, queries: ArrayLike) -> Float[np.ndarray, "query e"]:
    """Returns queries as float64, ``(m, e)`` for a head that takes queries in R^e.

    Raises:
        InvalidInputError: If they are not that, or there is none.
    """
    z = as_float64("queries", queries, largest=LARGEST)
    e = head.query_dimension
    if z.ndim != 2 or not len(z) or z.shape[1] != e:
        raise InvalidInputError(
            "queries", f"the shape is {z.shape}", f"Give (m, {e}), one at least"
        )
    return z
