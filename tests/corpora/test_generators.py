import numpy as np
import pytest

from attractor.corpora import corpus_structure
from attractor.corpora.generators import order_first_corpus, rolled_out_corpus
from attractor.support.errors import InvalidInputError


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"complete": False, "optimal": (2, 3), "non_optimal": (2, 3, 4)},
        {"repetitions": 3, "uniform": False},
    ],
)
def test_order_first_corpora_are_realizable(seed, settings):
    found = corpus_structure(order_first_corpus(12, seed=seed, **settings).corpus)
    assert found.realizable
    assert found.assumption("optimal token as frequent as any").met
    assert found.collocation.complete
    assert (found.collocation.next_token != np.arange(12)).all()


def test_order_first_corpora_have_the_sizes_asked_for():
    orders = corpus_structure(order_first_corpus(20, optimal=(2,), non_optimal=(3,)).corpus).orders
    counts = {
        (len(found[kinds[0]]), len(found[kinds[2]]))
        for query in range(20)
        if (found := orders.classes(query)) and (kinds := list(found))
    }
    assert counts == {(1, 3), (2, 3)}  # a query that is optimal is the only one


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("length", [2, 4, 6])
def test_rolled_out_corpora_are_realizable_and_closed(seed, length):
    drawn = rolled_out_corpus(8, length=length, seed=seed)
    found = corpus_structure(drawn.corpus)
    assert all(check.met for check in found.assumptions)
    assert drawn.corpus.sentences == 8
    short = int((drawn.corpus.lengths < length).sum())
    assert drawn.left_out == short < 8


def test_the_same_seed_draws_the_same():
    for draw in (order_first_corpus, rolled_out_corpus):
        one, two, other = (draw(9, seed=seed).corpus for seed in (3, 3, 4))
        assert np.array_equal(one.tokens, two.tokens)
        assert not np.array_equal(one.tokens, other.tokens)


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match="vocabulary"):
        order_first_corpus(3)
    with pytest.raises(InvalidInputError, match="optimal"):
        order_first_corpus(9, optimal=(0,))
    with pytest.raises(InvalidInputError, match="length"):
        rolled_out_corpus(9, length=1)
    with pytest.raises(InvalidInputError, match="vocabulary"):
        rolled_out_corpus(1)
