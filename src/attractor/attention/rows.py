"""Attention rows of one data set, as the arrays that training computes with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float

from attractor.geometry import lengths
from attractor.tokens import Tokens


class Rows(NamedTuple):
    """Arrays of one data set (or, with a leading axis on every field, of several).

    Attributes:
        keys: Token vectors ``x``.
        queries: Query vectors ``z``.
        values: What attention averages.
        value_norms: Euclidean norms of the values, which say how far rounding reaches.
        labels: One target a row.
        mask: True where a query may attend to a token.
        weights: How much each row counts, one on average; None where all count the same.
    """

    keys: Float[Array, "*trials sequence token d"]
    queries: Float[Array, "*trials sequence query e"]
    values: Float[Array, "*trials sequence token v"]
    value_norms: Float[Array, "*trials sequence token"]
    labels: Float[Array, "*trials sequence query"]
    mask: Bool[Array, "*trials sequence query token"]
    weights: Float[Array, "*trials sequence query"] | None = None

    def mean(self, losses: Float[Array, "sequence query"]) -> Float[Array, ""]:
        """The mean of one number a row, of one data set, each row by its weight."""
        return (losses if self.weights is None else losses * self.weights).mean()


def attention_rows(tokens: Tokens, dtype: Any = np.float64) -> Rows:
    """The arrays of labeled tokens, in the precision asked for."""

    def cast(array: Any) -> Any:
        return np.asarray(array, dtype=dtype)

    admissible: Any = tokens.mask
    norms = lengths(tokens.values)
    return Rows(
        keys=cast(tokens.keys),
        queries=cast(tokens.queries),
        values=cast(tokens.values),
        value_norms=cast(norms),
        labels=cast(tokens.labels),
        mask=admissible,
        weights=None if tokens.weights is None else cast(tokens.weights),
    )
