import itertools

import numpy as np
import pytest
from margin_examples import random_tokens

from attractor.geometry import Frobenius, Lp, Nuclear
from attractor.margin import MarginProblem, solve, solve_several
from attractor.margin.selection import Selection
from attractor.support.errors import InvalidInputError, Status
from attractor.tokens import Tokens


def several(tokens, mask):
    mask = np.broadcast_to(np.asarray(mask, dtype=bool), (tokens.sequences, tokens.length))
    return Selection(mask[:, None, :].copy(), np.zeros((tokens.sequences, 1), dtype=bool))


def random_rows(seed, n=3, T=5, d=3):
    """Random prompt data in which each row keeps one to three tokens."""
    rng = np.random.default_rng(seed)
    tokens = Tokens.prompt_vector(rng.normal(size=(n, T, d)))
    return tokens, several(tokens, np.arange(T) < rng.integers(1, 4, size=(n, 1)))


def every_choice(tokens, optimal, geometry):
    """Solutions of all choices, each built from its constraints."""
    problems = []
    for choice in itertools.product(*(np.flatnonzero(row[0]) for row in optimal.mask)):
        left = [
            tokens.keys[i, a] - tokens.keys[i, t]
            for i, a in enumerate(choice)
            for t in np.flatnonzero(~optimal.mask[i, 0])
        ]
        problems.append(MarginProblem(left, np.ones((len(left), 1))))
    return solve(problems, geometry)


def best_margins(tokens, optimal, W):
    """By how much the best optimal token of each row beats all others."""
    scores = tokens.scores(W)
    kept = np.where(optimal.mask, scores, -np.inf).max(-1)
    return kept - np.where(optimal.mask, -np.inf, scores).max(-1)


@pytest.mark.parametrize(
    "geometry", [Frobenius(), Lp(1.5), Lp(3), Lp(np.inf), Nuclear()], ids=lambda g: g.name
)
def test_agrees_with_every_choice_in_turn(geometry):
    statuses = set()
    for seed in range(8):
        tokens, optimal = random_rows(seed)
        found = solve_several(tokens, optimal, geometry)
        norms = [solution.value for solution in every_choice(tokens, optimal, geometry)]
        statuses.add(found.status)
        assert found.combinations == len(norms)
        assert found.value == pytest.approx(min(norms), rel=1e-8)
        assert (found.status is Status.INFEASIBLE) == np.isinf(min(norms))
        if found.status is Status.OPTIMAL:
            assert found.lower_bound <= min(norms) * (1 + 1e-12)
            assert found.gap <= 2e-9
            assert best_margins(tokens, optimal, found.solution.W).min() > 1 - 1e-8
    assert statuses == {Status.OPTIMAL, Status.INFEASIBLE}


def test_few_of_many_choices_are_solved():
    tokens, optimal = random_rows(3, n=8, T=6, d=6)
    optimal = several(tokens, np.arange(6) < 3)
    found = solve_several(tokens, optimal)
    assert found.combinations == 3**8
    assert found.solved < 700
    assert found.status is Status.OPTIMAL
    assert found.uniqueness == "unique"
    rng = np.random.default_rng(0)  # whatever else is tried is no smaller
    for choice in rng.integers(0, 3, size=(30, 8)):
        other = MarginProblem.from_selection(tokens, Selection.from_index(tokens, choice))
        outside = MarginProblem(other.left, other.right, present=other.token >= 3)
        assert solve(outside).value >= found.value * (1 - 1e-9)


def test_one_optimal_token_is_enough_where_all_of_them_cost_more():
    # Token 1 lies close to token 2, which is not optimal: only the all-pairs version has to care.
    keys = [[[1.0, 0.0], [0.0, 0.1], [0.0, 0.0]], [[0.0, 1.0], [0.1, 0.0], [0.0, 0.0]]]
    tokens = Tokens.prompt_vector(keys)
    optimal = several(tokens, [True, True, False])
    found = solve_several(tokens, optimal)
    pairs = [row[a] - row[2] for row in np.array(keys) for a in (0, 1)]
    every = solve(MarginProblem(pairs, np.ones((4, 1))))
    np.testing.assert_allclose(found.solution.W, [[1], [1]], rtol=1e-12)
    assert every.norm == pytest.approx(10 * np.sqrt(2))
    assert found.selection.index.tolist() == [0, 0]


def test_mirror_images_are_both_returned():
    tokens = Tokens.prompt_vector([[[2.0, 1.0], [-2.0, 1.0], [0.0, 0.0]]])
    found = solve_several(tokens, several(tokens, [True, True, False]))
    assert found.uniqueness == "not unique"
    assert len(found.solutions) == 2
    np.testing.assert_allclose(
        sorted(s.W.ravel().tolist() for s in found.solutions), [[-0.4, 0.2], [0.4, 0.2]]
    )
    assert found.value == pytest.approx(found.solutions[1].value)


def test_choices_that_share_a_matrix_count_once():
    # What the second row keeps does not matter: the first row's matrix suits both of its tokens.
    keys = [[[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[5.0, 1.0], [6.0, 0.0], [0.0, 0.0]]]
    tokens = Tokens.prompt_vector(keys)
    found = solve_several(tokens, several(tokens, [[True, False, False], [True, True, False]]))
    assert found.uniqueness == "unique"
    np.testing.assert_allclose(found.solution.W, [[1], [0]], atol=1e-12)
    assert found.selection.index.tolist() == [0, 1]  # the one that leads by more
    copies = Tokens.prompt_vector([[[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]] * 20)
    found = solve_several(copies, several(copies, [True, True, False]), most=100)
    assert found.combinations == 2**20
    assert found.uniqueness == "unique"


def test_a_choice_that_is_infeasible_does_not_stop_the_others():
    # Token 0 lies between tokens 2 and 3; token 1 does not.
    keys = [[[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]]]
    tokens = Tokens.prompt_vector(keys)
    found = solve_several(tokens, several(tokens, [True, True, False, False]))
    assert found.selection.index.tolist() == [1]
    np.testing.assert_allclose(found.solution.W, [[0], [1]], atol=1e-12)
    none = solve_several(tokens, several(tokens, [True, False, False, False]))
    assert none.status is Status.INFEASIBLE
    assert none.value == np.inf and none.gap == np.inf
    assert none.solution.status is Status.INFEASIBLE
    assert "infeasible" in repr(none)


def test_rows_that_keep_everything_ask_for_nothing():
    tokens, _ = random_rows(0)
    found = solve_several(tokens, several(tokens, True))
    assert found.value == 0
    assert found.combinations == 1
    assert not found.solution.support_tokens.any()
    some = solve_several(tokens, several(tokens, [[True] * 5, [True] * 5, [1, 1, 0, 0, 0]]))
    assert some.combinations == 2
    assert not some.solution.support_tokens[:2].any()


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_the_scale_of_keys_does_not_matter(scale):
    tokens, optimal = random_rows(1)
    found = solve_several(Tokens.prompt_vector(tokens.keys * scale), optimal)
    expected = solve_several(tokens, optimal)
    assert found.value * scale == pytest.approx(expected.value, rel=1e-9)
    assert found.selection == expected.selection


def test_masked_tokens_and_several_queries():
    rng = np.random.default_rng(4)
    tokens = Tokens.causal(rng.normal(size=(1, 4, 6)))
    mask = tokens.mask & (np.arange(4) < 2)
    found = solve_several(tokens, Selection(mask, np.zeros((1, 4), dtype=bool)))
    assert found.combinations == 4  # rows of positions 2 and 3 have tokens outside
    assert found.status is Status.OPTIMAL
    assert found.selection.index.shape == (1, 4)
    data = found.to_xarray()
    assert data["selected"].dims == ("sequence", "query", "token")
    assert "<table" in found._repr_html_()


def test_the_budget_is_kept_and_named():
    tokens, optimal = random_rows(3, n=8, T=6, d=6)
    optimal = several(tokens, np.arange(6) < 3)
    best = solve_several(tokens, optimal).value
    with pytest.raises(InvalidInputError, match=r"most: after .* of 6,561 choices") as error:
        solve_several(tokens, optimal, most=60)
    low, high = (float(word.rstrip(".")) for word in error.value.problem.split(" ")[-3::2])
    assert low < best * (1 + 1e-5) and best < high * (1 + 1e-5)


def test_bad_input_is_refused():
    tokens, _ = random_rows(0)
    with pytest.raises(InvalidInputError, match="tokens: they have an axis of instances"):
        solve_several(*random_tokens(2, 3, 5, 3))
    with pytest.raises(InvalidInputError, match="optimal: its mask has shape"):
        solve_several(tokens, random_tokens(2, 3, 5, 3)[1])
    empty = several(tokens, [[1, 0, 0, 0, 0], [0] * 5, [1, 0, 0, 0, 0]])
    with pytest.raises(InvalidInputError, match=r"optimal: row \(1, 0\) keeps the tokens \[\]"):
        solve_several(tokens, empty)
