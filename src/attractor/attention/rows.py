"""Attention rows of one data set, as the arrays that training computes with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float

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
    """

    keys: Float[Array, "*trials sequence token d"]
    queries: Float[Array, "*trials sequence query e"]
    values: Float[Array, "*trials sequence token v"]
    value_norms: Float[Array, "*trials sequence token"]
    labels: Float[Array, "*trials sequence query"]
    mask: Bool[Array, "*trials sequence query token"]


def attention_rows(tokens: Tokens, dtype: Any = np.float64) -> Rows:
    """The arrays of labeled tokens, in the precision asked for."""

    def cast(array: Any) -> Any:
        return np.asarray(array, dtype=dtype)

    admissible: Any = tokens.mask
    norms = np.linalg.norm(tokens.values, axis=-1)
    return Rows(
        keys=cast(tokens.keys),
        queries=cast(tokens.queries),
        values=cast(tokens.values),
        value_norms=cast(norms),
        labels=cast(tokens.labels),
        mask=admissible,
    )
