import functools

import jax
import mpmath
import numpy as np
import pytest

from attractor.attention import AttentionMatrix, attention_rows, get_loss, mean_loss
from attractor.corpora.corpus import Corpus
from attractor.corpora.mechanics import label_mass_tokens, squared_miss, vocabulary_tokens
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision


def written_out(corpus, E, W, loss):
    """The training loss, sample by sample."""
    total = 0.0
    for sample, weight in enumerate(corpus.weights / corpus.weights.sum()):
        X = E[corpus.context(sample)]
        scores = X @ W @ X[-1]
        p = np.exp(scores) / np.exp(scores).sum()
        total += weight * loss(corpus.context(sample), corpus.labels[sample], p, E)
    return total


def label_mass(ids, label, p, E):
    return -np.log(p[ids == label].sum())


def miss(ids, label, p, E):
    logits = E @ (p @ E[ids])
    return (1 - np.exp(logits[label]) / np.exp(logits).sum()) ** 2


@functools.partial(jax.jit, static_argnums=0)
def compiled(loss, W, head, rows):
    return mean_loss(AttentionMatrix(), loss, W, head, rows)


def training_loss(tokens, head, loss, W):
    with double_precision():
        return float(compiled(get_loss(loss), W, head, attention_rows(tokens)))


RAGGED = Corpus.from_samples(
    [[0, 1, 2], [3, 3, 4, 3], [5, 1], [2, 0, 2]], [1, 3, 5, 2], counts=[1, 2, 1, 0.5]
)


def test_losses_are_those_written_out(rng, embeddings):
    W = rng.normal(size=(8, 8))
    for tokens_of, loss, by_hand in (
        (label_mass_tokens, "negative_log", label_mass),
        (vocabulary_tokens, squared_miss, miss),
    ):
        found = training_loss(*tokens_of(RAGGED, embeddings), loss, W)
        assert found == pytest.approx(written_out(RAGGED, embeddings, W, by_hand), rel=1e-13)


def test_corpora_of_different_sizes_side_by_side(rng, embeddings):
    other = Corpus.from_samples([[0, 1], [4, 1]], [0, 1], list("abcdef"))
    W, both = rng.normal(size=(8, 8)), np.stack([embeddings, embeddings + 1])
    for tokens_of, loss in ((label_mass_tokens, "negative_log"), (vocabulary_tokens, squared_miss)):
        tokens, head = tokens_of([RAGGED, other], both)
        assert tokens.keys.shape == (2, 4, 4, 8)
        for i, corpus in enumerate((RAGGED, other)):
            own = head if head.instances is None else head.for_instances(i)
            alone = training_loss(*tokens_of(corpus, both[i]), loss, W)
            assert training_loss(tokens[i], own, loss, W) == pytest.approx(alone, rel=1e-13)


def test_samples_that_count_alike_have_no_weights(cyclic):
    data, _ = cyclic
    tokens, head = label_mass_tokens(data.corpora, data.embeddings)
    assert tokens.weights is None and tokens.mask.all() and head.instances is None
    assert tokens.values.sum() == tokens.instances * tokens.sequences


def test_the_squared_miss_keeps_its_digits():
    with double_precision():
        for lead in (0.0, 30.0, 300.0):
            logits = np.array([lead, 0.3, -1.0])
            weights = [mpmath.exp(x) for x in logits.tolist()]
            exact = float((sum(weights[1:]) / sum(weights)) ** 2)
            assert float(jax.jit(squared_miss)(logits, 0.0)) == pytest.approx(exact, rel=1e-13)
        slope = np.asarray(jax.jit(jax.grad(squared_miss))(np.array([1.0, 2.0, 0.0]), 1.0))
        assert slope.sum() == pytest.approx(0, abs=1e-16) and slope[1] < 0


def test_a_context_without_its_label_is_refused(embeddings):
    corpus = Corpus.from_samples([[0, 1], [2, 3]], [1, 4], list("abcdef"))
    with pytest.raises(InvalidInputError, match="corpora: the context of sample 1 lacks its label"):
        label_mass_tokens(corpus, embeddings)
    vocabulary_tokens(corpus, embeddings)  # this head can say any token


def test_embeddings_that_do_not_fit(embeddings):
    with pytest.raises(InvalidInputError, match=r"embeddings: the shape is \(5, 8\).*6, d"):
        label_mass_tokens(RAGGED, embeddings[:5])
    with pytest.raises(InvalidInputError, match=r"the shape is \(3, 6, 8\)"):
        label_mass_tokens([RAGGED, RAGGED], np.stack([embeddings] * 3))
    with pytest.raises(InvalidInputError, match=r"corpora: \[\] is not Corpus"):
        label_mass_tokens([], embeddings)
