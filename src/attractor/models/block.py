"""A block of a transformer: attention, then a perceptron, each added to what it reads."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, DTypeLike, Float

from attractor.models.attention import SelfAttention
from attractor.models.configuration import TransformerConfig
from attractor.models.layers import LayerNorm, Perceptron, split


class Block(eqx.Module):
    """``x = N(x + A(x)); x = N(x + P(x))``, or ``x = x + A(N(x)); x = x + P(N(x))``.

    Attributes:
        attention: ``A``.
        perceptron: ``P``.
        attention_norm: The first ``N``.
        perceptron_norm: The second.
        normalize_first: Whether the parts read what is normalized.
    """

    attention: SelfAttention
    perceptron: Perceptron
    attention_norm: LayerNorm
    perceptron_norm: LayerNorm
    normalize_first: bool = eqx.field(static=True)

    def __init__(
        self,
        config: TransformerConfig,
        *,
        normalize_first: bool,
        bias: bool,
        weight_dropout: float,
        hidden_dropout: float,
        key: jax.Array,
        dtype: DTypeLike = jnp.float32,
    ) -> None:
        """Draws both parts."""
        of_attention, of_perceptron = jax.random.split(key)
        self.attention = SelfAttention(
            config.width,
            config.heads,
            dropout=config.dropout,
            weight_dropout=weight_dropout,
            bias=bias,
            key=of_attention,
            dtype=dtype,
        )
        self.perceptron = Perceptron(
            config.width,
            config.hidden,
            dropout=config.dropout,
            hidden_dropout=hidden_dropout,
            bias=bias,
            key=of_perceptron,
            dtype=dtype,
        )
        self.attention_norm = LayerNorm(config.width, bias=bias, dtype=dtype)
        self.perceptron_norm = LayerNorm(config.width, bias=bias, dtype=dtype)
        self.normalize_first = normalize_first

    def __call__(
        self,
        x: Float[Array, "... token width"],
        allowed: Bool[Array, "... query token"] | None = None,
        key: jax.Array | None = None,
        queries: int | None = None,
    ) -> tuple[Float[Array, "... query width"], Float[Array, "... head query token"]]:
        """The tokens after the block, and its attention weights.

        Args:
            x: The tokens.
            allowed: Which token a query may attend to; None for all.
            key: Of dropout; None outside training.
            queries: How many tokens are wanted, from the first on; None for all.
        """
        of_attention, of_perceptron = split(key, 2)
        read = self.attention_norm(x) if self.normalize_first else x
        added, weights = self.attention(read, allowed, of_attention, queries)
        x = x[..., :queries, :] + added
        if self.normalize_first:
            return x + self.perceptron(self.perceptron_norm(x), of_perceptron), weights
        x = self.attention_norm(x)
        return self.perceptron_norm(x + self.perceptron(x, of_perceptron)), weights


def through_blocks(
    blocks: tuple[Block, ...],
    x: Float[Array, "... token width"],
    allowed: Bool[Array, "... query token"] | None,
    key: jax.Array | None,
    queries: int | None = None,
) -> tuple[Float[Array, "... query width"], list[Float[Array, "... head query token"]]]:
    """The tokens after the last block, and the attention weights of each.

    Args:
        blocks: The blocks.
        x: The tokens before the first.
        allowed: Which token a query may attend to; None for all.
        key: Of dropout; None outside training.
        queries: How many tokens are wanted of the last block, from the first on; None for all.
    """
    attention = []
    for number, (block, of_block) in enumerate(
        zip(blocks, split(key, len(blocks)), strict=True), 1
    ):
        x, weights = block(x, allowed, of_block, queries if number == len(blocks) else None)
        attention.append(weights)
    return x, attention
