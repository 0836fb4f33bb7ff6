import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from margin_examples import random_problem, random_tokens

from attractor.margin import MarginProblem
from attractor.margin.selection import Selection
from attractor.support.errors import DuplicateTokensWarning, InvalidInputError
from attractor.tokens import Tokens


def test_constraints_are_margins_of_the_selected_token():
    tokens, selection = random_tokens(3, 4, 5, 6)
    problem = MarginProblem.from_selection(tokens, selection)
    W = np.random.default_rng(1).normal(size=(6, 6))
    scores = tokens.scores(W)
    margins = problem.margins(W)
    assert margins.shape == (3, 16)
    for i, j in np.ndindex(3, 16):
        n, k, t = problem.sequence[i, j], problem.query[i, j], problem.token[i, j]
        chosen = selection.index[i, n]
        assert t != chosen
        assert margins[i, j] == pytest.approx(scores[i, n, k, chosen] - scores[i, n, k, t])
    assert (problem.bounds == 1).all()
    assert not problem.equality.any()


def test_several_selected_tokens_become_equalities():
    rng = np.random.default_rng(0)
    tokens = Tokens(rng.normal(size=(1, 4, 3)), rng.normal(size=(1, 3)))
    mask = np.array([[[False, True, True, False]]])
    selection = Selection(mask, np.zeros((1, 1), dtype=bool))
    problem = MarginProblem.from_selection(tokens, selection)
    assert problem.token.tolist() == [0, 2, 3]
    assert problem.equality.tolist() == [False, True, False]
    assert problem.bounds.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(problem.left, tokens.keys[0, 1] - tokens.keys[0, [0, 2, 3]])


def test_ragged_rows_are_compressed_to_the_largest_count():
    rng = np.random.default_rng(0)
    mask = np.ones((2, 2, 4), dtype=bool)
    mask[0, 0, 2:] = mask[0, 1, 1:] = False
    mask[1, 1, 3:] = False
    tokens = Tokens(rng.normal(size=(2, 2, 4, 3)), rng.normal(size=(2, 2, 3)), mask=mask)
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [[0, 0], [1, 2]]))
    assert problem.present.sum(-1).tolist() == [1, 5]
    assert problem.left.shape == (2, 5, 3)
    assert problem.sequence[0].tolist() == [0, -1, -1, -1, -1]
    assert np.isnan(problem.margins(np.eye(3))[0, 1:]).all()
    assert problem[0].left.shape == (1, 3)
    assert problem[0].present.all()


def test_rows_with_one_token_give_no_constraint():
    tokens = Tokens(np.ones((2, 3, 2)), np.ones((2, 2)), mask=[[1, 1, 0], [1, 0, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicateTokensWarning)
        problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 0]))
    assert problem.sequence.tolist() == [0]


def test_queries_share_keys():
    rng = np.random.default_rng(2)
    tokens = Tokens.causal(rng.normal(size=(2, 4, 3)))
    selection = Selection.from_index(tokens, np.zeros((2, 4), dtype=int))
    problem = MarginProblem.from_selection(tokens, selection)
    assert problem.query.tolist() == [1, 2, 2, 3, 3, 3] * 2
    np.testing.assert_array_equal(problem.right, tokens.queries[problem.sequence, problem.query])


def test_ties_are_refused_by_name_unless_kept_equal():
    rng = np.random.default_rng(0)
    tokens = Tokens(rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3)))
    mask = np.array([[[True, False, False]], [[True, True, False]]])
    selection = Selection(mask, mask.sum(-1) > 1)
    with pytest.raises(InvalidInputError, match=r'sequence 1, query 0.*ties="equal"'):
        MarginProblem.from_selection(tokens, selection)
    assert MarginProblem.from_selection(tokens, selection, ties="equal").equality.sum() == 1


def test_duplicates_and_zero_queries_are_named():
    rng = np.random.default_rng(0)
    keys, queries = rng.normal(size=(3, 2, 4, 3)), rng.normal(size=(3, 2, 3))
    keys[1, 1, 3] = keys[1, 1, 0]
    tokens = Tokens(keys, queries)
    selection = Selection.from_index(tokens, np.zeros((3, 2), dtype=int))
    with pytest.warns(DuplicateTokensWarning, match="instance 1, sequence 1, query 0, token 3"):
        MarginProblem.from_selection(tokens, selection)
    queries[2, 0] = 0
    with pytest.warns(DuplicateTokensWarning) as caught:
        MarginProblem.from_selection(Tokens(keys, queries), selection)
    assert any("instance 2, sequence 0" in str(w.message) for w in caught)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (dict(left=np.ones(3), right=np.ones((1, 2))), "left"),
        (dict(left=np.ones((2, 3)), right=np.ones((3, 2))), "right"),
        (dict(left=np.ones((2, 3)), right=np.ones((2, 2)), bounds=np.ones(3)), "bounds"),
        (dict(left=np.ones((2, 3)), right=np.ones((2, 2)), equality=[1, 0]), "equality"),
        (dict(left=[[np.nan]], right=[[1.0]]), "left"),
        (dict(left=[["a"]], right=[[1.0]]), "left"),
    ],
)
def test_bad_input_is_named(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        MarginProblem(**arguments)


def test_selection_of_another_shape_or_of_masked_tokens_is_refused():
    tokens, selection = random_tokens(2, 3, 4, 5)
    with pytest.raises(InvalidInputError, match="selection"):
        MarginProblem.from_selection(tokens[0], selection)
    masked = Tokens(tokens.keys, tokens.queries, mask=~selection.mask[:, :, 0])
    with pytest.raises(InvalidInputError, match="masked"):
        MarginProblem.from_selection(masked, selection)
    with pytest.raises(InvalidInputError, match="ties"):
        MarginProblem.from_selection(tokens, selection, ties="keep")


def test_gram_and_adjoint_agree_with_explicit_rows():
    problem = random_problem(3, 4, 3, 5)
    rows = (problem.left[..., :, None] * problem.right[..., None, :]).reshape(3, 8, 25)
    np.testing.assert_allclose(problem.gram(), rows @ rows.swapaxes(1, 2), atol=1e-14)
    x = np.random.default_rng(0).normal(size=(3, 8))
    combined = (x[..., None] * rows).sum(1).reshape(3, 5, 5)
    np.testing.assert_allclose(problem.apply_adjoint(x), combined, atol=1e-14)


@given(st.integers(0, 2**16))
def test_margins_and_adjoint_are_adjoint(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(2, 3, 3, 4, seed)
    W, x = rng.normal(size=(7, 2, 4, 4)), rng.normal(size=(7, 2, 6))
    inner = (W * problem.apply_adjoint(x)).sum((-2, -1))
    np.testing.assert_allclose((problem.margins(W) * x).sum(-1), inner, atol=1e-12)


def test_indexing_and_length():
    problem = random_problem(5, 3, 3, 4)
    assert len(problem) == 5
    assert [p.left.shape for p in problem] == [(6, 4)] * 5
    assert problem[1:3].instances == 2
    assert problem[1:3].selection.mask.shape[0] == 2
    np.testing.assert_array_equal(problem[-1].left, problem.left[4])
    with pytest.raises(TypeError):
        len(problem[0])
    with pytest.raises(InvalidInputError):
        problem[0][0]
    assert "5 instances" in repr(problem)


def test_arrays_are_copies_and_read_only():
    left = np.ones((2, 3))
    problem = MarginProblem(left, np.ones((2, 2)))
    left[0, 0] = 5
    assert problem.left[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        problem.bounds[0] = 2
