import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.models import TextTransformerConfig, VisionTransformerConfig, build_model
from attractor.models.transformers import model_shapes, named_weights
from attractor.support.precision import double_precision

TEXT = TextTransformerConfig(
    vocabulary=20, length=6, width=8, blocks=2, heads=2, hidden=16, dropout=0.5
)
VISION = VisionTransformerConfig(
    image=(4, 6), channels=3, patch=2, classes=3, width=8, blocks=2, heads=2, hidden=16
)


def built(config):
    """A model of a config, compiled as one program."""
    return jax.jit(lambda key: build_model(config, key=key))(jax.random.key(1))


def drawn(config):
    """A model of a config with any weights, biases among them, for which nothing is compiled."""
    rng = np.random.default_rng(1)
    return jax.tree.map(
        lambda leaf: jnp.asarray(0.5 * rng.normal(size=leaf.shape), leaf.dtype),
        model_shapes(config),
    )


@pytest.fixture(scope="session")
def text():
    return drawn(TEXT)


@pytest.fixture(scope="session")
def vision():
    return drawn(VISION)


@pytest.fixture(scope="session")
def texts():
    rng = np.random.default_rng(5)
    ids = rng.integers(0, 20, (5, 6)).astype(np.int32)
    mask = np.arange(6) < np.array([6, 4, 1, 2, 0])[:, None]
    return ids, mask


@pytest.fixture(scope="session")
def images():
    return np.random.default_rng(6).normal(size=(5, 4, 6, 3))


@eqx.filter_jit
def forward(model, *arguments, **options):
    """One program compiles sooner than its operations one by one."""
    return model(*arguments, **options)


def widened(model):
    """The same weights in double precision."""
    with double_precision():
        return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), jnp.float64), model)


def torch_weights(torch, model):
    return {name: torch.tensor(np.array(leaf)) for name, leaf in named_weights(model).items()}


def torch_block(torch, weights, name, x, allowed, heads, *, normalize_first):
    """A block written with the primitives of PyTorch."""
    functional = torch.nn.functional

    def normalized(x, part):
        weight, bias = weights[f"{name}.{part}.weight"], weights.get(f"{name}.{part}.bias")
        return functional.layer_norm(x, x.shape[-1:], weight, bias)

    def linear(x, part):
        weight, bias = weights[f"{name}.{part}.weight"], weights.get(f"{name}.{part}.bias")
        return functional.linear(x, weight, bias)

    def attention(x):
        def by_head(part):
            y = functional.linear(x, weights[f"{name}.attention.{part}"])
            return y.unflatten(-1, (heads, -1)).transpose(-3, -2)

        queries, keys, values = (by_head(part) for part in ("queries", "keys", "values"))
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed)
        return linear(mixed.transpose(-3, -2).flatten(-2), "attention.output")

    def perceptron(x):
        return linear(functional.gelu(linear(x, "perceptron.rise")), "perceptron.fall")

    if normalize_first:
        x = x + attention(normalized(x, "attention_norm"))
        return x + perceptron(normalized(x, "perceptron_norm"))
    x = normalized(x + attention(x), "attention_norm")
    return normalized(x + perceptron(x), "perceptron_norm")


@pytest.fixture(scope="session")
def seen(text, texts):
    """Logits and attention of masked texts."""
    return forward(text, *texts, return_attention=True)
