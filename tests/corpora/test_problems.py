import numpy as np
import pytest

from attractor import solve
from attractor.corpora import Corpus, collocation, embeddings, partial_orders
from attractor.corpora.generators import order_first_corpus
from attractor.corpora.problems import (
    attention_problem,
    complete_orders_solution,
    feed_forward_problem,
)
from attractor.support.errors import InvalidInputError, Status


def orders_of(corpus):
    return partial_orders(corpus, collocation(corpus))


@pytest.mark.parametrize("seed", range(3))
def test_feed_forward_solution_is_the_closed_form(seed):
    found = collocation(order_first_corpus(6, seed=seed).corpus)
    solution = solve(feed_forward_problem(found))
    expected = np.full((6, 6), -1 / 6)
    expected[found.next_token, np.arange(6)] += 1
    assert np.allclose(solution.W, expected, atol=1e-12)
    assert solution.value**2 == pytest.approx(5, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_attention_solution_of_complete_orders_is_the_closed_form(seed):
    orders = orders_of(order_first_corpus(8, optimal=(1, 2, 3), seed=seed).corpus)
    solution = solve(attention_problem(orders))
    assert np.allclose(solution.W, complete_orders_solution(orders), atol=1e-10)


def test_closed_form_is_wrong_where_relations_are_missing():
    contexts = [[token] for token in range(6)] + [[0, 2, 3, 4, 5], [1, 5]]
    orders = orders_of(Corpus.from_samples(contexts, [1, 2, 3, 4, 5, 0, 1, 2]))
    solution = solve(attention_problem(orders))
    closed = complete_orders_solution(orders)
    # Minimum norm by hand: the second sentence asks w_1 - w_5 >= 1 alone; five tokens share the
    # rest. Every inequality holds in the closed form, and yet it is longer.
    margins = attention_problem(orders).margins(closed)
    assert (margins >= 1 - 1e-12).all()
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(np.sqrt(5) / 2, rel=1e-9)
    assert np.linalg.norm(closed) == pytest.approx(np.sqrt(4 / 3), rel=1e-12)


def test_fewer_dimensions_than_tokens_are_solved_as_given(worked_example):
    orders = orders_of(worked_example)
    table = embeddings.gaussian(4, 3, seed=1)
    assert not embeddings.are_orthonormal(table)
    assert embeddings.are_orthonormal(np.eye(4))
    solution = solve(attention_problem(orders, table))
    problem = attention_problem(orders, table)
    assert (problem.margins(solution.W) >= 1 - 1e-9).all()


def test_bad_input_is_named(worked_example):
    orders = orders_of(worked_example)
    with pytest.raises(InvalidInputError, match="a vector for every token"):
        attention_problem(orders, np.eye(3))
    with pytest.raises(InvalidInputError, match="zero vector"):
        attention_problem(orders, np.eye(4) * [1, 1, 1, 0])
    lonely = Corpus.from_sentences([["a", "b"], ["b", "a"]])
    with pytest.raises(InvalidInputError, match="no relations"):
        attention_problem(orders_of(lonely))
    confused = Corpus.from_samples(
        [["a"], ["b"], ["c"], ["a", "b", "c"], ["b", "c", "c"]], ["b", "c", "a", "b", "c"]
    )
    with pytest.raises(InvalidInputError, match="confused"):
        complete_orders_solution(orders_of(confused))
