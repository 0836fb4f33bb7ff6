"""A transformer that classifies texts."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, DTypeLike, Float, Int

from attractor.models.block import Block, through_blocks
from attractor.models.configuration import TextTransformerConfig
from attractor.models.dtypes import check_dtype
from attractor.models.layers import LayerNorm, Linear
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_key


class TextTransformer(eqx.Module):
    """Token and position embeddings, blocks, and a linear read-out.

    Padding neither attends nor is attended to; but the first position may be attended to by all,
    so that no row of weights is empty. Linear layers have no bias, layer norms none either.

    Attributes:
        tokens: Embeddings of tokens, drawn from a standard normal law.
        positions: Embeddings of positions, drawn likewise.
        blocks: The blocks.
        norm: The norm before the read-out, where blocks are pre-norm.
        head: The read-out.
        config: The configuration.

    Source:
        Julistiono, Tarzanagh, Azizan, "Optimizing Attention with Mirror Descent"
        (arXiv 2410.14581), sentiment of film reviews; the sizes are those of the published code.
    """

    tokens: Float[Array, "vocabulary width"]
    positions: Float[Array, "length width"]
    blocks: tuple[Block, ...]
    norm: LayerNorm | None
    head: Linear
    config: TextTransformerConfig = eqx.field(static=True)

    def __init__(
        self, config: TextTransformerConfig, *, key: jax.Array, dtype: DTypeLike = jnp.float32
    ) -> None:
        """Draws every weight.

        Args:
            config: The sizes.
            key: A JAX key.
            dtype: Of the weights and of all that is computed, float32 or float64.
        """
        check_kinds(config=(config, TextTransformerConfig))
        key, dtype = check_key("key", key), check_dtype("dtype", dtype)
        of_tokens, of_positions, of_head, *of_blocks = jax.random.split(key, 3 + config.blocks)
        before = config.normalization == "pre"
        self.tokens = jax.random.normal(of_tokens, (config.vocabulary, config.width), dtype)
        self.positions = jax.random.normal(of_positions, (config.length, config.width), dtype)
        self.blocks = tuple(
            Block(
                config,
                normalize_first=before,
                bias=False,
                weight_dropout=config.dropout,
                hidden_dropout=0.0,
                key=of_block,
                dtype=dtype,
            )
            for of_block in of_blocks
        )
        self.norm = LayerNorm(config.width, bias=False, dtype=dtype) if before else None
        self.head = Linear(config.width, config.outputs, bias=False, key=of_head, dtype=dtype)
        self.config = config

    def __call__(
        self,
        ids: Int[Array, "... token"],
        mask: Bool[Array, "... token"] | None = None,
        *,
        key: jax.Array | None = None,
        return_attention: bool = False,
    ) -> Any:
        """Logits of texts.

        Leading axes are texts; a whole batch at once is faster than ``jax.vmap`` over texts.

        Args:
            ids: Numbers of tokens, at most ``config.length`` of a text.
            mask: Where they are real tokens, not padding; None for all.
            key: Of dropout, in training; None outside.
            return_attention: Whether to return attention weights, too.

        Returns:
            Logits ``(...)`` of class 1 for two classes, else ``(..., classes)``; with attention,
            a pair of logits and weights ``(..., blocks, heads, query, token)``.

        Raises:
            InvalidInputError: If a text is too long, or the mask is of another shape.
        """
        length = ids.shape[-1]
        if length > self.config.length:
            raise InvalidInputError(
                "ids", f"texts have {length} tokens", f"Give at most {self.config.length}"
            )
        if mask is not None and mask.shape != ids.shape:
            raise InvalidInputError(
                "mask", f"its shape {mask.shape} is not {ids.shape}", "Give one entry for each id"
            )
        x = self.tokens[ids] + self.positions[:length]
        # The read-out uses no other position of the last block.
        first_only = self.config.read_out == "first" and not return_attention
        queries = 1 if first_only else None
        x, attention = through_blocks(self.blocks, x, _allowed(mask), key, queries)
        x = x if self.norm is None else self.norm(x)
        logits = self.head(read_vector(x, mask, self.config.read_out))
        logits = logits[..., 0] if self.config.outputs == 1 else logits
        return (logits, jnp.stack(attention, -4)) if return_attention else logits


def read_vector(
    x: Float[Array, "... token width"], mask: Bool[Array, "... token"] | None, read_out: str
) -> Float[Array, "... width"]:
    """The vector that is read out; zero for the masked mean of a text without tokens."""
    if read_out == "first":
        return x[..., 0, :]
    if read_out == "mean" or mask is None:
        return x.mean(-2)
    real = mask.astype(x.dtype)
    return (x * real[..., None]).sum(-2) / jnp.maximum(real.sum(-1, keepdims=True), 1)


def _allowed(mask: Bool[Array, "... token"] | None) -> Bool[Array, "... query token"] | None:
    if mask is None:
        return None
    first = jnp.arange(mask.shape[-1]) == 0
    return (mask[..., :, None] & mask[..., None, :]) | first
