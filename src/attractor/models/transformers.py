"""Transformers of a config, for texts and images: built, kept in files, the matrices of heads."""

from __future__ import annotations

import os
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, DTypeLike, Float, Int
from safetensors.numpy import save

from attractor.models.configuration import TextTransformerConfig, VisionTransformerConfig
from attractor.models.layers import (
    Block,
    LayerNorm,
    Linear,
    check_dtype,
    drop,
    split,
    through_blocks,
)
from attractor.support.checks import check_kinds, check_path
from attractor.support.containers import StoredTensors, parse_json, parsing
from attractor.support.errors import AttractorError, FileFormatError, InvalidInputError
from attractor.support.precision import double_precision
from attractor.support.randomness import check_key
from attractor.support.storage import write_file


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


Config = TextTransformerConfig | VisionTransformerConfig
Model = TextTransformer | VisionTransformer

CONFIGS: dict[str, type[Config]] = {
    config.kind: config for config in (TextTransformerConfig, VisionTransformerConfig)
}


def build_model(
    config: Config, *, key: jax.Array | None = None, dtype: DTypeLike = jnp.float32
) -> Model:
    """Builds the model of a config.

    Args:
        config: A ``TextTransformerConfig`` or ``VisionTransformerConfig``.
        key: A JAX key; default: that of seed 0.
        dtype: Of the weights and of all that is computed.

    Raises:
        InvalidInputError: If ``config`` is neither.
    """
    check_kinds(config=(config, Config))
    dtype = check_dtype("dtype", dtype)
    drawn = jax.random.key(0) if key is None else check_key("key", key)
    if isinstance(config, TextTransformerConfig):
        return TextTransformer(config, key=drawn, dtype=dtype)
    return VisionTransformer(config, key=drawn, dtype=dtype)


def model_shapes(config: Config, dtype: DTypeLike = jnp.float32) -> Any:
    """The model with shapes in place of arrays."""
    return jax.eval_shape(lambda key: build_model(config, key=key, dtype=dtype), jax.random.key(0))


_FORMAT = "attractor model 1"
_PRECISIONS = ("F32", "F64")


def save_model(path: str | os.PathLike[str], model: Model) -> None:
    """Writes a model to one safetensors file, which appears whole or not at all.

    Args:
        path: The file; an existing one is replaced.
        model: The model. A weight is named by its place, such as ``blocks.0.attention.queries``.

    Raises:
        InvalidInputError: If ``model`` is no model of this package, or the path is a folder.
    """
    path = check_path("path", path)
    check_kinds(model=(model, Model))
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in named_weights(model).items()}
    content = save(arrays, metadata={"format": _FORMAT, "config": model.config.to_json()})
    write_file(path, content)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Reads what ``save_model`` wrote; nothing in the file is run.

    Args:
        path: The file.

    Raises:
        FileFormatError: If the file is not there, or holds no whole model.
    """
    path = check_path("path", path)
    stored = StoredTensors(path, "model")
    config = _config(path, stored.metadata)
    precisions = set(stored.precisions.values())
    if len(precisions) != 1 or not precisions <= set(_PRECISIONS):
        raise _wrong(path, f"its weights are stored as {', '.join(sorted(precisions))}")
    if 2 * config.blocks > len(stored):
        raise _wrong(path, f"it has too few weights for {config.blocks} blocks")
    dtype = jnp.float64 if precisions == {"F64"} else jnp.float32
    with double_precision():
        with parsing(path, "model"):
            shapes = model_shapes(config, dtype)
        named = named_weights(shapes)
        if missing := sorted(named.keys() ^ stored.keys()):
            raise _wrong(path, f"{missing[0]} is missing, or is too many")
        for name, leaf in named.items():
            if stored.shapes[name] != leaf.shape:
                raise _wrong(path, f"{name} has the shape {stored.shapes[name]}, not {leaf.shape}")
        leaves = [jnp.asarray(stored[name]) for name in named]
    return jax.tree.structure(shapes).unflatten(leaves)


def named_weights(model: Any) -> dict[str, Any]:
    """The leaves of a model, or of a tree of its structure, by their places."""
    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _config(path: str | os.PathLike[str], metadata: dict[str, str]) -> Config:
    if metadata.get("format") != _FORMAT:
        raise _wrong(path, f"its metadata do not say {_FORMAT!r}")
    text = metadata.get("config", "")
    try:
        return CONFIGS[parse_json(text)["model"]].from_json(text)
    except (AttractorError, ValueError, KeyError, TypeError) as error:
        raise _wrong(path, f"its config cannot be used: {error}") from error


def _wrong(path: str | os.PathLike[str], reason: str) -> FileFormatError:
    return FileFormatError(f"{path}: no model that save_model wrote ({reason}).")


def head_matrices(model: Model) -> dict[str, Float[np.ndarray, "block head ..."]]:
    """The matrices of every head, as arrays over blocks and heads.

    Args:
        model: A transformer of this package.

    Returns:
        ``queries``, ``keys`` and ``values``: the rows ``(head size, width)`` of ``W_Q``, ``W_K``
        and ``W_V`` that belong to a head; ``output``: its columns ``(width, head size)`` of
        ``W_O``; ``W``: the matrix ``W_K^T W_Q / sqrt(head size)`` of shape ``(width, width)``,
        with which the score of a token ``x`` under a query ``z`` is ``x^T W z``.
    """
    check_kinds(model=(model, Model))
    config = model.config
    by_head = (config.blocks, config.heads, config.head_size, config.width)
    layers = [block.attention for block in model.blocks]
    rows = {
        name: np.stack([np.asarray(getattr(layer, name)) for layer in layers]).reshape(by_head)
        for name in ("queries", "keys", "values")
    }
    output = np.stack([np.asarray(layer.output.weight) for layer in layers])
    columns = output.reshape(config.blocks, config.width, config.heads, config.head_size)
    keys, queries = rows["keys"].astype(np.float64), rows["queries"].astype(np.float64)
    return {
        **rows,
        "output": columns.swapaxes(1, 2),
        "W": keys.swapaxes(-1, -2) @ queries / np.sqrt(config.head_size),
    }
