from dataclasses import replace

import numpy as np
import pytest

from attractor.geometry import Nuclear
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection
from attractor.prompts import certified_concentration, row_concentration
from attractor.support.errors import DuplicateTokensWarning, InvalidInputError
from attractor.tokens import Tokens

RNG = np.random.default_rng(8)


def solved(n=4, T=5, d=12, k=2, geometry=None, mask=None, index=None):
    """Random sequences with several queries, and the solution of a selection of their tokens."""
    tokens = Tokens(
        RNG.normal(size=(n, T, d)), RNG.normal(size=(n, k, d)), np.ones((n, k)), mask=mask
    )
    index = RNG.integers(2, size=(n, k)) if index is None else index
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, index))
    return tokens, solve(problem, *(() if geometry is None else (geometry,)))


def attention(tokens, W):
    scores = np.where(tokens.mask, np.asarray(tokens.scores(W)), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("geometry", [None, Nuclear()])
@pytest.mark.parametrize("norm", [0.0, 0.3, 4.0, 40.0])
def test_every_row_has_the_probability_that_is_proven(geometry, norm):
    mask = np.arange(5) < np.array([5, 4, 3, 2])[:, None, None]
    tokens, solution = solved(mask=np.broadcast_to(mask, (4, 2, 5)), geometry=geometry)
    found = certified_concentration(solution)
    selected = solution.problem.selection.mask
    top = (attention(tokens, norm * solution.W / solution.norm) * selected).sum(-1)
    proven = found.top_probability_bound(norm)
    assert (proven <= top * (1 + 1e-12)).all()
    np.testing.assert_allclose(proven, top, rtol=1e-9)  # gaps are proven to all digits
    by_rate = found.rows.top_probability_bound(norm / solution.norm)
    assert (by_rate <= proven * (1 + 1e-12)).all()


def test_rates_are_those_of_the_scores_and_below_that_of_the_margin():
    tokens, solution = solved()
    found = certified_concentration(solution)
    own = row_concentration(tokens.scores(solution.W))
    np.testing.assert_allclose(found.rows.rate, own.rate, rtol=1e-10)
    assert (found.rows.rate >= own.rate * (1 - 1e-15)).all()
    assert (found.rows.rate <= np.log(5) / solution.margin).all()
    assert found.gaps[np.isfinite(found.gaps) & (found.gaps > 0)].min() == pytest.approx(1)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.999, 1 - 1e-9])
def test_the_norm_for_a_probability_is_enough_and_not_too_much(p):
    _, solution = solved()
    found = certified_concentration(solution)
    norm = found.norm_for(p)
    np.testing.assert_allclose(found.top_probability_bound(norm), np.maximum(p, 1 / 5), rtol=1e-9)
    assert (found.top_probability_bound(norm) >= p).all()
    assert (norm <= found.norm * found.rows.rate / (1 - p)).all()


def test_a_token_alone_needs_no_weights_and_tied_ones_never_have_all():
    mask = np.array([[[True, False, False]], [[True, True, True]], [[True, True, True]]])
    tokens = Tokens(RNG.normal(size=(3, 3, 6)), RNG.normal(size=(3, 1, 6)), np.ones(3), mask=mask)
    kept = np.array([[[True, False, False]], [[True, True, False]], [[False, True, False]]])
    selection = Selection(kept, np.zeros((3, 1), bool))
    solution = solve(MarginProblem.from_selection(tokens, selection, ties="equal"))
    found = certified_concentration(solution)
    np.testing.assert_allclose(found.norm_for(0.9)[[0, 1], 0], [0, np.inf])
    bounds = found.top_probability_bound(1e3)[:, 0]
    np.testing.assert_allclose(bounds, [1, 0.5, 1])
    assert found.rows.count[1, 0] == 2


def test_says_what_is_proven():
    found = certified_concentration(solved()[1])
    assert "Proven concentration of 8 rows" in repr(found) and "99 % in every row" in repr(found)
    data = found.to_xarray()
    assert data["gaps"].dims == ("sequence", "query", "token")
    np.testing.assert_array_equal(data["rate"], found.rows.rate)


def test_what_proves_nothing_is_refused():
    _, solution = solved()
    problem = solution.problem
    bare = MarginProblem(problem.left, problem.right)
    short = replace(solution, W=-solution.W)
    tokens = Tokens(np.ones((2, 3, 2)), np.ones((2, 1, 2)), np.ones(2))
    with pytest.warns(DuplicateTokensWarning):
        copies = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [[0], [0]]))
    all_kept = Selection(np.ones((2, 1, 3), bool), np.zeros((2, 1), bool))
    nothing = MarginProblem.from_selection(tokens, all_kept, ties="equal")
    for given, words in (
        (solve(bare), "does not come from a selection"),
        (solve(problem.batched()), "several instances"),
        (short, "not proven to be positive"),
        (solve(copies), "no matrix: infeasible"),
        (solve(nothing), "no matrix"),
    ):
        with pytest.raises(InvalidInputError, match=rf"^solution: .*{words}"):
            certified_concentration(given)
