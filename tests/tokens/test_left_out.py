"""What a mask leaves out may be NaN or infinite, and reaches no number."""

import numpy as np
import pytest

import attractor as at
from attractor.files import load
from attractor.files.columns import tokens_from_scores
from attractor.heads import Captured
from attractor.models import Examples
from attractor.prompts import measures, row_concentration
from attractor.support.errors import InvalidInputError, NotFiniteError

RANDOM = np.random.default_rng(0)
KEYS, QUERIES = RANDOM.normal(size=(2, 3, 2)), RANDOM.normal(size=(2, 2))
MASK = np.array([[True, True, False], [True, True, True]])
LABELS = [1.0, -1.0]


def holes(array, used, *, by):
    """The array with something that is no number wherever it is not used."""
    return np.where(used.reshape(used.shape + (1,) * (array.ndim - used.ndim)), array, by)


@pytest.fixture(params=[np.nan, np.inf, -np.inf])
def hole(request):
    return request.param


def test_keys_and_values_that_no_query_attends_to(hole):
    values = RANDOM.normal(size=(2, 3, 4))
    tokens = at.Tokens(
        holes(KEYS, MASK, by=hole), QUERIES, LABELS, MASK, holes(values, MASK, by=hole)
    )
    np.testing.assert_array_equal(tokens.keys, holes(KEYS, MASK, by=0))
    np.testing.assert_array_equal(tokens.values, holes(values, MASK, by=0))
    assert not tokens.keys.flags.writeable
    alone = at.Tokens(holes(KEYS, MASK, by=hole), QUERIES, LABELS, MASK)
    assert alone.values is alone.keys


def test_an_answer_is_that_of_zeros_there(hole):
    head = at.LinearHead([1.0, 0.5])
    answers = []
    for by in (0, hole):
        tokens = at.Tokens.self_attention(holes(KEYS, MASK, by=by), LABELS, mask=MASK)
        chosen = at.optimal_tokens(tokens, head)
        answers.append(at.solve(at.MarginProblem.from_selection(tokens, chosen)).W)
    np.testing.assert_array_equal(*answers)


def test_what_is_used_is_refused_as_ever(hole):
    used = KEYS.copy()
    used[1, 2, 1] = hole
    for make in (at.Tokens.self_attention, at.Tokens.causal, at.Tokens.prompt_vector):
        with pytest.raises(NotFiniteError, match=r"keys: the entry at \(1, 2, 1\)"):
            make(used, mask=MASK)
    with pytest.raises(NotFiniteError, match=r"keys: the entry at \(0, 2, 0\)"):
        at.Tokens(holes(KEYS, MASK, by=hole), QUERIES, LABELS)
    # One of two queries attends to it.
    seen = np.stack([MASK, np.ones((2, 3), bool)], 1)
    with pytest.raises(NotFiniteError, match=r"keys: the entry at \(0, 2, 0\)"):
        at.Tokens(holes(KEYS, MASK, by=hole), np.stack([QUERIES] * 2, 1), mask=seen)


def test_rows_that_are_padding(hole):
    rows = np.array([[True, False], [True, True]])
    queries = RANDOM.normal(size=(2, 2, 2))
    labels, weights = RANDOM.normal(size=(2, 2)), np.array([[1.0, 5.0], [2.0, 3.0]])
    filled = [
        at.Tokens(
            KEYS,
            holes(queries, rows, by=by),
            holes(labels, rows, by=by),
            weights=holes(weights, rows, by=by),
            rows=rows,
        )
        for by in (0, hole)
    ]
    for name in ("queries", "labels", "weights"):
        np.testing.assert_array_equal(*(getattr(tokens, name) for tokens in filled))
    # A sequence of padding alone has nothing that counts.
    rows = np.array([[False], [True]])
    tokens = at.Tokens(holes(KEYS, rows[:, 0], by=hole), holes(QUERIES, rows[:, 0], by=hole),
                       rows=rows)  # fmt: skip
    assert not tokens.keys[0].any() and not tokens.queries[0].any()


def test_padding_of_causal_sequences(hole):
    labels = RANDOM.normal(size=(2, 3))
    tokens = at.Tokens.causal(holes(KEYS, MASK, by=hole), holes(labels, MASK, by=hole), MASK)
    assert np.isfinite(tokens.keys).all() and np.isfinite(tokens.queries).all()
    assert tokens.labels[0].tolist() == [labels[0, 0], labels[0, 1], labels[0, 0]]


def test_tokens_of_a_prompt_vector(hole):
    tokens = at.Tokens.prompt_vector(holes(KEYS, MASK, by=hole), LABELS, np.ones((2, 2)), MASK)
    assert not tokens.keys[0, 2].any() and not tokens.values[0, 2].any()


def test_files_and_scores(tmp_path, hole):
    scores = RANDOM.normal(size=(2, 3))
    tokens = tokens_from_scores(at.Tokens(KEYS, QUERIES, mask=MASK), holes(scores, MASK, by=hole))
    np.testing.assert_array_equal(tokens.values[..., 0], holes(scores, MASK, by=0))
    with pytest.raises(NotFiniteError, match=r"scores: the entry at \(0, 0\)"):
        tokens_from_scores(at.Tokens(KEYS, QUERIES, mask=MASK), np.full((2, 3), hole))
    np.savez(tmp_path / "t.npz", keys=holes(KEYS, MASK, by=hole), queries=QUERIES, labels=LABELS,
             mask=MASK, head=[1.0, 1.0])  # fmt: skip
    np.testing.assert_array_equal(load(tmp_path / "t.npz").tokens.keys, holes(KEYS, MASK, by=0))


def test_captured_heads(tmp_path, hole):
    captured = Captured.from_arrays(
        holes(KEYS, MASK, by=hole), QUERIES, mask=MASK, values=holes(KEYS, MASK, by=hole)
    )
    layer = captured.layer(0)
    np.testing.assert_array_equal(layer.keys[:, 0], holes(KEYS, MASK, by=0))
    np.testing.assert_array_equal(layer.values[:, 0], holes(KEYS, MASK, by=0))
    assert np.isfinite(layer.attention).all()
    with pytest.raises(NotFiniteError, match="keys: the entry at"):
        Captured.from_arrays(holes(KEYS, MASK, by=hole), QUERIES)


def test_empty_slots_of_a_margin_problem(hole):
    present, vectors = np.array([True, False, True]), np.eye(3)[:, :2] + 1.0
    problem = at.MarginProblem(
        holes(vectors, present, by=hole), vectors, holes(np.ones(3), present, by=hole),
        present=present,
    )  # fmt: skip
    full = at.MarginProblem(vectors, vectors, present=present)
    np.testing.assert_array_equal(at.solve(problem).W, at.solve(full).W)
    with pytest.raises(NotFiniteError, match=r"left: the entry at \(1, 0\)"):
        at.MarginProblem(holes(vectors, present, by=hole), vectors)


def test_examples_prompts_and_rows_of_scores(hole):
    patches = KEYS.astype(np.float32)
    examples = Examples(holes(patches, MASK, by=np.float32(hole)), [0, 1], MASK)
    np.testing.assert_array_equal(examples.inputs, holes(patches, MASK, by=np.float32(0)))
    with pytest.raises(InvalidInputError, match="inputs: the entry at"):
        Examples(holes(patches, MASK, by=np.float32(hole)), [0, 1])
    prompt = measures.Empirical(holes(KEYS, MASK, by=hole), mask=MASK)
    assert np.isfinite(prompt.tilted_mean([0.1, 0.2])).all()
    scores = RANDOM.normal(size=(2, 3))
    assert np.isfinite(row_concentration(holes(scores, MASK, by=hole), MASK).rate).all()


@pytest.mark.parametrize("given", [np.ma.masked_array, lambda array, mask: [np.ma.array(array)]])
def test_masked_arrays_of_numpy_are_refused(given):
    masked = given(KEYS, ~np.broadcast_to(MASK[..., None], KEYS.shape))
    with pytest.raises(InvalidInputError, match=r"keys: it is a masked array.*array.filled\(0\)"):
        at.Tokens(masked, QUERIES)
    with pytest.raises(InvalidInputError, match="W: it is a masked array"):
        at.Tokens(KEYS, QUERIES).scores(np.ma.masked_array(np.eye(2), np.eye(2)))
