"""The matrix of a head in coordinates of its weights."""

import numpy as np
import pytest

from attractor.heads import Captured, Projections
from attractor.heads.captured.rows import trained_matrix

COUNT, TOKENS, HIDDEN, WIDTH = 9, 5, 11, 4


def layer_of(rng, *, rank=WIDTH, bias=True, keys=True, heads=4, key_heads=2):
    """A layer, with the hidden states that it read."""
    key = rng.normal(size=(key_heads, WIDTH, HIDDEN))
    query = rng.normal(size=(heads, WIDTH, rank)) @ rng.normal(size=(heads, rank, HIDDEN))
    offset = rng.normal(size=(heads, WIDTH)) if bias else None
    x, z = rng.normal(size=(COUNT, TOKENS, HIDDEN)), rng.normal(size=(COUNT, HIDDEN))
    queries = np.einsum("hwd,nd->nhw", query, z)
    captured = Captured.from_arrays(
        np.einsum("hwd,ntd->nhtw", key, x) + rng.normal(size=(key_heads, 1, WIDTH)),
        queries if offset is None else queries + offset,
        projections=Projections(query, offset, key if keys else None),
    )
    return captured.layer(0), x, z


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rank", [WIDTH, 2])
def test_scores_and_singular_values_are_those_of_hidden_space(rng, bias, rank):
    layer, x, z = layer_of(rng, rank=rank, bias=bias)
    made = layer.projections
    if bias:
        z = np.concatenate([z, np.ones((COUNT, 1))], -1)
    for head in range(4):
        tokens, W = trained_matrix(layer, head)
        whole = made.query[head]
        if bias:
            whole = np.concatenate([whole, made.bias[head][:, None]], -1)
        whole = made.key[layer.key_head(head)].T @ whole
        scores = np.einsum("ntd,de,ne->nt", x, whole, z)
        found = np.einsum("ntd,de,ne->nt", tokens.keys, W, tokens.queries[:, 0])
        np.testing.assert_allclose(found - found[:, :1], scores - scores[:, :1], atol=1e-11)
        singular = np.linalg.svd(whole, compute_uv=False)
        np.testing.assert_allclose(
            np.linalg.svd(W, compute_uv=False), singular[: min(W.shape)], rtol=1e-10, atol=1e-13
        )
        assert W.shape == (WIDTH, rank + bias)


def test_keys_that_are_not_linear_stay_as_they_are(rng):
    layer, _, _ = layer_of(rng, keys=False)
    tokens, W = trained_matrix(layer, 3)
    np.testing.assert_array_equal(tokens.keys, layer.keys[:, 1])
    scores = np.einsum("ntd,de,ne->nt", tokens.keys, W, tokens.queries[:, 0])
    raw = np.einsum("ntd,nd->nt", layer.keys[:, 1], layer.queries[:, 3])
    np.testing.assert_allclose(scores, raw, atol=1e-12)


def test_without_projections_the_matrix_is_the_identity(rng):
    layer = Captured.from_arrays(rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 2))).layer(0)
    tokens, W = trained_matrix(layer, 0)
    np.testing.assert_array_equal(W, np.eye(2))
    np.testing.assert_array_equal(tokens.queries[:, 0], layer.queries[:, 0])
