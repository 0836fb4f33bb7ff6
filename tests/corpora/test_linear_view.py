import numpy as np
import pytest

from attractor.corpora import Corpus, linear_view as module
from attractor.corpora.linear_view import linear_view


def test_entropy_and_followers_of_contexts():
    corpus = Corpus.from_samples(["a", "a", "a", "b"], "abba", "ab", counts=[1, 1, 2, 4])
    view = linear_view(corpus, 16)
    assert (view.contexts, view.dimension, view.taken) == (2, 2, 2)
    assert view.entropy == pytest.approx(0.5 * (0.25 * np.log(4) + 0.75 * np.log(4 / 3)))
    assert view.certain == 0.5 and view.followers == 1.5 and view.share == 1
    assert view.separable and view.compatible


def test_too_few_dimensions_separate_nothing():
    # Every token follows some context, and on a line at most two of them can be on top.
    contexts = [f"{number}" for number in range(6)]
    labels = list("012345")
    corpus = Corpus.from_samples(contexts, labels, contexts)
    assert linear_view(corpus, 6).separable is True
    view = linear_view(corpus, 1)
    assert view.separable is False and view.certain == pytest.approx(1)
    assert f"{view.entropy:g}" == "0"


def test_whole_contexts_are_told_apart():
    corpus = Corpus.from_sentences(["aab", "ab", "ba"])
    view = linear_view(corpus, 16)
    assert view.contexts == 3  # a, aa, b
    assert view.followers == pytest.approx((2 * 2 + 1 + 1) / 4)


def test_the_most_frequent_contexts_are_asked_about(monkeypatch, rng):
    monkeypatch.setattr(module, "_LARGEST_PROGRAM", 2 * 2 * 9 * 20)
    corpus = Corpus(rng.integers(0, 10, 600), np.arange(0, 601, 10), 10, context_length=2)
    view = linear_view(corpus, 2, seed=3)
    assert view.taken == 20 < view.contexts
    assert 0 < view.share < 1 and view.dimension == 2
    assert view.summary() == linear_view(corpus, 2, seed=3).summary()
