import jax.numpy as jnp
import numpy as np

from attractor.models import head_matrices

from .conftest import forward


def test_matrices_of_a_head_give_its_attention(text, texts, seen):
    ids, _ = texts
    matrices = head_matrices(text)
    assert matrices["queries"].shape == (2, 2, 4, 8)
    assert matrices["output"].shape == (2, 2, 8, 4)
    assert matrices["W"].shape == (2, 2, 8, 8)
    attention = np.asarray(seen[1])[:1]  # the one text without padding
    x = (np.asarray(text.tokens)[ids[:1]] + np.asarray(text.positions)).astype(np.float64)
    for head in range(2):
        scores = np.einsum("btd,de,bqe->bqt", x, matrices["W"][0, head], x)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(attention[:, 0, head], weights, atol=1e-5)


def test_values_and_outputs_of_heads_add_up_to_the_layer(text, texts):
    ids, _ = texts
    layer, matrices = text.blocks[1].attention, head_matrices(text)
    x = (np.asarray(text.tokens)[ids] + np.asarray(text.positions))[0]
    added, weights = forward(layer, jnp.asarray(x))
    by_head = [
        np.asarray(weights[head])
        @ x
        @ matrices["values"][1, head].T
        @ matrices["output"][1, head].T
        for head in range(2)
    ]
    np.testing.assert_allclose(added, sum(by_head), atol=1e-5)
