import numpy as np
import pytest

from attractor.corpora import Corpus, collocation, corpus_structure
from attractor.corpora.parts import conflicting_part
from attractor.corpora.samples import frequent_samples
from attractor.support.errors import InvalidInputError


def part_of(corpus):
    return conflicting_part(corpus, collocation(corpus))


def test_labels_in_conflict_make_a_component():
    corpus = Corpus.from_samples(["abq", "abq", "abcq"], "aba", "abcq")
    part = part_of(corpus)
    assert not part.explained and part.share == 1
    assert part.components.tolist() == [2] and part.dimension == 1
    assert part.graphs.cyclic.sum() == 2 and part.cyclic_share == 2 / 5
    summary = part.summary()
    assert summary["queries_with_cycles"] == 1 and summary["largest_component"] == 2


def test_samples_are_read_as_more_of_them_allow():
    # n: a -> b -> c -> d -> a; in the first two orders the tokens that explain labels conflict.
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    conflict = [("abd", "b"), ("bad", "c")]
    contexts, labels = zip(*ring, *conflict, strict=True)
    part = part_of(Corpus.from_samples(contexts, labels, "abcd"))
    assert part.explained and part.share == 1
    assert [part.corpus.vocabulary[token] for token in part.preferred[4:]] == ["a", "b"]
    assert part.graphs.cyclic.sum() == 2
    trained, share = part.for_training(1000)
    assert share == pytest.approx(1) and trained.words(4) == "a b d -> a"


def test_samples_without_a_preferred_token_are_left_out():
    part = part_of(Corpus.from_samples(["ab", "ab"], "ac", "abc", counts=[1, 3]))
    assert part.samples.tolist() == [0] and part.share == 0.25
    none = part_of(Corpus.from_samples(["ab"], "c", "abc"))
    assert none.share == none.cyclic_share == none.dimension == 0
    with pytest.raises(InvalidInputError, match="no sample prefers"):
        none.for_training(10)


def test_duplicates_are_counted_and_the_most_frequent_kept():
    corpus = Corpus.from_samples(
        ["abc", "a", "abc", "bca", "cab"], "ababc", "abc", counts=[1, 0.5, 2, 9, 1]
    )
    chosen, share = frequent_samples(corpus, 10**6)
    assert share == pytest.approx(1) and len(chosen.positions) == 4
    # Two contexts of at most three tokens, with three logits each.
    chosen, share = frequent_samples(corpus, 2 * (9 + 3))
    assert {chosen.words(number) for number in range(2)} == {"a -> b", "b c a -> b"}
    assert share == pytest.approx(9.5 / 13.5)
    np.testing.assert_allclose(chosen.weights, np.array([0.5, 9]) / 13.5)
    doubled = Corpus.from_samples(["ab", "ab"], "aa", "ab", counts=[1, 2])
    assert frequent_samples(doubled, 100)[0].sentences == 1


def test_a_part_of_a_realizable_corpus_is_realizable():
    corpus = Corpus.from_sentences(["SVOP", "VOP", "OPP", "PSV"])
    for work in (1, 40, 80):
        assert corpus_structure(frequent_samples(corpus, work)[0]).realizable
