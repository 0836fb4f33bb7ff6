"""Corpora that claims are examined on: kept in files, and made smaller."""

import numpy as np
import pytest
from made_up_claims import made_up

from attractor.corpora import Corpus
from attractor.corpora.embeddings import gaussian
from attractor.files import load
from attractor.papers import CorpusCase, Measurement
from attractor.papers.hypotheses_table import check_hypotheses
from attractor.papers.ledger.check import shrink
from attractor.papers.next_token.data import grammar, missing_relations
from attractor.support.errors import InvalidInputError


def claim(measure):
    return made_up(CorpusCase, measure)


def samples(case):
    return {case.corpus.words(number) for number in range(len(case.corpus.positions))}


def sentences(*lines, **other):
    return CorpusCase(Corpus.from_sentences([line.split() for line in lines], **other))


def fails_with(*wanted):
    """Fails as long as a context with these words has some sample."""

    def measure(case, seed):
        found = any(all(word in line.split() for word in wanted) for line in samples(case))
        return Measurement(float(found))

    return claim(measure)


@pytest.mark.parametrize("table", [None, gaussian(4, 6)])
def test_a_file_gives_back_the_same_case(tmp_path, table):
    case = grammar().replace(embeddings=table)
    case.save(tmp_path / "corpus.npz")
    (again,) = load(tmp_path / "corpus.npz").data_sets()
    assert again.hash == case.hash and again.about == "corpus.npz"
    assert again.kind is CorpusCase and again.size == case.size == 13


def test_the_hash_tells_cases_apart():
    cases = [
        grammar(),
        grammar().replace(embeddings=gaussian(4, 6)),
        grammar().replace(initial_scales=(0.0, 0.1)),
        missing_relations(),
    ]
    assert len({case.hash for case in cases}) == len(cases)


def test_a_start_elsewhere_than_zero_does_not_fit_into_a_file(tmp_path):
    with pytest.raises(InvalidInputError, match="initial_scales"):
        grammar().replace(initial_scales=(0.1, 0.0)).save(tmp_path / "corpus.npz")


def test_only_the_sample_that_is_needed_is_left():
    case = sentences("the cat sees a dog", "a dog runs", "the dog sleeps", "some cat runs home")
    found = shrink(fails_with("cat", "dog"), case)
    assert samples(found) == {"cat -> dog"}
    assert found.corpus.vocabulary == ("cat", "dog")
    assert found.about == "corpus, made smaller"


def test_a_word_goes_and_what_it_led_to_stays():
    def measure(case, seed):
        closed = case.structure.realizable and case.structure.collocation.complete
        return Measurement(float(closed and case.corpus.sentences >= 3))

    case = sentences("a b", "b c", "c d", "d e", "e a")
    found = shrink(claim(measure), case)
    assert samples(found) == {"a -> b", "b -> c", "c -> a"}


def test_counts_and_embeddings_go_where_they_do_not_matter():
    corpus = grammar().corpus
    weighted = Corpus(corpus.tokens, corpus.starts, corpus.vocabulary, counts=[1, 2, 3, 4])
    case = CorpusCase(weighted, gaussian(4, 6))
    found = shrink(fails_with("S", "V", "O", "P"), case)
    assert samples(found) >= {"S V O -> P"} and found.embeddings is None
    assert (found.corpus.counts == 1).all()

    needed = claim(lambda case, seed: Measurement(float(case.embeddings is not None)))
    smallest = shrink(needed, case)
    assert smallest.embeddings.shape == (smallest.corpus.vocabulary_size, 6)
    rows = {tuple(row) for row in case.embeddings}
    assert {tuple(row) for row in smallest.embeddings} <= rows


def test_nothing_happens_where_nothing_can_go():
    case = sentences("a b")
    assert shrink(fails_with("a", "b"), case) is case
    assert shrink(fails_with("z"), case) is case


def test_the_budget_is_kept():
    counted = []

    def measure(case, seed):
        counted.append(case)
        return Measurement(1.0)

    shrink(claim(measure), missing_relations(), most=5)
    assert len(counted) <= 6


def test_hypotheses_of_a_corpus_are_its_structure_and_what_claims_ask():
    met = {name: row for name, *row in check_hypotheses(missing_relations()).rows}
    assert met["collocation"][0] and met["no confused tokens"][0]
    assert not met["complete orders"][0] and "3 relations" in met["complete orders"][1]
    assert met["orthonormal embeddings"][0] and met["a choice"][0]
    unit = check_hypotheses(grammar().replace(embeddings=np.ones((4, 2))))
    assert not {name: found for name, found, _ in unit.rows}["orthonormal embeddings"]
