"""A transformer that classifies images."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float

from attractor.models.block import Block, through_blocks
from attractor.models.configuration import VisionTransformerConfig
from attractor.models.dropout import drop
from attractor.models.dtypes import check_dtype
from attractor.models.layers import LayerNorm, Linear, split
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import check_key


class VisionTransformer(eqx.Module):
    """Patches and a class token, pre-norm blocks, and a linear read-out.

    Attributes:
        patches: Turns a patch, its rows one after another, into a token.
        class_token: The token at position 0, which is read out; drawn from a standard normal law.
        positions: Embeddings of positions, drawn likewise.
        blocks: The blocks.
        norm: The norm before the read-out.
        head: The read-out.
        config: The configuration.

    Source:
        Julistiono, Tarzanagh, Azizan, "Optimizing Attention with Mirror Descent"
        (arXiv 2410.14581), images of ten classes; the sizes are those of the published code.
    """

    patches: Linear
    class_token: Float[Array, "width"]
    positions: Float[Array, "token width"]
    blocks: tuple[Block, ...]
    norm: LayerNorm
    head: Linear
    config: VisionTransformerConfig = eqx.field(static=True)

    def __init__(
        self, config: VisionTransformerConfig, *, key: jax.Array, dtype: DTypeLike = jnp.float32
    ) -> None:
        """Draws every weight.

        Args:
            config: The sizes.
            key: A JAX key.
            dtype: Of the weights and of all that is computed, float32 or float64.
        """
        check_kinds(config=(config, VisionTransformerConfig))
        key, dtype = check_key("key", key), check_dtype("dtype", dtype)
        keys = jax.random.split(key, 4 + config.blocks)
        of_patches, of_class, of_positions, of_head, *of_blocks = keys
        entries = config.patch**2 * config.channels
        self.patches = Linear(entries, config.width, bias=True, key=of_patches, dtype=dtype)
        self.class_token = jax.random.normal(of_class, (config.width,), dtype)
        shape = (config.patches + 1, config.width)
        self.positions = jax.random.normal(of_positions, shape, dtype)
        self.blocks = tuple(
            Block(
                config,
                normalize_first=True,
                bias=True,
                weight_dropout=0.0,
                hidden_dropout=config.dropout,
                key=of_block,
                dtype=dtype,
            )
            for of_block in of_blocks
        )
        self.norm = LayerNorm(config.width, bias=True, dtype=dtype)
        self.head = Linear(config.width, config.outputs, bias=True, key=of_head, dtype=dtype)
        self.config = config

    def __call__(
        self,
        images: Float[Array, "... row column channel"],
        mask: None = None,
        *,
        key: jax.Array | None = None,
        return_attention: bool = False,
    ) -> Any:
        """Logits of images.

        Args:
            images: The pixels.
            mask: There is none; images are whole.
            key: Of dropout, in training; None outside.
            return_attention: Whether to return attention weights, too.

        Returns:
            Logits ``(..., classes)``; with attention, a pair of logits and weights
            ``(..., blocks, heads, query, token)``, where token 0 is the class token.

        Raises:
            InvalidInputError: If the images are of another size, or there is a mask.
        """
        size = (*self.config.image, self.config.channels)
        if mask is not None:
            raise InvalidInputError("mask", "images have none", "Give None")
        if images.shape[-3:] != size:
            raise InvalidInputError(
                "images",
                f"they have the shape {images.shape}",
                f"Give rows, columns and channels {size} on the last three axes",
            )
        of_embedding, of_blocks = split(key, 2)
        tokens = self.patches(self._cut(images.astype(self.positions.dtype)))
        first = jnp.broadcast_to(self.class_token, (*tokens.shape[:-2], 1, self.config.width))
        x = jnp.concatenate([first, tokens], -2) + self.positions
        x = drop(x, self.config.embedding_dropout, of_embedding)
        # The read-out uses no other token of the last block.
        queries = None if return_attention else 1
        x, attention = through_blocks(self.blocks, x, None, of_blocks, queries)
        logits = self.head(self.norm(x[..., 0, :]))
        return (logits, jnp.stack(attention, -4)) if return_attention else logits

    def _cut(
        self, images: Float[Array, "... row column channel"]
    ) -> Float[Array, "... patch entry"]:
        """Patches, row by row, each with its pixels row by row."""
        *batch, rows, columns, channels = images.shape
        side = self.config.patch
        cells = images.reshape(*batch, rows // side, side, columns // side, side, channels)
        return jnp.swapaxes(cells, -4, -3).reshape(*batch, -1, side * side * channels)
