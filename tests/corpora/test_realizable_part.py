import itertools

import numpy as np
import pytest

from attractor.corpora import Corpus, corpus_structure
from attractor.corpora.generators import order_first_corpus
from attractor.corpora.parts import realizable_part
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize("context_length", [None, 1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_is_realizable(seed, context_length):
    random = np.random.default_rng(seed)
    sentences = [random.integers(0, 8, size).tolist() for size in random.integers(2, 8, 60)]
    corpus = Corpus.from_sentences(sentences, range(8), context_length=context_length)
    part = realizable_part(corpus)
    assert not corpus_structure(corpus).realizable
    assert corpus_structure(part.corpus).realizable
    assert part.share == pytest.approx(len(part.samples) / len(corpus.positions))
    assert part.share + sum(part.removed.values()) == pytest.approx(1)
    kept = [part.corpus.words(i) for i in range(len(part.samples))]
    assert kept == [corpus.words(sample) for sample in part.samples]


def test_a_realizable_corpus_is_kept_whole():
    corpus = order_first_corpus(10, seed=1).corpus
    part = realizable_part(corpus)
    assert part.share == 1
    assert len(part.samples) == len(corpus.positions)


def test_near_the_best_of_all_parts_on_small_corpora():
    random = np.random.default_rng(5)
    contexts = [[0], [1], [2], [3]] + [random.integers(0, 4, 3).tolist() for _ in range(8)]
    labels = [1, 2, 3, 0, *random.integers(0, 4, 8).tolist()]
    corpus = Corpus.from_samples(contexts, labels, range(4))
    best = max(
        len(chosen)
        for size in range(9)
        for chosen in itertools.combinations(range(4, 12), size)
        if corpus_structure(
            Corpus.from_samples(
                contexts[:4] + [contexts[i] for i in chosen],
                labels[:4] + [labels[i] for i in chosen],
                range(4),
            )
        ).realizable
    )
    assert len(realizable_part(corpus).samples) - 4 >= best - 1


def test_without_one_token_contexts_there_is_nothing_to_build_on():
    with pytest.raises(InvalidInputError, match="single token"):
        realizable_part(Corpus.from_samples([["a", "b"]], ["a"]))
