"""Several attention heads as one: their matrices as one matrix, their data as one data set."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from attractor.support.checks import check_choice, check_count
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_real
from attractor.tokens.tokens import Tokens

Arrangement = Literal["stacked", "side by side", "block diagonal"]
"""How matrices of attention heads become one: below each other, as columns, as blocks."""


def arranged(
    W: Float[Any, "*trials attention_head d e"], arrangement: Arrangement
) -> Float[Any, "*trials D E"]:
    """The matrices of several attention heads as one, of NumPy or JAX.

    ``"stacked"`` is ``(H d, e)``, ``"side by side"`` ``(d, H e)``, ``"block diagonal"``
    ``(H d, H e)`` with zeros elsewhere.
    """
    *lead, heads, d, e = W.shape
    if arrangement == "stacked":
        return W.reshape(*lead, heads * d, e)
    xp = W.__array_namespace__()
    if arrangement == "side by side":
        return xp.moveaxis(W, -3, -2).reshape(*lead, d, heads * e)
    own = xp.eye(heads, dtype=bool)[:, None, :, None]
    return xp.where(own, W[..., None, :], 0).reshape(*lead, heads * d, heads * e)


def split_heads(
    W: Float[np.ndarray, "*trials D E"], heads: int, arrangement: Arrangement
) -> Float[np.ndarray, "*trials attention_head d e"]:
    """The matrices of several attention heads, from one that holds them all.

    It is the way back from the solution of ``MarginProblem.from_heads``. Of a block-diagonal matrix
    the blocks beside the diagonal are left out, which no head has.

    Args:
        W: ``(H d, e)``, ``(d, H e)`` or ``(H d, H e)``, as the heads are arranged.
        heads: Their number H.
        arrangement: ``"stacked"``, ``"side by side"`` or ``"block diagonal"``.

    Raises:
        InvalidInputError: If the matrix is not that of so many heads.

    Example:
        >>> import attractor as at
        >>> at.split_heads([[1, 2, 3, 4]], 2, "side by side").tolist()
        [[[1.0, 2.0]], [[3.0, 4.0]]]
    """
    W, heads = as_real("W", W, ("...", "D", "E")), check_count("heads", heads)
    check_choice("arrangement", arrangement, get_args(Arrangement))
    *lead, D, E = W.shape
    d = D if arrangement == "side by side" else D // heads
    e = E if arrangement == "stacked" else E // heads
    if (D, E) != arranged(np.zeros((heads, d, e)), arrangement).shape:
        raise InvalidInputError(
            "W", f"its shape is {W.shape}", f"Give one of {heads} heads that are {arrangement}"
        )
    if arrangement == "stacked":
        return W.reshape(*lead, heads, d, e)
    columns = W.reshape(*lead, D, heads, e)
    if arrangement == "side by side":
        return np.moveaxis(columns, -2, -3)
    blocks = columns.reshape(*lead, heads, d, heads, e)
    return np.moveaxis(np.diagonal(blocks, axis1=-4, axis2=-2), -1, -3)


def arranged_tokens(tokens: Tokens, heads: int, arrangement: Arrangement) -> Tokens:
    """One data set on which the arranged matrix gives every head its scores.

    Sequence ``h n + i`` is sequence ``i`` as head h sees it: keys in the block of the head, unless
    heads are side by side, and queries in its block, unless heads are stacked.

    Args:
        tokens: The data set that all heads see.
        heads: Number of heads.
        arrangement: How their matrices become one.
    """
    keys, queries = tokens.keys, tokens.queries

    def repeated(array: Any) -> Any:
        return None if array is None else np.concatenate([array] * heads, axis=first)

    first = 0 if tokens.instances is None else 1
    in_blocks = (arrangement != "side by side", arrangement != "stacked")
    own_keys, own_queries = (
        in_block_of_head(array, heads, first) if chosen else repeated(array)
        for array, chosen in zip((keys, queries), in_blocks, strict=True)
    )
    return Tokens(
        own_keys,
        own_queries,
        repeated(tokens.labels),
        repeated(tokens.mask),
        repeated(tokens.values),
        weights=repeated(tokens.weights),
        instance_numbers=tokens.instance_numbers,
    )


def in_block_of_head(
    vectors: Float[np.ndarray, "*instances sequence rows d"], heads: int, first: int
) -> Float[np.ndarray, "*instances sequences rows D"]:
    """Vectors once for each head, each time in the block of that head, with zeros elsewhere."""
    d = vectors.shape[-1]
    parts = np.zeros((heads, *vectors.shape[:-1], heads * d))
    for head in range(heads):
        parts[head, ..., head * d : (head + 1) * d] = vectors
    return np.concatenate(list(parts), axis=first)
