import numpy as np
import pytest

from attractor.errors import InvalidInputError
from attractor.next_token import TokenClass, corpus_structure
from attractor.next_token.generators import order_first_corpus
from attractor.next_token.samples import distinct_samples
from attractor.next_token.unseen import UnseenKind, draw_unseen


@pytest.fixture(scope="module")
def structure():
    return corpus_structure(order_first_corpus(12, seed=2).corpus)


@pytest.mark.parametrize("length", [None, 3, 7])
@pytest.mark.parametrize("kind", [UnseenKind.OPTIMAL, UnseenKind.NON_COMPARABLE, UnseenKind.TIE])
def test_sentences_are_unseen_and_of_their_kind(structure, kind, length):
    drawn = draw_unseen(
        structure.orders, structure.collocation, kind, count=40, length=length, seed=1
    )
    assert len(drawn.contexts) == 40
    seen = {tuple(row[row >= 0]) for row in distinct_samples(structure.corpus).contexts}
    for row, chosen, label in zip(*drawn[:1], drawn.chosen, drawn.predicted, strict=True):
        context = row[row >= 0]
        assert tuple(context) not in seen
        classes = structure.orders.classes(int(context[-1]))
        best, worse, free = (
            set(context.tolist()) & set(classes[kind])
            for kind in (TokenClass.OPTIMAL, TokenClass.NON_OPTIMAL, TokenClass.NON_COMPARABLE)
        )
        assert int(context[-1]) in worse
        if length is not None:
            assert len(context) == length
        if kind is UnseenKind.OPTIMAL:
            assert best == {chosen} and free
        elif kind is UnseenKind.NON_COMPARABLE:
            assert free == {chosen} and not best
        else:
            assert len(free) == 2 and not best and chosen == label == -1
        if chosen >= 0:
            assert label == structure.collocation.next_token[chosen]


def test_a_kind_that_no_query_allows_gives_none(structure):
    drawn = draw_unseen(structure.orders, structure.collocation, UnseenKind.FREE_QUERY)
    assert drawn.contexts.shape[0] == len(drawn.predicted) == 0


def test_queries_without_relations_attend_to_no_one_token(worked_example):
    from attractor.next_token import Corpus

    structure = corpus_structure(Corpus.from_sentences([["a", "b"], ["b", "a"]]))
    drawn = draw_unseen(
        structure.orders, structure.collocation, UnseenKind.FREE_QUERY, count=3, length=4
    )
    assert drawn.contexts.shape == (3, 4)
    assert (drawn.predicted == -1).all()


def test_bad_input_is_named(structure):
    with pytest.raises(InvalidInputError, match="length"):
        draw_unseen(structure.orders, structure.collocation, UnseenKind.TIE, length=2)
    assert np.array_equal(
        *(
            draw_unseen(structure.orders, structure.collocation, UnseenKind.TIE, seed=4).contexts
            for _ in range(2)
        )
    )
