import numpy as np
import pytest
from margin_examples import random_tokens, stored_tokens

from attractor.margin import MarginProblem, check_local_optimality, solve
from attractor.margin.selection import Selection, token_scores
from attractor.support.errors import DuplicateTokensWarning, InvalidInputError, Status
from attractor.tokens import Tokens


def head_of(v):
    return lambda outputs: outputs @ v


def test_optimal_tokens_are_locally_optimal():
    tokens, selection, v = stored_tokens(slice(0, 6))
    for i in range(6):
        result = check_local_optimality(tokens[i], head_of(v[i]), selection[i])
        assert result.holds
        assert result.worst_advantage > 0
        assert result.holds.shape == ()


def test_evidence_is_what_the_definition_asks_for():
    tokens, selection, v = stored_tokens(slice(3, 4))
    tokens, v, best = tokens[0], v[0], selection.index[0]
    rng = np.random.default_rng(0)
    answers = set()
    for _ in range(40):
        moved = rng.random(6) < 0.2
        index = np.where(moved, rng.integers(0, 8, size=6), best)
        chosen = Selection.from_index(tokens, index)
        solution = solve(MarginProblem.from_selection(tokens, chosen))
        result = check_local_optimality(tokens, head_of(v), chosen, solution)
        scores = token_scores(tokens, head_of(v))
        own = np.where(chosen.mask, scores, -np.inf).max(-1, keepdims=True)
        expected = bool((own > scores)[solution.support_tokens].all())
        assert bool(result.holds) == expected
        n, k, t = result.worst_token
        assert result.support_tokens[n, k, t]
        assert result.worst_advantage == result.score_advantage[n, k, t]
        assert ("yes" if expected else "no") in repr(result)
        answers.add(expected)
    assert answers == {True, False}


def test_a_higher_score_off_the_support_does_no_harm():
    # Token 2 scores highest, but lies far inside the margin.
    tokens = Tokens(np.array([[[0.0, 0], [-1.0, 0], [-5.0, 0]]]), np.ones((1, 1)), [1.0])
    head = dict(zip([0.0, -1.0, -5.0], [1.0, 0.0, 2.0], strict=True))
    result = check_local_optimality(
        tokens, lambda x: np.vectorize(head.get)(x[..., 0]), Selection.from_index(tokens, [0])
    )
    assert result.support_tokens[0, 0].tolist() == [False, True, False]
    assert result.holds
    assert result.score_advantage[0, 0, 2] == -1


def test_equal_scores_on_the_support_are_not_enough():
    tokens = Tokens(np.array([[[1.0, 0], [-1.0, 0]]]), np.ones((1, 1)), [1.0])
    result = check_local_optimality(
        tokens, lambda x: 0 * x[..., 0], Selection.from_index(tokens, [0])
    )
    assert not result.holds
    assert result.worst_advantage == 0


def test_infeasible_selections_are_not_locally_optimal():
    keys = np.array([[[1.0, 0], [1.0, 0], [0, 1.0]]])
    tokens = Tokens(keys, np.ones((1, 2)), [1.0])
    with pytest.warns(DuplicateTokensWarning):
        result = check_local_optimality(
            tokens, lambda x: x[..., 0], Selection.from_index(tokens, [0])
        )
    assert not result.holds
    assert np.isnan(result.worst_advantage)
    assert result.solution.status is Status.INFEASIBLE
    assert not result.support_tokens.any()
    assert "infeasible" in repr(result)


def test_rows_without_support_tokens_hold():
    keys = np.array([[[1.0, 0], [0, 1.0]], [[1.0, 0], [0, 1.0]]])
    tokens = Tokens(keys, np.ones((2, 2)), [1.0, 1.0], mask=[[1, 1], [1, 0]])
    result = check_local_optimality(
        tokens, lambda x: x[..., 0], Selection.from_index(tokens, [0, 0])
    )
    assert result.holds
    assert np.isnan(result.score_advantage[1]).all()


def test_batches():
    tokens, selection = random_tokens(5, 4, 4, 5)
    labeled = Tokens(tokens.keys, tokens.queries, np.ones((5, 4)))
    v = np.random.default_rng(0).normal(size=5)
    result = check_local_optimality(labeled, head_of(v), selection)
    assert result.holds.shape == (5,)
    for i in range(5):
        alone = check_local_optimality(labeled[i], head_of(v), selection[i])
        assert alone.holds == result.holds[i]
        assert alone.worst_token == result.worst_token[i]
    assert result.to_xarray()["score_advantage"].dims == ("instance", "sequence", "query", "token")
    assert "selections" in repr(result)
    assert "<table" in result._repr_html_()


def test_a_solution_of_another_selection_is_refused():
    tokens, selection, v = stored_tokens(slice(0, 1))
    other = Selection.from_index(tokens, (selection.index + 1) % 8)
    solution = solve(MarginProblem.from_selection(tokens, other))
    with pytest.raises(InvalidInputError, match="solution"):
        check_local_optimality(tokens, head_of(v[0]), selection, solution)
