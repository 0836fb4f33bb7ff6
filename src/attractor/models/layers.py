"""Layers of a block other than attention. All act on the last axis, whatever the others."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float

from attractor.models.dropout import drop

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
