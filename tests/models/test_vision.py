import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

from .conftest import forward, torch_block, torch_weights, widened


@pytest.mark.torch
@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-5), (True, 1e-12)])
def test_agrees_with_the_primitives_of_pytorch(vision, images, wide, tolerance):
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    model = widened(vision) if wide else vision
    weights = torch_weights(torch, model)
    pixels = torch.tensor(images).to(weights["positions"].dtype)
    patches = [
        pixels[:, row : row + 2, column : column + 2].reshape(5, -1)
        for row in (0, 2)
        for column in (0, 2, 4)
    ]
    tokens = functional.linear(
        torch.stack(patches, 1), weights["patches.weight"], weights["patches.bias"]
    )
    first = weights["class_token"].expand(5, 1, 8)
    x = torch.cat([first, tokens], 1) + weights["positions"]
    for block in range(2):
        x = torch_block(torch, weights, f"blocks.{block}", x, None, 2, normalize_first=True)
    read = functional.layer_norm(x[:, 0], (8,), weights["norm.weight"], weights["norm.bias"])
    expected = functional.linear(read, weights["head.weight"], weights["head.bias"])
    with double_precision():
        found, _ = forward(model, images, return_attention=True)
    np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=tolerance)


@pytest.mark.long
def test_attention_and_dropout(vision, images):
    logits, attention = forward(vision, images, return_attention=True)
    assert logits.shape == (5, 3)
    assert attention.shape == (5, 2, 2, 7, 7)
    np.testing.assert_allclose(np.asarray(attention).sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(forward(vision, jnp.asarray(images)), logits, atol=1e-5)
    dropped = forward(vision, jnp.asarray(images), key=jax.random.key(0))
    assert np.abs(np.asarray(dropped) - logits).max() > 1e-3


def test_refuses_what_does_not_fit(vision, images):
    with pytest.raises(InvalidInputError, match="images"):
        forward(vision, jnp.asarray(images).swapaxes(1, 2))
    with pytest.raises(InvalidInputError, match="mask"):
        forward(vision, jnp.asarray(images), jnp.ones(5, bool))
