import numpy as np
import pytest
from margin_examples import random_tokens

from attractor.attention import LinearHead
from attractor.geometry import Lp
from attractor.margin import (
    MarginProblem,
    check_local_optimality,
    solve,
    solve_several,
    tie_classes,
)
from attractor.margin.selection import Selection, token_scores
from attractor.support.errors import InvalidInputError
from attractor.tokens import Tokens


def scored(keys, scores):
    """Prompt data whose token scores are the numbers given, and the head that gives them."""
    keys, scores = np.asarray(keys, dtype=float), np.asarray(scores, dtype=float)
    queries = np.ones((*keys.shape[:-2], 1))
    labels = np.ones(keys.shape[:-2])
    return Tokens(keys, queries, labels, values=scores[..., None]), LinearHead([1.0])


def stuck_example(tied=(-0.5, 0.2)):
    """Training from (5, 0) keeps token 1 of the second row, which scores as low as token 2."""
    keys = [[(1, 0), (0, 0), (-1, 0)], [(-2, 3), (0, 0), tied]]
    return scored(keys, [[1, 0, 0]] * 2)


def train_prompt(tokens, start, steps=3000):
    """Normalized gradient descent on the logistic loss, in pairs of tokens, without underflow."""
    keys, scores, p = tokens.keys, tokens.values[..., 0], np.array(start, dtype=float)
    apart = scores[:, :, None] - scores[:, None, :]
    with np.errstate(divide="ignore"):
        size = np.log(np.abs(apart))
    for _ in range(steps):
        logits = keys @ p
        logs = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        slope = -np.logaddexp(0, (np.exp(logs) * scores).sum(-1))
        pairs = logs[:, :, None] + logs[:, None, :] + size + slope[:, None, None]
        weights = np.sign(apart) * np.exp(pairs - pairs.max())
        step = np.einsum("nst,nsd->d", weights, keys)
        p += 0.1 * step / np.linalg.norm(step)
    return p


def test_training_ends_where_only_the_classes_say_it_may():
    tokens, head = stuck_example()
    end = train_prompt(tokens, (5.0, 0.0))
    stuck = Selection.from_index(tokens, [0, 1])
    assert (tokens.keys @ end).argmax(-1).tolist() == [0, 1]
    strict = check_local_optimality(tokens, head, stuck)
    classes = check_local_optimality(tokens, head, stuck, ties="class")
    assert not strict.holds
    assert classes.holds

    def cosine(solution):
        return solution.W[:, 0] @ end / np.linalg.norm(end) / solution.norm

    assert cosine(strict.solution) < 0.95
    assert cosine(classes.solution) > 0.99999
    np.testing.assert_allclose(classes.solution.W, [[1], [0]], atol=1e-12)
    assert not classes.support_tokens[1].any()  # the second row exerts no force at all
    assert np.isnan(classes.score_advantage[1, 0, 2])
    assert classes.score_advantage[1, 0, 0] == -1


def test_the_published_counterexample_has_two_locally_optimal_selections():
    tokens, head = scored([[(1, 0), (0, 0)], [(-2, 3), (0, 0)]], [[1, 0]] * 2)
    for second, direction in ((0, [1, 1]), (1, [1, 0])):
        selection = Selection.from_index(tokens, [0, second])
        for ties in ("strict", "class"):
            result = check_local_optimality(tokens, head, selection, ties=ties)
            assert result.holds
            np.testing.assert_allclose(result.solution.W[:, 0], direction, atol=1e-12)
    for start, direction in (((1.0, 0.0), [1, 1]), ((5.0, 0.0), [1, 0])):
        end = train_prompt(tokens, start)
        assert end @ direction > 0.999 * np.linalg.norm(end) * np.linalg.norm(direction)


def test_without_ties_it_is_the_ordinary_definition():
    tokens, selection = random_tokens(6, 3, 4, 4, seed=3)
    labeled = Tokens(tokens.keys, tokens.queries, np.ones((6, 3)))
    head = LinearHead(np.random.default_rng(0).normal(size=4))
    best = token_scores(labeled, head).argmax(-1)[..., 0]
    index = np.where(np.arange(6)[:, None] < 3, best, selection.index)
    selection = Selection.from_index(labeled, index)
    for geometry in (None, Lp(3)):
        strict = check_local_optimality(labeled, head, selection, geometry=geometry)
        classes = check_local_optimality(labeled, head, selection, geometry=geometry, ties="class")
        assert 0 < strict.holds.sum() < 6
        np.testing.assert_array_equal(classes.holds, strict.holds)
        np.testing.assert_array_equal(classes.support_tokens, strict.support_tokens)
        np.testing.assert_array_equal(classes.worst_advantage, strict.worst_advantage)
        np.testing.assert_allclose(classes.solution.W, strict.solution.W, rtol=1e-9, atol=1e-12)
        assert classes.worst_token == strict.worst_token


def test_batches_of_ties_of_different_sizes():
    rng = np.random.default_rng(5)
    keys = rng.normal(size=(4, 2, 4, 5))
    scores = rng.integers(0, 3, size=(4, 2, 4))
    tokens, head = scored(keys, scores)
    selection = Selection.from_index(tokens, scores.argmax(-1))
    classes = tie_classes(tokens, head, selection)
    np.testing.assert_array_equal(classes.mask[:, :, 0], scores == scores.max(-1, keepdims=True))
    assert len(np.unique(classes.mask.sum(-1))) > 1
    together = check_local_optimality(tokens, head, selection, ties="class")
    assert together.holds.all()  # nothing scores higher than the best
    for i in range(4):
        alone = check_local_optimality(tokens[i], head, selection[i], ties="class")
        np.testing.assert_array_equal(alone.support_tokens, together.support_tokens[i])
        np.testing.assert_allclose(alone.solution.W, together.solution.W[i], atol=1e-10)


def test_a_lower_class_with_a_higher_token_at_its_margin_does_not_hold():
    tokens, head = scored([[(1, 0), (0, 1), (0, 0)]], [[0, 0, 1]])
    selection = Selection.from_index(tokens, [0])
    result = check_local_optimality(tokens, head, selection, ties="class")
    assert not result.holds
    assert result.worst_token == (0, 0, 2)
    assert result.worst_advantage == -1


def test_where_everything_ties_nothing_is_asked():
    tokens, head = scored(np.random.default_rng(0).normal(size=(2, 3, 2)), np.ones((2, 3)))
    selection = Selection.from_index(tokens, [0, 2])
    assert tie_classes(tokens, head, selection).mask.all()
    result = check_local_optimality(tokens, head, selection, ties="class")
    assert result.holds
    assert not result.solution.W.any()
    assert not check_local_optimality(tokens, head, selection).holds


def test_scores_equal_but_for_rounding_tie():
    rng = np.random.default_rng(2)
    keys, v = rng.normal(size=(20, 3, 5)), rng.normal(size=5)
    across = rng.normal(size=(20, 5))
    across -= np.outer(across @ v / (v @ v), v)  # moves no score, in exact arithmetic
    keys[:, 1] = keys[:, 0] + across
    tokens = Tokens.prompt_vector(keys, np.ones(20))
    assert ((keys[:, 1] @ v) != (keys[:, 0] @ v)).any()
    classes = tie_classes(tokens, LinearHead(v), Selection.from_index(tokens, np.zeros(20, int)))
    np.testing.assert_array_equal(classes.mask[:, 0], [[True, True, False]] * 20)
    assert classes.ties == 20


def test_a_solution_can_be_handed_over():
    tokens, head = stuck_example()
    stuck = Selection.from_index(tokens, [0, 1])
    several = solve_several(tokens, tie_classes(tokens, head, stuck))
    result = check_local_optimality(tokens, head, stuck, several.solution, ties="class")
    assert result.holds
    assert result.solution is several.solution
    plain = solve(MarginProblem.from_selection(tokens, stuck))
    with pytest.raises(InvalidInputError, match="solution: it does not belong"):
        check_local_optimality(tokens, head, stuck, plain, ties="class")
    with pytest.raises(InvalidInputError, match="solution: it does not belong"):
        other = Selection.from_index(tokens, [0, 0])
        check_local_optimality(tokens, head, other, several.solution, ties="class")


def test_bad_input_is_refused():
    tokens, head = stuck_example()
    stuck = Selection.from_index(tokens, [0, 1])
    with pytest.raises(InvalidInputError, match=r"ties: .* Give one of 'strict', 'class'"):
        check_local_optimality(tokens, head, stuck, ties="refuse")
    mixed = Selection(np.array([[[True, True, False]]] * 2), np.zeros((2, 1), dtype=bool))
    with pytest.raises(InvalidInputError, match=r"row .* different scores"):
        tie_classes(tokens, head, mixed)
    with pytest.raises(InvalidInputError, match="selection"):
        tie_classes(tokens, head, Selection(mixed.mask & False, mixed.tied))
