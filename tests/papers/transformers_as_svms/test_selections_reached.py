"""Separable optimal tokens, and those all others of which are support tokens."""

import pytest

from attractor.datasets import unit_tokens
from attractor.margin.selection import optimal_tokens
from attractor.papers.transformers_as_svms.selections_reached import of_optimal_tokens


@pytest.mark.parametrize(
    ("size", "separable", "all_support"),
    [((4, 4, 2), 72, 0), ((5, 5, 2), 34, 0), ((4, 4, 10), 100, 3), ((4, 4, 20), 100, 38)],
)
def test_counts_of_the_published_data_sets(size, separable, all_support):
    tokens, head = unit_tokens(*size, seeds=100)
    found = of_optimal_tokens([(tokens, head)], [optimal_tokens(tokens, head)])
    assert found["separable"].sum() == separable
    assert found["all_support"].sum() == all_support


def test_one_other_token_is_always_a_support_token_and_always_separable():
    tokens, head = unit_tokens(1, 2, 3, seeds=5)
    found = of_optimal_tokens([(tokens, head)], [optimal_tokens(tokens, head)])
    assert found["separable"].all() and found["all_support"].all()
