"""Self-attention of many heads, whose matrices can be read one head at a time."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, DTypeLike, Float

from attractor.models.dropout import drop
from attractor.models.layers import Linear, split, uniform_matrix


class SelfAttention(eqx.Module):
    """``W_O`` times the heads' ``sum_t softmax_t(<W_Q x_q, W_K x_t> / sqrt(c)) W_V x_t``.

    Rows ``h c`` to ``(h + 1) c`` of queries, keys and values belong to head ``h``.

    Attributes:
        queries: ``W_Q`` of all heads, one below the other.
        keys: ``W_K``.
        values: ``W_V``.
        output: ``W_O``.
        heads: Number of heads.
        dropout: Probability with which a number of the output is dropped.
        weight_dropout: Probability with which an attention weight is dropped.
    """

    queries: Float[Array, "width width"]
    keys: Float[Array, "width width"]
    values: Float[Array, "width width"]
    output: Linear
    heads: int = eqx.field(static=True)
    dropout: float = eqx.field(static=True)
    weight_dropout: float = eqx.field(static=True)

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        dropout: float,
        weight_dropout: float,
        bias: bool,
        key: jax.Array,
        dtype: DTypeLike = jnp.float32,
    ) -> None:
        """Draws the matrices; a bias is one of the output."""
        of_queries, of_keys, of_values, of_output = jax.random.split(key, 4)
        self.queries = uniform_matrix(of_queries, width, width, dtype)
        self.keys = uniform_matrix(of_keys, width, width, dtype)
        self.values = uniform_matrix(of_values, width, width, dtype)
        self.output = Linear(width, width, bias=bias, key=of_output, dtype=dtype)
        self.heads, self.dropout, self.weight_dropout = heads, dropout, weight_dropout

    def __call__(
        self,
        x: Float[Array, "... token width"],
        allowed: Bool[Array, "... query token"] | None = None,
        key: jax.Array | None = None,
    ) -> tuple[Float[Array, "... token width"], Float[Array, "... head query token"]]:
        """The outputs, and the attention weights before dropout.

        Args:
            x: The tokens.
            allowed: Which token a query may attend to; None for all. Every query needs one.
            key: Of dropout; None outside training.
        """
        of_weights, of_output = split(key, 2)
        # One product of matrices is faster than three.
        projected = x @ jnp.concatenate([self.queries, self.keys, self.values]).T
        by_head = (*x.shape[:-1], self.heads, x.shape[-1] // self.heads)
        q, k, v = (part.reshape(by_head) for part in jnp.split(projected, 3, axis=-1))
        scores = jnp.einsum("...qhc,...khc->...hqk", q * by_head[-1] ** -0.5, k)
        if allowed is not None:
            scores = jnp.where(allowed[..., None, :, :], scores, -jnp.inf)
        weights = jax.nn.softmax(scores, axis=-1)
        dropped = drop(weights, self.weight_dropout, of_weights)
        mixed = jnp.einsum("...hqk,...khc->...qhc", dropped, v).reshape(x.shape)
        return drop(self.output(mixed), self.dropout, of_output), weights
