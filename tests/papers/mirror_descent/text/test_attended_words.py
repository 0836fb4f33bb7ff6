"""Attention on telling words, with models whose attention is known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.models import TextTransformerConfig, build_model
from attractor.papers.mirror_descent.texts import attended_words

VOCABULARY, LENGTH = 12, 6
CONFIG = TextTransformerConfig(
    vocabulary=VOCABULARY, length=LENGTH, width=4, blocks=2, heads=2, hidden=4, dropout=0.0
)


@pytest.fixture(scope="module")
def model():
    return build_model(CONFIG, key=jax.random.key(0))


def looking_everywhere_alike(model):
    """The same model with queries of zero: all scores are zero."""
    blocks = [block.attention.queries for block in model.blocks]
    return eqx.tree_at(
        lambda m: [block.attention.queries for block in m.blocks],
        model,
        [jnp.zeros_like(queries) for queries in blocks],
    )


def texts(n=130, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(2, VOCABULARY, (n, LENGTH))
    ids[:, 0] = 1
    mask = np.arange(LENGTH) < rng.integers(3, LENGTH + 1, n)[:, None]
    telling = mask & (ids < 5)
    telling[:, 0] = False
    return np.where(mask, ids, 0), mask, telling


def test_uniform_attention_is_chance_and_follows_frequency(model):
    ids, mask, telling = texts()
    counts = np.bincount(ids[mask], minlength=VOCABULARY).astype(float)
    found = attended_words(looking_everywhere_alike(model), ids, mask, telling, counts)
    assert found.sentences == telling.any(1).sum()
    np.testing.assert_allclose(found.attention, found.chance, rtol=1e-5)
    some = telling.any(1)
    assert found.chance == pytest.approx((telling.sum(1) / mask.sum(1))[some].mean())
    np.testing.assert_allclose(found.by_frequency, found.chance, rtol=1e-5)


def test_agrees_with_attention_taken_text_by_text(model):
    ids, mask, telling = texts(7, seed=1)
    found = attended_words(model, ids, mask, telling, np.ones(VOCABULARY))
    alone, shares, rescaled = eqx.filter_jit(model), [], []
    for one in range(len(ids)):
        if not telling[one].any():
            continue
        _, attention = alone(jnp.asarray(ids[one]), jnp.asarray(mask[one]), return_attention=True)
        rows = np.asarray(attention)[:, :, 0].mean(1)
        shares.append(rows[:, telling[one]].sum(-1))
        last = rows[-1][mask[one]]
        scaled = (rows[-1] - last.min()) / (last.max() - last.min())
        rescaled.extend(scaled[telling[one]])
    np.testing.assert_allclose(found.attention, np.mean(shares, axis=0), rtol=1e-5)
    assert found.rescaled == pytest.approx(np.mean(rescaled), rel=1e-5)


def test_frequency_alone_explains_what_depends_on_it_alone(model):
    """Where telling words are drawn from tokens at random, the baseline is what they get."""
    rng = np.random.default_rng(2)
    ids, mask, _ = texts(4000, seed=2)
    telling = mask & (rng.random(ids.shape) < 0.3)
    telling[:, 0] = False
    counts = np.bincount(ids[mask], minlength=VOCABULARY).astype(float)
    found = attended_words(model, ids, mask, telling, counts)
    np.testing.assert_allclose(found.attention, found.by_frequency, rtol=0.05)


def test_texts_without_telling_words_say_nothing(model):
    ids, mask, telling = texts(5)
    found = attended_words(model, ids, mask, np.zeros_like(telling), np.ones(VOCABULARY))
    assert found.sentences == 0
    assert np.isnan(found.attention).all()
