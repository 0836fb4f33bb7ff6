"""An attention head: scores ``x^T U z`` and values ``V x``."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
from jaxtyping import Float

from attractor.prompts.measures.arithmetic.arrays import checked
from attractor.support.errors import InvalidInputError


class AttentionHead(eqx.Module):
    """One attention head: a token ``x`` has score ``x^T U z`` for a query ``z``, and value ``V x``.

    Keys and queries enter attention through ``U = K^T Q`` alone (arXiv 2512.11784, attention as an
    operator on measures).

    Attributes:
        score_matrix: ``U``, ``(d, e)`` for tokens in R^d and queries in R^e.
        value_matrix: ``V``, ``(v, d)``.
    """

    score_matrix: Float[Any, "d e"]
    value_matrix: Float[Any, "v d"]

    def __init__(
        self, score_matrix: Float[Any, "d e"] | Any, value_matrix: Float[Any, "v d"] | Any
    ) -> None:
        """Checks and stores the two matrices.

        Raises:
            InvalidInputError: If shapes do not fit, or an entry is not finite.
        """
        self.score_matrix = checked("score_matrix", score_matrix, ("d", "e"))
        self.value_matrix = checked("value_matrix", value_matrix, ("v", "d"))
        d = self.score_matrix.shape[0]
        if self.value_matrix.shape[1] != d:
            raise InvalidInputError(
                "value_matrix",
                f"the shape is {self.value_matrix.shape}",
                f"Give (v, {d}): the score matrix is for tokens with {d} entries",
            )

    @classmethod
    def from_factors(
        cls,
        *,
        keys: Float[Any, "k d"] | Any,
        queries: Float[Any, "k e"] | Any,
        values: Float[Any, "v d"] | Any,
        divide_by_sqrt_head_dimension: bool,
    ) -> AttentionHead:
        """The head whose keys are ``K x``, whose queries are ``Q z`` and whose values are ``V x``.

        Args:
            keys: ``K``, ``(k, d)``.
            queries: ``Q``, ``(k, e)``.
            values: ``V``, ``(v, d)``.
            divide_by_sqrt_head_dimension: Whether scores are ``(K x)^T Q z / sqrt(k)``, as in most
                software, or ``(K x)^T Q z``, as in the paper.

        Raises:
            InvalidInputError: If shapes do not fit, or an entry is not finite.
        """
        keys, queries, scale = _checked_factors(keys, queries, divide_by_sqrt_head_dimension)
        values = checked("values", values, ("v", "d"))
        if values.shape[1] != keys.shape[1]:
            raise InvalidInputError(
                "values", f"the shape is {values.shape}", f"Give (v, {keys.shape[1]})"
            )
        return cls(keys.T @ queries * scale, values)

    @property
    def token_dimension(self) -> int:
        """Number of entries of a token."""
        return self.score_matrix.shape[-2]

    @property
    def query_dimension(self) -> int:
        """Number of entries of a query."""
        return self.score_matrix.shape[-1]


def _checked_factors(
    keys: Any, queries: Any, divide_by_sqrt_head_dimension: bool
) -> tuple[Any, Any, float]:
    """Key and query matrices, and the factor of scores.

    Raises:
        InvalidInputError: If shapes do not fit, an entry is not finite, or the last argument is
            not a bool.
    """
    keys = checked("keys", keys, ("k", "d"))
    queries = checked("queries", queries, ("k", "e"))
    if keys.shape[0] != queries.shape[0]:
        raise InvalidInputError(
            "queries",
            f"the shape is {queries.shape}",
            f"Give ({keys.shape[0]}, e): the key matrix has {keys.shape[0]} rows",
        )
    if not isinstance(divide_by_sqrt_head_dimension, bool):
        raise InvalidInputError(
            "divide_by_sqrt_head_dimension",
            f"it is {divide_by_sqrt_head_dimension!r}",
            "Give True for scores divided by the root of the head dimension, else False",
        )
    return keys, queries, 1 / math.sqrt(keys.shape[0]) if divide_by_sqrt_head_dimension else 1.0
