"""Margin problems of sequence-to-sequence and causal attention."""

import itertools

import numpy as np
import pytest
from margin_examples import unit

from attractor.geometry import Frobenius, Nuclear
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection
from attractor.support.errors import Status
from attractor.tokens import Tokens


def random_rows(tokens, rng):
    """One admissible token a row, drawn at random."""
    draw = np.where(tokens.mask, rng.random(tokens.mask.shape), -1)
    return Selection(draw == draw.max(-1, keepdims=True), np.zeros(tokens.mask.shape[:-1], bool))


def by_hand(keys, selection, causal):
    """The constraints written out, a position at a time."""
    left, right = [], []
    n, T, _ = keys.shape
    for i, k in itertools.product(range(n), range(T)):
        chosen = int(selection.mask[i, k].argmax())
        for t in range(k + 1 if causal else T):
            if t != chosen:
                left.append(keys[i, chosen] - keys[i, t])
                right.append(keys[i, k])
    return MarginProblem(left, right)


@pytest.mark.parametrize("causal", [True, False])
def test_a_constraint_for_every_position_and_every_other_token(rng, causal):
    n, T, d = 3, 4, 12
    keys = unit(rng.normal(size=(n, T, d)))
    tokens = Tokens.causal(keys) if causal else Tokens(keys, keys)
    selection = random_rows(tokens, rng)
    problem = MarginProblem.from_selection(tokens, selection)
    assert problem.constraints == (n * T * (T - 1) // 2 if causal else n * T * (T - 1))
    expected = by_hand(keys, selection, causal)
    np.testing.assert_array_equal(problem.left, expected.left)
    np.testing.assert_array_equal(problem.right, expected.right)
    found, other = solve(problem), solve(expected)
    assert found.status is Status.OPTIMAL
    np.testing.assert_allclose(found.norm, other.norm, rtol=1e-10)


def test_a_row_with_one_token_asks_for_nothing(rng):
    tokens = Tokens.causal(unit(rng.normal(size=(2, 3, 6))))
    problem = MarginProblem.from_selection(tokens, random_rows(tokens, rng))
    assert (problem.query > 0).all()
    assert tokens.single_token_rows == 2


def test_padding_asks_for_nothing(rng):
    keys = unit(rng.normal(size=(2, 4, 6)))
    tokens = Tokens.causal(keys, mask=[[1, 1, 1, 1], [1, 1, 0, 0]])
    problem = MarginProblem.from_selection(tokens, random_rows(tokens, rng))
    assert (problem.sequence == 1).sum() == 1


@pytest.mark.parametrize("geometry", [Frobenius(), Nuclear()], ids=lambda g: g.name)
def test_attention_of_the_solution_keeps_the_selected_tokens(rng, geometry):
    tokens = Tokens.causal(unit(rng.normal(size=(2, 4, 8))))
    selection = random_rows(tokens, rng)
    solution = solve(MarginProblem.from_selection(tokens, selection), geometry)
    scores = tokens.scores(solution.W)
    kept = scores[selection.mask].reshape(2, 4)
    others = np.where(selection.mask, -np.inf, scores)
    assert (kept[..., None] - others >= 1 - 1e-9).all()
    assert solution.support_tokens.shape == tokens.mask.shape


@pytest.mark.parametrize(("n", "T"), [(1, 8), (2, 4), (4, 2)])
def test_as_many_dimensions_as_positions_are_enough(rng, n, T):
    for _ in range(5):
        keys = unit(rng.normal(size=(n, T, n * T)))
        for tokens in (Tokens(keys, keys), Tokens.causal(keys)):
            problem = MarginProblem.from_selection(tokens, random_rows(tokens, rng))
            assert solve(problem).status is Status.OPTIMAL


def test_preferences_that_form_a_cycle_contradict_each_other():
    # Under the same last word, one sequence keeps word a over b, another b over a.
    vocabulary = np.eye(3)
    words = [[0, 1, 2], [1, 0, 2]]
    tokens = Tokens(vocabulary[words], vocabulary[[2, 2]])
    agree = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 1]))
    assert solve(agree).status is Status.OPTIMAL
    cycle = solve(MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 0])))
    assert cycle.status is Status.INFEASIBLE
    problem = cycle.problem
    named = {(int(problem.sequence[j]), int(problem.token[j])) for j in cycle.conflict}
    assert named == {(0, 1), (1, 1)}


def test_a_longer_cycle_needs_all_its_sequences():
    vocabulary = np.eye(4)
    words = np.array([[0, 1, 3], [1, 2, 3], [2, 0, 3]])  # 0 over 1, 1 over 2, 2 over 0
    tokens = Tokens(vocabulary[words], vocabulary[[3, 3, 3]])
    first = Selection.from_index(tokens, [0, 0, 0])
    assert solve(MarginProblem.from_selection(tokens, first)).status is Status.INFEASIBLE
    for left_out in range(3):
        rest = np.delete(np.arange(3), left_out)
        tokens = Tokens(vocabulary[words[rest]], vocabulary[[3, 3]])
        problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 0]))
        assert solve(problem).status is Status.OPTIMAL


def test_opposite_preferences_under_different_words_are_no_contradiction():
    vocabulary = np.eye(4)
    tokens = Tokens(vocabulary[[[0, 1, 2], [1, 0, 3]]], vocabulary[[2, 3]])
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 0]))
    assert solve(problem).status is Status.OPTIMAL
