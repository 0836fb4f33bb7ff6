"""Attention rows of one data set, as the arrays that training computes with."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from attractor.geometry import lengths
from attractor.tokens import Tokens

_NEAR_HALF = 0.44
"""Share of the largest exponent beyond which squares, and sums of many, may leave the range."""


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
        extreme: Marks the sequences of data whose products floating point may not hold, and whose
            arithmetic therefore takes scales out; None of all others, whose arithmetic is plain.
    """

    keys: Float[Array, "*trials sequence token d"]
    queries: Float[Array, "*trials sequence query e"]
    values: Float[Array, "*trials sequence token v"]
    value_norms: Float[Array, "*trials sequence token"]
    labels: Float[Array, "*trials sequence query"]
    mask: Bool[Array, "*trials sequence query token"]
    weights: Float[Array, "*trials sequence query"] | None = None
    extreme: Bool[Array, "*trials sequence"] | None = None

    def mean(self, losses: Float[Array, "sequence query"]) -> Float[Array, ""]:
        """The mean of one number a row, of one data set, each row by its weight."""
        return (losses if self.weights is None else losses * self.weights).mean()


def attention_rows(tokens: Tokens, dtype: Any = np.float64, head: Any = None) -> Rows:
    """The arrays of labeled tokens, in a precision.

    Args:
        tokens: The tokens.
        dtype: The precision.
        head: The head that reads them, where its magnitude counts, too.
    """

    def cast(array: Any) -> Any:
        return np.asarray(array, dtype=dtype)

    admissible: Any = tokens.mask
    extreme: Any = None
    if _extreme(tokens, head, dtype):
        extreme = np.ones(tokens.keys.shape[:-2], dtype=bool)
    norms = lengths(tokens.values)
    return Rows(
        keys=cast(tokens.keys),
        queries=cast(tokens.queries),
        values=cast(tokens.values),
        value_norms=cast(norms),
        labels=cast(tokens.labels),
        mask=admissible,
        weights=None if tokens.weights is None else cast(tokens.weights),
        extreme=extreme,
    )


def _extreme(tokens: Tokens, head: Any, dtype: Any) -> bool:
    """Whether squares of keys, values or head, or a product of the three may overflow or vanish."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(head) if eqx.is_inexact_array(leaf)]
    sizes = [np.abs(one).max(initial=0.0) for one in (tokens.keys, tokens.values, *leaves)]
    powers = np.log2([float(size) for size in sizes if size > 0])
    end = _NEAR_HALF * np.finfo(dtype).maxexp
    return bool((np.abs(powers) > end).any() or abs(powers.sum()) > 2 * end)
