"""Layers of a transformer, which act on the last axis, and blocks of attention and a perceptron.

Random bits of dropout are a function of a key and a place, computed where they are used:
``jax.random`` would write its bits to memory first: on a CPU that adds half to the time of a
training step, and doubles the time of compiling it.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, DTypeLike, Float, UInt32

from attractor.models.configuration import TransformerConfig
from attractor.support.checks import shown
from attractor.support.errors import InvalidInputError


def check_dtype(argument: str, dtype: Any) -> Any:
    """Checks that a data type is a precision of a model.

    Raises:
        InvalidInputError: If it cannot.
    """
    try:
        known = None if dtype is None else jnp.dtype(dtype).name
    except TypeError:
        known = None
    if known not in ("float32", "float64", "bfloat16", "float16"):
        raise InvalidInputError(
            argument, f"{shown(dtype)} is no precision", "Give jnp.float32 or jnp.float64"
        )
    return dtype


_WORDS = 2.0**32
_GOLDEN = 0x9E3779B9
_MULTIPLIERS = (0x21F0AAAD, 0xD35A2D97)


def drop(
    x: Float[Array, "*shape"], probability: float, key: jax.Array | None
) -> Float[Array, "*shape"]:
    """Sets every number to zero with a probability, and scales the others so that means stay.

    Args:
        x: The numbers.
        probability: The probability.
        key: None outside training, where nothing is dropped.
    """
    if key is None or probability == 0:
        return x
    kept = _words(key, x.shape) >= jnp.uint32(round(probability * _WORDS))
    return jnp.where(kept, x * (1 / (1 - probability)), 0)


def _words(key: jax.Array, shape: tuple[int, ...]) -> UInt32[Array, "..."]:
    """A random word for every place: its number and the two words of the key, mixed.

    Shifts, exclusive ors and the multipliers of a hash of low bias; not for more than dropout.
    """
    first, second = jax.random.key_data(key).astype(jnp.uint32)[..., :2]
    place = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    x = place * jnp.uint32(_GOLDEN) + first
    x = (x ^ (x >> 16)) * jnp.uint32(_MULTIPLIERS[0]) ^ second
    x = (x ^ (x >> 15)) * jnp.uint32(_MULTIPLIERS[1])
    return x ^ (x >> 15)


_LAYER_NORM_EPS = 1e-5


def uniform_matrix(
    key: jax.Array, outputs: int, inputs: int, dtype: DTypeLike
) -> Float[Array, "outputs inputs"]:
    """A weight as PyTorch initializes it: uniform within ``1/sqrt(inputs)`` of zero."""
    bound = inputs**-0.5
    return jax.random.uniform(key, (outputs, inputs), dtype, -bound, bound)


class Linear(eqx.Module):
    """``y = W x + b``, with the weight and the initialization of ``torch.nn.Linear``.

    Attributes:
        weight: ``W``.
        bias: ``b``, or None.
    """

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, "outputs"] | None

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        bias: bool,
        key: jax.Array,
        dtype: DTypeLike = jnp.float32,
    ) -> None:
        """Draws weight and bias."""
        of_weight, of_bias = jax.random.split(key)
        self.weight = uniform_matrix(of_weight, outputs, inputs, dtype)
        bound = inputs**-0.5
        self.bias = jax.random.uniform(of_bias, (outputs,), dtype, -bound, bound) if bias else None

    def __call__(self, x: Float[Array, "... inputs"]) -> Float[Array, "... outputs"]:
        """The outputs."""
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias


class LayerNorm(eqx.Module):
    """``(x - mean) / sqrt(variance + 1e-5) * weight + bias``, initially weight one, bias zero.

    Attributes:
        weight: One number for each coordinate.
        bias: The same, or None.
    """

    weight: Float[Array, "width"]
    bias: Float[Array, "width"] | None

    def __init__(self, width: int, *, bias: bool, dtype: DTypeLike = jnp.float32) -> None:
        """Initializes at one and zero."""
        self.weight = jnp.ones(width, dtype)
        self.bias = jnp.zeros(width, dtype) if bias else None

    def __call__(self, x: Float[Array, "... width"]) -> Float[Array, "... width"]:
        """The normalized vectors."""
        centered = x - x.mean(-1, keepdims=True)
        variance = (centered**2).mean(-1, keepdims=True)
        y = centered * jax.lax.rsqrt(variance + _LAYER_NORM_EPS) * self.weight
        return y if self.bias is None else y + self.bias


class Perceptron(eqx.Module):
    """``W_2 gelu(W_1 x)``, with the exact Gaussian error linear unit, and dropout.

    Attributes:
        rise: The first layer.
        fall: The second layer.
        dropout: Probability with which an output is dropped.
        hidden_dropout: Probability with which a hidden unit is dropped.
    """

    rise: Linear
    fall: Linear
    dropout: float = eqx.field(static=True)
    hidden_dropout: float = eqx.field(static=True)

    def __init__(
        self,
        width: int,
        hidden: int,
        *,
        dropout: float,
        hidden_dropout: float,
        bias: bool,
        key: jax.Array,
        dtype: DTypeLike = jnp.float32,
    ) -> None:
        """Draws both layers."""
        first, second = jax.random.split(key)
        self.rise = Linear(width, hidden, bias=bias, key=first, dtype=dtype)
        self.fall = Linear(hidden, width, bias=bias, key=second, dtype=dtype)
        self.dropout, self.hidden_dropout = dropout, hidden_dropout

    def __call__(
        self, x: Float[Array, "... width"], key: jax.Array | None = None
    ) -> Float[Array, "... width"]:
        """The outputs; with a key, those of training."""
        of_hidden, of_output = split(key, 2)
        hidden = jax.nn.gelu(self.rise(x), approximate=False)
        return drop(
            self.fall(drop(hidden, self.hidden_dropout, of_hidden)), self.dropout, of_output
        )


def split(key: jax.Array | None, count: int) -> jax.Array | tuple[None, ...]:
    """Keys from a key, or as many times None."""
    return (None,) * count if key is None else jax.random.split(key, count)


class Block(eqx.Module):
    """``x = N(x + A(x)); x = N(x + P(x))``, or ``x = x + A(N(x)); x = x + P(N(x))``.

    Attributes:
        attention: ``A``.
        perceptron: ``P``.
        attention_norm: The first ``N``.
        perceptron_norm: The second.
        normalize_first: Whether norms precede the parts (pre-norm) or follow the sums (post-norm).
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
            queries: Number of tokens required, from the first on; None for all.
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
        queries: Number of tokens of the last block required, from the first on; None for all.
    """
    attention = []
    for block, of_block in zip(blocks, split(key, len(blocks)), strict=True):
        x, weights = block(x, allowed, of_block, queries if block is blocks[-1] else None)
        attention.append(weights)
    return x, attention


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
        queries: int | None = None,
    ) -> tuple[Float[Array, "... query width"], Float[Array, "... head query token"]]:
        """The outputs, and the attention weights before dropout.

        Args:
            x: The tokens.
            allowed: Which token a query may attend to; None for all. Every query needs one.
            key: Of dropout; None outside training.
            queries: Number of tokens that are queries, from the first on; None for all.
        """
        of_weights, of_output = split(key, 2)
        q, k, v = self._projections(x, queries)
        scores = jnp.einsum("...qhc,...khc->...hqk", q * q.shape[-1] ** -0.5, k)
        if allowed is not None:
            scores = jnp.where(allowed[..., None, :queries, :], scores, -jnp.inf)
        weights = jax.nn.softmax(scores, axis=-1)
        dropped = drop(weights, self.weight_dropout, of_weights)
        mixed = jnp.einsum("...hqk,...khc->...qhc", dropped, v)
        mixed = mixed.reshape(*mixed.shape[:-2], x.shape[-1])
        return drop(self.output(mixed), self.dropout, of_output), weights

    def _projections(
        self, x: Float[Array, "... token width"], queries: int | None
    ) -> tuple[Float[Array, "... token head part"], ...]:
        """Queries, keys and values by head. One product of matrices is faster than two or three."""
        if queries is None:
            found = jnp.split(x @ jnp.concatenate([self.queries, self.keys, self.values]).T, 3, -1)
        else:
            own = x[..., :queries, :] @ self.queries.T
            attended = x @ jnp.concatenate([self.keys, self.values]).T
            found = own, *jnp.split(attended, 2, axis=-1)
        by_head = (self.heads, x.shape[-1] // self.heads)
        return tuple(part.reshape(*part.shape[:-1], *by_head) for part in found)
