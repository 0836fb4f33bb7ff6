import itertools

import numpy as np
import pytest
from margin_examples import unit

from attractor.attention import LinearHead
from attractor.datasets._unit_tokens import unit_tokens
from attractor.geometry import Frobenius, Lp, Nuclear
from attractor.margin import MarginProblem, check_local_optimality
from attractor.margin.selection import Selection, optimal_tokens
from attractor.margin.selections import enumeration
from attractor.margin.selections.enumeration import enumerate_selections, locally_optimal_selections
from attractor.support.errors import InvalidInputError, Status
from attractor.tokens import Tokens


def data_set(n, T, d, seed):
    tokens, head = unit_tokens(n, T, d, seeds=[seed])
    return tokens[0], LinearHead(head.weight[0])


def test_every_combination_is_there_once():
    tokens, _ = data_set(3, 4, 5, 0)
    found = enumerate_selections(tokens)
    assert found.index.tolist() == [list(c) for c in itertools.product(range(4), repeat=3)]
    assert not found.tied.any()


def test_only_admissible_tokens_are_combined(rng):
    tokens = Tokens.causal(rng.normal(size=(2, 3, 4)))
    found = enumerate_selections(tokens)
    assert len(found.mask) == (1 * 2 * 3) ** 2
    assert (found.mask <= tokens.mask).all()
    assert (found.mask.sum(-1) == 1).all()
    assert len(np.unique(found.mask.reshape(36, -1), axis=0)) == 36


def test_too_many_selections_are_counted_and_refused():
    tokens, head = data_set(6, 8, 10, 0)
    with pytest.raises(InvalidInputError, match=r"262,144 selections, more than 100,000"):
        enumerate_selections(tokens)
    with pytest.raises(InvalidInputError, match="more than 15"):
        enumerate_selections(data_set(2, 4, 4, 1)[0], most=15)
    with pytest.raises(InvalidInputError, match="262,144"):
        locally_optimal_selections(tokens, head)
    with pytest.raises(InvalidInputError, match="axis of instances"):
        enumerate_selections(unit_tokens(2, 2, 2, seeds=2)[0])


@pytest.mark.parametrize("p", [1.5, 2, 3])
@pytest.mark.parametrize(
    ("size", "seed", "feasible", "counts"),
    [
        ((2, 4, 4), 1, 16, {1.5: 2, 2: 2, 3: 2}),
        ((2, 4, 4), 2, 16, {1.5: 1, 2: 1, 3: 1}),
        ((2, 4, 4), 3, 16, {1.5: 1, 2: 1, 3: 1}),
        ((2, 5, 3), 1, 25, {1.5: 1, 2: 2, 3: 3}),
        ((3, 4, 2), 3, 52, {1.5: 4, 2: 4, 3: 4}),
    ],
)
def test_counts_of_locally_optimal_selections(size, seed, feasible, counts, p):
    tokens, head = data_set(*size, seed)
    census = locally_optimal_selections(tokens, head, Lp(p))
    assert int(census.feasible.sum()) == feasible
    assert int(census.locally_optimal.sum()) == counts[p]
    assert set(census.statuses[census.feasible]) == {Status.OPTIMAL}
    assert set(census.statuses[~census.feasible]) <= {Status.INFEASIBLE}
    # The best tokens are locally optimal wherever they are feasible.
    best = (census.selections.mask == optimal_tokens(tokens, head).mask).all((1, 2, 3))
    assert (census.locally_optimal == census.feasible)[best].all()


@pytest.mark.parametrize("geometry", [Frobenius(), Lp(3), Nuclear()], ids=lambda g: g.name)
def test_agrees_with_one_selection_at_a_time(geometry):
    tokens, head = data_set(3, 4, 2, 3)
    census = locally_optimal_selections(tokens, head, geometry)
    for i in range(0, 64, 3):
        one = check_local_optimality(tokens, head, census.selections[i], geometry=geometry)
        assert one.holds == census.locally_optimal[i]
        assert one.solution.status is census.statuses[i]
        assert one.solution.geometry == geometry
        if census.feasible[i]:
            assert one.worst_token == tuple(census.worst_token[i])
            np.testing.assert_allclose(one.worst_advantage, census.worst_advantage[i], rtol=1e-12)
            np.testing.assert_allclose(one.solution.norm, census.norms[i], rtol=1e-8)
        else:
            assert np.isnan(census.worst_advantage[i])
            assert (census.worst_token[i] == -1).all()


def test_causal_rows_are_counted_with_their_positions(rng):
    keys = unit(rng.normal(size=(1, 4, 3)))
    tokens = Tokens.causal(keys, labels=rng.choice([-1.0, 1.0], size=(1, 4)))
    head = LinearHead(rng.normal(size=3))
    census = locally_optimal_selections(tokens, head)
    assert len(census) == 24
    for i in range(24):
        one = check_local_optimality(tokens, head, census.selections[i])
        assert one.holds == census.locally_optimal[i]
    # Position 0 has no choice, so nothing ever stands at its margin.
    assert (census.worst_token[census.feasible, 1] > 0).all()


def test_a_list_may_repeat_itself_and_hold_several_tokens_a_row(monkeypatch):
    tokens, head = data_set(3, 4, 5, 0)
    best = optimal_tokens(tokens, head).mask
    two = best | np.roll(best, 1, axis=-1)
    masks = np.stack([best, two, np.roll(best, 1, axis=-1), best])
    solved = []

    def counted(problem, *arguments, **options):
        solved.append(len(problem))
        return solve(problem, *arguments, **options)

    solve = enumeration.solve
    monkeypatch.setattr(enumeration, "solve", counted)
    listed = Selection(masks, np.zeros(masks.shape[:-1], dtype=bool))
    census = locally_optimal_selections(tokens, head, selections=listed)
    assert sum(solved) == 3
    assert census.selections == listed
    assert census.locally_optimal[0] and census.locally_optimal[3]
    assert census.norms[0] == census.norms[3]
    for i in range(4):
        one = check_local_optimality(tokens, head, listed[i])
        assert one.holds == census.locally_optimal[i]
        np.testing.assert_allclose(one.solution.norm, census.norms[i], rtol=1e-12)
    assert (census.locally_optimal_selections.mask == masks[census.locally_optimal]).all()


def test_blocks_do_not_change_the_census(monkeypatch):
    tokens, head = data_set(3, 4, 2, 3)
    whole = locally_optimal_selections(tokens, head)
    monkeypatch.setattr(enumeration, "_BLOCK_ENTRIES", 12 * 4 * 5)
    parts = locally_optimal_selections(tokens, head)
    np.testing.assert_array_equal(parts.locally_optimal, whole.locally_optimal)
    np.testing.assert_allclose(parts.norms, whole.norms, rtol=1e-11)


def test_copies_of_tokens_are_infeasible_without_a_warning(rng, recwarn):
    keys = unit(rng.normal(size=(2, 3, 4)))
    keys[0, 1] = keys[0, 0]
    tokens = Tokens(keys, unit(rng.normal(size=(2, 4))), np.ones(2))
    census = locally_optimal_selections(tokens, LinearHead(rng.normal(size=4)))
    copied = np.isin(census.selections.index[:, 0], (0, 1))
    np.testing.assert_array_equal(census.feasible, ~copied)
    assert set(census.statuses[copied]) == {Status.INFEASIBLE}
    assert not census.locally_optimal[copied].any()
    assert not len(recwarn)


def test_thousands_of_selections():
    tokens, head = data_set(4, 8, 10, 0)
    census = locally_optimal_selections(tokens, head)
    assert len(census) == 4096
    assert census.feasible.all()
    assert (census.gaps < 1e-9).all()
    assert 1 <= census.locally_optimal.sum() < 400
    one = census.selections[int(np.flatnonzero(census.locally_optimal)[-1])]
    assert check_local_optimality(tokens, head, one).holds


def test_census_shows_what_was_found():
    tokens, head = data_set(3, 4, 2, 3)
    census = locally_optimal_selections(tokens, head)
    lines = repr(census).splitlines()
    assert lines[0] == "Local optimality of 64 selections"
    assert [line.split()[-1] for line in lines[2:4]] == ["52", "4"]
    assert any(line.split()[0] == "3,2,2" for line in lines)
    assert max(map(len, lines)) <= 80
    assert "<table" in census._repr_html_()
    data = census.to_xarray()
    assert data["selected"].dims == ("selection", "sequence", "query", "token")
    assert int(data["locally_optimal"].sum()) == 4
    assert data.attrs["geometry"] == "frobenius"


def test_selections_that_do_not_fit_are_refused():
    tokens, head = data_set(3, 4, 5, 0)
    other = enumerate_selections(data_set(2, 4, 5, 0)[0])
    with pytest.raises(InvalidInputError, match="selections"):
        locally_optimal_selections(tokens, head, selections=other)


def test_the_geometry_of_a_solution_must_be_the_one_asked_for():
    from attractor.margin import solve

    tokens, head = data_set(3, 4, 5, 0)
    best = optimal_tokens(tokens, head)
    solution = solve(MarginProblem.from_selection(tokens, best))
    assert check_local_optimality(tokens, head, best, solution, geometry=Frobenius()).holds
    with pytest.raises(InvalidInputError, match="geometry"):
        check_local_optimality(tokens, head, best, solution, geometry=Nuclear())


@pytest.mark.parametrize("geometry", [Lp(1.1), Lp(3), Nuclear()], ids=lambda g: g.name)
def test_how_tightly_problems_are_solved_does_not_change_the_census(geometry):
    tokens, head = data_set(3, 4, 2, 3)
    loose, tight = (
        locally_optimal_selections(tokens, head, geometry, tolerance=tolerance)
        for tolerance in (1e-7, 1e-11)
    )
    assert loose.gaps[loose.feasible].max() > tight.gaps[tight.feasible].max()
    np.testing.assert_array_equal(loose.locally_optimal, tight.locally_optimal)
