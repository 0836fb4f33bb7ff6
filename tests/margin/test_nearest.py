import numpy as np

import attractor as at
from attractor.margin.nearest import nearest_constraints


def test_of_each_query_those_of_smallest_margin_are_taken():
    rng = np.random.default_rng(0)
    mask = rng.random((5, 3, 7)) < 0.8
    mask[..., :2] = True
    tokens = at.Tokens(rng.normal(size=(5, 7, 4)), rng.normal(size=(5, 3, 4)), mask=mask)
    W = rng.normal(size=(4, 4))
    problem = at.MarginProblem.from_selection(tokens, at.attended_tokens(tokens, W))
    nearest = nearest_constraints(problem, W, 2)
    margins = problem.margins(W)
    for sequence, query in np.ndindex(5, 3):
        mine = (problem.sequence == sequence) & (problem.query == query)
        expected = np.sort(margins[mine])[:2]
        np.testing.assert_array_equal(np.sort(margins[mine & nearest]), expected)


def test_of_equal_margins_the_first_are_taken():
    tokens = at.Tokens([[[1.0], [0.0], [0.0], [0.0]]], [[1.0]])
    problem = at.MarginProblem.from_selection(tokens, at.attended_tokens(tokens, np.eye(1)))
    assert nearest_constraints(problem, np.eye(1), 2).tolist() == [True, True, False]
    assert nearest_constraints(problem, np.eye(1), 9).all()
