"""Matrices of known parts: what the last attention predicts, and what the filter says."""

import numpy as np
import pytest

from attractor.datasets import unit_tokens
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection
from attractor.papers.transformers_as_svms.parts import OUTCOMES, compared_with_parts

TOKENS = unit_tokens(3, 4, 4, seeds=[2, 5, 11])[0]


def _solution(mask):
    selection = Selection(mask, np.zeros(mask.shape[:-1], bool))
    return selection, solve(MarginProblem.from_selection(TOKENS, selection, ties="equal"))


def _outcome(found):
    return [OUTCOMES[place] for place in found["outcome"].values]


@pytest.fixture
def pairs():
    """The first two tokens of each sequence are to be kept, equal but for a finite part."""
    mask = np.zeros(TOKENS.mask.shape, bool)
    mask[..., :2] = True
    return _solution(mask)


def test_a_matrix_of_both_parts_is_predicted_exactly_by_both(pairs):
    selection, solution = pairs
    problem, random = solution.problem, np.random.default_rng(0)
    # The ratio of the two weights of each sequence is to be another one.
    ties = np.where(problem.equality, random.uniform(-2, 2, problem.bounds.shape), 0.0)
    finite = solve(MarginProblem(problem.left, problem.right, ties, True, problem.equality)).W
    W = np.stack([finite + R * solution.W for R in (30.0, 40.0)], 1)
    found = compared_with_parts(TOKENS, W)
    assert _outcome(found) == ["passes"] * 3
    error = found["error"].isel(step=-1)
    assert (np.abs(error.sel(prediction="both parts")) < 1e-12).all()
    lengths = np.linalg.norm(W[:, -1], axis=(1, 2)) * np.linalg.norm(solution.W, axis=(1, 2))
    direct = 1 - (W[:, -1] * solution.W).sum((1, 2)) / lengths
    np.testing.assert_allclose(error.sel(prediction="direction"), direct, atol=1e-14)
    assert (error.sel(prediction="direction") > 1e-6).all()
    assert (error.sel(prediction="single token") > error.sel(prediction="direction")).all()
    assert found["several"].values.all() and (found["kept"] == 2).all()
    assert (found["closed_form"] < 1e-12).all() and (found["angle"] < 1e-12).all()
    weights = np.exp(TOKENS.scores(W[:, -1]))
    given_up = np.where(selection.mask, 0, weights / weights.sum(-1, keepdims=True))
    np.testing.assert_allclose(found["largest_given_up"], np.log10(given_up.max((1, 2, 3))))


def test_a_single_token_is_the_same_direction_in_all_predictions():
    mask = np.zeros(TOKENS.mask.shape, bool)
    mask[..., 1] = True
    W = 50 * _solution(mask)[1].W[:, None]
    found = compared_with_parts(TOKENS, W)
    assert _outcome(found) == ["passes"] * 3 and not found["several"].values.any()
    assert (np.abs(found["error"]) < 1e-12).all()


@pytest.mark.parametrize(
    ("length", "outcome"),
    [(0.0, "all tokens kept"), (10.0, "ambiguous"), (20.0, "passes")],
)
def test_the_filter_asks_for_no_weight_between_its_thresholds(pairs, length, outcome):
    _, solution = pairs
    found = compared_with_parts(TOKENS, length * solution.W[:, None])
    assert _outcome(found) == [outcome] * 3
    if outcome == "all tokens kept":  # no direction to infinity is predicted
        assert found["error"].isnull().all()


def test_attention_may_be_that_of_another_step(pairs):
    _, solution = pairs
    W = np.zeros((3, 2, 4, 4))
    W[:, 1] = solution.W
    late = compared_with_parts(TOKENS, W, 30 * solution.W[:, None])
    assert _outcome(late) == ["passes"] * 3
    assert (np.abs(late["error"].isel(step=-1).sel(prediction="direction")) < 1e-12).all()
    assert late["error"].isel(step=0).isnull().all()
