import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.models.transformers import read_vector
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

from .conftest import TEXT, built, drawn, forward, torch_block, torch_weights, widened


@pytest.mark.torch
@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-5), (True, 1e-12)])
def test_agrees_with_the_primitives_of_pytorch(text, texts, wide, tolerance):
    torch = pytest.importorskip("torch")
    model = widened(text) if wide else text
    ids, mask = texts
    weights = torch_weights(torch, model)
    x = weights["tokens"][torch.tensor(ids).long()] + weights["positions"]
    real = torch.tensor(mask)
    allowed = (real[:, :, None] & real[:, None, :]) | (torch.arange(6) == 0)
    allowed = allowed[:, None]
    for block in range(2):
        name = f"blocks.{block}"
        x = torch_block(torch, weights, name, x, allowed, 2, normalize_first=False)
    expected = torch.nn.functional.linear(x[:, 0], weights["head.weight"])[:, 0]
    with double_precision():
        found, _ = forward(model, ids, mask, return_attention=True)
    assert found.dtype == (np.float64 if wide else np.float32)
    np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=tolerance)


def test_a_batch_is_each_text_by_itself(text, texts, seen):
    logits, attention = seen
    assert attention.shape == (5, 2, 2, 6, 6)
    one, of_one = jax.vmap(lambda *arguments: forward(text, *arguments, return_attention=True))(
        *texts
    )
    np.testing.assert_allclose(logits, one, atol=1e-6)
    np.testing.assert_allclose(attention, of_one, atol=1e-6)


def test_padding_attends_to_the_first_position_alone_and_changes_nothing(text, texts, seen):
    ids, mask = texts
    logits, attention = seen
    attention = np.asarray(attention)
    np.testing.assert_allclose(attention.sum(-1), 1, atol=1e-6)
    for row, length in enumerate([6, 4, 1, 2, 0]):
        assert not np.any(attention[row, :, :, :length, max(length, 1) :])
        np.testing.assert_array_equal(attention[row, :, :, length:, 0], 1)
    other = np.where(mask, ids, (ids + 7) % 20)
    other[:, 0] = ids[:, 0]
    changed, _ = forward(text, other, mask, return_attention=True)
    np.testing.assert_array_equal(changed, logits)
    shorter = forward(text, ids[3, :2])
    assert shorter.shape == ()
    np.testing.assert_allclose(shorter, logits[3], atol=1e-6)


def test_numbers_are_dropped_with_a_key_alone(text, texts, seen):
    one, other = (
        forward(text, *texts, key=jax.random.key(number), return_attention=True)[0]
        for number in (3, 4)
    )
    again, _ = forward(text, *texts, key=jax.random.key(3), return_attention=True)
    np.testing.assert_array_equal(one, again)
    one, other, plain = map(np.asarray, (one, other, seen[0]))
    assert np.abs(one - plain).max() > 1e-3
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize(
    ("read_out", "normalization"), [("first", "post"), ("first", "pre"), ("masked_mean", "post")]
)
def test_logits_need_not_all_of_the_last_block(texts, read_out, normalization):
    config = dataclasses.replace(TEXT, read_out=read_out, normalization=normalization)
    model = widened(drawn(config))
    with double_precision():
        whole, _ = forward(model, *texts, return_attention=True)
        np.testing.assert_allclose(forward(model, *texts), whole, rtol=1e-12, atol=1e-14)


@pytest.mark.long
def test_weights_start_as_documented():
    model = built(dataclasses.replace(TEXT, vocabulary=4000, width=64, hidden=256))
    assert abs(np.asarray(model.tokens).std() - 1) < 0.01
    for weight in map(
        np.asarray, (model.blocks[0].attention.queries, model.blocks[1].perceptron.fall.weight)
    ):
        bound = weight.shape[1] ** -0.5
        assert bound * 0.99 < np.abs(weight).max() <= bound
        assert abs(weight.std() / bound - 3**-0.5) < 0.02
    assert not np.array_equal(model.blocks[0].attention.queries, model.blocks[0].attention.keys)
    assert not np.array_equal(model.blocks[0].attention.keys, model.blocks[1].attention.keys)


def test_read_outs_average_tokens(texts):
    _, mask = texts
    x = np.arange(5 * 6 * 2.0).reshape(5, 6, 2)
    for read_out, expected in [
        ("first", x[:, 0]),
        ("mean", x.mean(1)),
        ("masked_mean", [x[row, :n].mean(0) for row, n in enumerate([6, 4, 1, 2])] + [[0, 0]]),
    ]:
        found = read_vector(jnp.asarray(x), jnp.asarray(mask), read_out)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.long
def test_several_classes_and_norms_first(texts):
    ids, mask = map(jnp.asarray, texts)
    model = built(dataclasses.replace(TEXT, blocks=1, classes=4, normalization="pre"))
    assert forward(model, ids, mask).shape == (5, 4)
    # What is normalized before it is read out does not feel the scale of embeddings alone.
    larger = eqx.tree_at(lambda tree: tree.norm.weight, model, 2 * model.norm.weight)
    np.testing.assert_allclose(
        forward(larger, ids, mask), 2 * np.asarray(forward(model, ids, mask)), rtol=1e-5
    )


def test_refuses_what_does_not_fit(text):
    with pytest.raises(InvalidInputError, match="ids: texts have 7 tokens"):
        forward(text, jnp.zeros(7, int))
    with pytest.raises(InvalidInputError, match="mask"):
        forward(text, jnp.zeros((2, 5), int), jnp.ones(5, bool))
