import numpy as np
import pytest

from attractor.margin import MarginProblem
from attractor.margin.selection import attended_tokens
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens


def test_scores_and_adjoint_are_transposes_of_each_other(rng):
    tokens = Tokens(
        rng.normal(size=(2, 3, 4, 5)),
        rng.normal(size=(2, 3, 2, 6)),
        mask=rng.random((2, 3, 2, 4)) < 0.8 + np.eye(4)[0],
    )
    W, S = rng.normal(size=(2, 5, 6)), rng.normal(size=(2, 3, 2, 4))
    scores = np.where(tokens.mask, tokens.scores(W), 0)
    assert np.sum(scores * S) == pytest.approx(np.sum(W * tokens.adjoint(S)), rel=1e-12)
    by_hand = tokens.keys[1, 2, 3] @ W[1] @ tokens.queries[1, 2, 0]
    assert tokens.mask[1, 2, 0, 3]
    assert tokens.scores(W)[1, 2, 0, 3] == pytest.approx(by_hand)
    assert (tokens.scores(W)[~tokens.mask] == -np.inf).all()


def test_scores_broadcast_over_matrices(rng):
    tokens = Tokens(rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 3, 6)))
    W = rng.normal(size=(7, 2, 5, 6))
    np.testing.assert_allclose(tokens.scores(W)[4], tokens.scores(W[4]))
    assert tokens.scores(W).shape == (7, 2, 3, 1, 4)


def test_self_attention_asks_from_the_position_given(rng):
    keys = rng.normal(size=(3, 4, 5))
    assert np.array_equal(Tokens.self_attention(keys).queries[:, 0], keys[:, 0])
    assert np.array_equal(Tokens.self_attention(keys, query_position=-1).queries[:, 0], keys[:, -1])
    with pytest.raises(InvalidInputError, match=r"query_position: 4 is outside.*-4 to 3"):
        Tokens.self_attention(keys, query_position=4)


def test_a_prompt_vector_is_a_matrix_with_one_column(rng):
    keys, weights, p = rng.normal(size=(3, 4, 5)), rng.normal(size=(5, 2)), rng.normal(size=2)
    tokens = Tokens.prompt_vector(keys, np.ones(3), weights)
    np.testing.assert_allclose(tokens.scores(p[:, None])[:, 0], keys @ weights @ p)
    assert np.array_equal(tokens.values, keys)
    with pytest.raises(InvalidInputError, match=r"weights: the shape is \(2, 5\). Give \(5, d\)"):
        Tokens.prompt_vector(keys, weights=weights.T)


def test_causal_rows_see_their_past_and_share_keys(rng):
    tokens = Tokens.causal(
        rng.normal(size=(2, 4, 3)), np.ones((2, 4)), mask=[[1] * 4, [1, 1, 0, 0]]
    )
    assert np.array_equal(tokens.mask[0], np.tri(4, dtype=bool))
    assert tokens.mask[1].sum(-1).tolist() == [1, 2, 1, 1]
    assert tokens.single_token_rows == 4
    assert tokens.keys.size == 2 * 4 * 3
    with pytest.raises(InvalidInputError, match="padding stands before a token"):
        Tokens.causal(rng.normal(size=(1, 3, 2)), mask=[[0, 1, 1]])


def test_instances_keep_their_numbers(rng):
    tokens = Tokens(rng.normal(size=(4, 2, 3, 5)), rng.normal(size=(4, 2, 5)), np.ones((4, 2)))
    assert tokens[1:3].instance_numbers.tolist() == [1, 2]
    assert tokens[1:3][1].instance_numbers.tolist() == [2]
    assert np.array_equal(tokens[1:3][1].keys, tokens.keys[2])
    assert tokens[2].instances is None
    with pytest.raises(InvalidInputError, match="no axis of instances"):
        tokens[2][0]


def test_rows_with_one_token_are_legal_and_counted(rng):
    mask = np.array([[1, 0, 0], [1, 1, 1]])
    tokens = Tokens(rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 5)), mask=mask)
    assert tokens.single_token_rows == 1


def good():
    return {"keys": np.ones((3, 4, 5)), "queries": np.ones((3, 5)), "labels": np.ones(3)}


@pytest.mark.parametrize(
    ("change", "argument", "words"),
    [
        ({"keys": np.ones((3, 4))}, "keys", "sequences, tokens, dimension"),
        ({"keys": np.ones((0, 4, 5))}, "keys", "at least one"),
        ({"rows": np.ones((3, 2), bool)}, "rows", r"Give \(3,\)"),
        ({"rows": [0.5, 1, 1]}, "rows", "Give booleans"),
        ({"rows": [0, 0, 0]}, "rows", "all are padding"),
        ({"keys": np.full((3, 4, 5), np.nan)}, "keys", r"\(0, 0, 0\) is nan"),
        ({"keys": np.ones((3, 1, 5))}, "keys", "no row has two tokens"),
        ({"queries": np.ones((2, 5))}, "queries", r"Give \(3, e\)"),
        ({"queries": np.full((3, 5), np.inf)}, "queries", "inf"),
        ({"labels": np.ones(4)}, "labels", r"Give \(3,\)"),
        ({"labels": ["a", "b", "c"]}, "labels", "not real numbers"),
        ({"mask": np.ones((3, 5), bool)}, "mask", r"Give \(3, 4\)"),
        ({"mask": np.full((3, 4), 0.5)}, "mask", "booleans"),
        ({"mask": np.zeros((3, 4), bool)}, "mask", "no token to attend to"),
        ({"mask": np.eye(3, 4, dtype=bool)}, "mask", "no row has two tokens"),
        ({"values": np.ones((3, 3, 2))}, "values", "one vector for every token"),
        ({"instance_numbers": [1, 2]}, "instance_numbers", "1 distinct integers"),
    ],
)
def test_bad_input_is_named_with_what_would_be_right(change, argument, words):
    with pytest.raises(InvalidInputError, match=words) as error:
        Tokens(**(good() | change))
    assert error.value.argument == argument


def test_arrays_given_later_change_nothing():
    arrays = good()
    tokens = Tokens(**arrays)
    arrays["keys"][:] = 7
    assert (tokens.keys == 1).all()


def test_weights_are_one_on_average_and_go_with_their_instances():
    arrays = good()
    tokens = Tokens(**arrays, weights=[1, 2, 3])
    assert tokens.weights[:, 0].tolist() == [0.5, 1, 1.5]
    assert Tokens(**arrays).weights is None
    several = Tokens(np.ones((2, 3, 4, 5)), np.ones((2, 3, 5)), weights=[[1, 1, 2], [0, 0, 5]])
    assert several.weights.mean((-1, -2)) == pytest.approx([1, 1])
    assert several[1].weights[:, 0].tolist() == [0, 0, 3]


def test_rows_of_padding_are_left_out(rng):
    keys, queries, labels = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 2, 5)), np.ones((3, 2))
    rows = np.array([[1, 1], [1, 0], [0, 0]])
    mask = np.broadcast_to(rows[..., None], (3, 2, 4))
    tokens = Tokens(keys, queries, labels, mask, rows=rows)
    assert tokens.mask.sum(-1).tolist() == [[4, 4], [4, 1], [1, 1]]
    assert tokens.weights.tolist() == [[2, 2], [2, 0], [0, 0]]
    selection = attended_tokens(tokens, rng.normal(size=(5, 5)))
    problem = MarginProblem.from_selection(tokens, selection)
    assert {*zip(problem.sequence, problem.query, strict=True)} == {(0, 0), (0, 1), (1, 0)}
    both = Tokens(keys, queries, weights=[[1, 3], [2, 5], [7, 7]], rows=rows).weights
    assert both.tolist() == [[1, 3], [2, 0], [0, 0]]
    assert Tokens(keys, queries, rows=np.ones((3, 2), bool)).weights is None
    one = Tokens(keys, queries[:, 0], rows=rows[:, 0])
    assert one.weights[:, 0].tolist() == [1.5, 1.5, 0]
    several = Tokens(keys[None], queries[None], rows=rows[None])[[0]]
    np.testing.assert_array_equal(several.weights[0], tokens.weights)


@pytest.mark.parametrize(
    ("weights", "words"), [([1, 2], r"Give \(3,\)"), ([1, -1, 1], "negative"), ([0, 0, 0], "zero")]
)
def test_bad_weights_are_named(weights, words):
    with pytest.raises(InvalidInputError, match=words) as error:
        Tokens(**good(), weights=weights)
    assert error.value.argument == "weights"


def test_queries_of_cross_attention_are_given_apart(rng):
    keys, queries = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 6))
    tokens = Tokens.cross_attention(keys, queries, [1, -1, 1])
    assert np.array_equal(tokens.keys, keys)
    assert np.array_equal(tokens.queries[..., 0, :], queries)
