import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.attention import ConcaveHead, LinearHead, ReLUHead, VocabularyHead
from attractor.margin.selection import Selection, attended_tokens, optimal_tokens, token_scores
from attractor.support.errors import InvalidInputError, TiedTokensWarning
from attractor.tokens import Tokens


def test_optimal_tokens_follow_the_label(rng):
    keys, v = rng.normal(size=(3, 4, 5)), rng.normal(size=5)
    tokens = Tokens(keys, rng.normal(size=(3, 5)), [1, -1, 1])
    predictions = keys @ v
    expected = [predictions[0].argmax(), predictions[1].argmin(), predictions[2].argmax()]
    assert optimal_tokens(tokens, LinearHead(v)).index.tolist() == expected
    np.testing.assert_allclose(token_scores(tokens, LinearHead(v))[1, 0], -predictions[1])


def test_masked_tokens_are_never_chosen(rng):
    keys = np.zeros((1, 3, 2))
    keys[0, :, 0] = [3, 2, 1]
    tokens = Tokens(keys, np.ones((1, 2)), [1], mask=[[0, 1, 1]])
    assert optimal_tokens(tokens, LinearHead([1, 0])).index.tolist() == [1]
    assert attended_tokens(tokens, np.ones((2, 2))).index.tolist() == [1]


def test_ties_are_reported_and_kept_together():
    keys = np.array([[[1.0, 0.0], [1.0, 5.0], [0.0, 1.0]]])
    tokens = Tokens(keys, np.ones((1, 2)), [1])
    with pytest.warns(TiedTokensWarning, match=r"tokens \[0, 1\]"):
        selection = optimal_tokens(tokens, LinearHead([1, 0]))
    assert selection.mask[0, 0].tolist() == [True, True, False]
    assert selection.index.tolist() == [-1]
    assert selection.ties == 1


def test_scores_that_tie_up_to_rounding_tie():
    third = 1 / 3
    keys = np.array([[[0.1, 0.2, 0.0], [0.0, 0.0, 0.3], [0.0, third, 0.0]]])
    assert 0.1 + 0.2 != 0.3
    tokens = Tokens(keys, np.ones((1, 3)), [-1])
    with pytest.warns(TiedTokensWarning):
        assert optimal_tokens(tokens, LinearHead([1, 1, 1])).mask[0, 0].tolist() == [
            True,
            True,
            False,
        ]


def test_a_zero_matrix_attends_to_everything(rng):
    tokens = Tokens(rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 5)))
    assert attended_tokens(tokens, np.zeros((5, 5))).mask.all()
    assert attended_tokens(tokens, np.zeros((5, 5))).ties == 2


def test_attended_tokens_of_many_matrices(rng):
    tokens = Tokens(rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 3, 5)))
    W = rng.normal(size=(6, 2, 5, 5))
    several = attended_tokens(tokens, W)
    assert several.index.shape == (6, 2, 3)
    assert several[3] == attended_tokens(tokens, W[3])


def test_index_round_trip(rng):
    tokens = Tokens(rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 5)))
    assert Selection.from_index(tokens, [3, 0, 2]).index.tolist() == [3, 0, 2]
    causal = Tokens.causal(rng.normal(size=(2, 3, 5)))
    index = [[0, 1, 0], [0, 0, 2]]
    assert Selection.from_index(causal, index).index.tolist() == index


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ([0, 1], r"Give \(3,\)"),
        ([0, 1, 4], "row .2, 0. chooses token 4"),
        ([0, 1, -1], "chooses token -1"),
        ([0.0, 1.0, 2.0], "integers"),
    ],
)
def test_bad_positions_are_refused(rng, index, words):
    tokens = Tokens(rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 5)))
    with pytest.raises(InvalidInputError, match=words):
        Selection.from_index(tokens, index)


def test_scores_need_labels_and_a_head_that_fits(rng):
    with pytest.raises(InvalidInputError, match="carry no labels"):
        optimal_tokens(Tokens(rng.normal(size=(2, 3, 5)), np.ones((2, 5))), LinearHead(np.ones(5)))
    tokens = Tokens(rng.normal(size=(2, 3, 5)), np.ones((2, 5)), [1, 1])
    with pytest.raises(InvalidInputError, match="one number a token"):
        optimal_tokens(tokens, lambda outputs: outputs @ np.ones((5, 5)))
    with pytest.raises(InvalidInputError, match="reads vectors of dimension 4"):
        optimal_tokens(tokens, LinearHead(np.ones(4)))
    with pytest.raises(InvalidInputError, match="it gives 3 logits for each output"):
        optimal_tokens(tokens, VocabularyHead(np.ones((3, 5))))


def test_nonlinear_heads_score_tokens_by_what_they_would_answer_alone(rng):
    keys = rng.normal(size=(2, 3, 4, 5))
    tokens = Tokens(keys, rng.normal(size=(2, 3, 5)), [[1, -1, 1], [-1, 1, 1]])
    hidden, v = rng.normal(size=(5, 6)), rng.normal(size=5)
    signs = tokens.labels[..., None]
    for head, predictions in [
        (ReLUHead(hidden), np.maximum(keys @ hidden, 0).sum(-1)),
        (ConcaveHead(v, 0.7), keys @ v - 0.7 * (keys**2).sum(-1)),
        (eqx.nn.Lambda(lambda x: jnp.tanh(x).sum()), np.tanh(keys).sum(-1)),
        (lambda outputs: np.cos(outputs).sum(-1), np.cos(keys).sum(-1)),
    ]:
        expected = signs * predictions[:, :, None]
        np.testing.assert_allclose(token_scores(tokens, head), expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(
            optimal_tokens(tokens, head).index, expected[:, :, 0].argmax(-1)
        )


def test_tokens_that_a_nonlinear_head_ties_up_to_rounding_tie():
    third = 1 / 3
    keys = np.array([[[0.1, 0.2, 0.0], [0.0, 0.0, 0.3], [0.0, third, 0.0]]])
    tokens = Tokens(keys, np.ones((1, 3)), [-1])
    for scale in (1e-6, 1.0, 1e6):  # hidden sums far larger or smaller than what comes of them
        head = ReLUHead(np.ones((3, 2)) * scale, [1.0, -0.5])
        with pytest.warns(TiedTokensWarning):
            assert optimal_tokens(tokens, head).mask[0, 0].tolist() == [True, True, False]


def test_matrices_of_any_size_attend_and_those_not_finite_to_nothing():
    tokens = Tokens([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 2.0]])
    W = np.array([[[1.0, 0.0], [0.0, 2.0]]])
    none = [np.full_like(W, np.inf), np.full_like(W, np.nan)]
    every = np.concatenate([W, 1e307 * W, 1e-320 * W, *none])
    chosen = attended_tokens(tokens, every)
    assert chosen.index[:, 0].tolist() == [1, 1, 1, -1, -1]


def test_positions_of_single_queries_may_have_an_axis_of_queries(rng):
    tokens = Tokens(rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 2)))
    flat = Selection.from_index(tokens, [1, 0, 3])
    assert np.array_equal(Selection.from_index(tokens, [[1], [0], [3]]).mask, flat.mask)
