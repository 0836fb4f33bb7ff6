"""Building the model of a config."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import DTypeLike

from attractor.models.configuration import TextTransformerConfig, VisionTransformerConfig
from attractor.models.dtypes import check_dtype
from attractor.models.text import TextTransformer
from attractor.models.vision import VisionTransformer
from attractor.support.checks import check_kinds
from attractor.support.randomness import check_key

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
