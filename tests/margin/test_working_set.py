import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from margin_examples import random_problem

from attractor.geometry import Frobenius, Lp, Nuclear, get_geometry
from attractor.margin import MarginProblem, solve, working_set as working_set_module
from attractor.support.errors import InvalidInputError, Status


def assert_same(found, cold):
    assert found.status is cold.status is Status.OPTIMAL
    assert found.gap <= 1e-9
    assert found.value == pytest.approx(cold.value, rel=2e-9)
    if cold.geometry.name == "frobenius":
        np.testing.assert_allclose(found.W, cold.W, atol=1e-8 * np.abs(cold.W).max())


def rounds_of(monkeypatch):
    """Numbers of constraints that the working set held, round by round."""
    rounds, attempt = [], working_set_module.attempt

    def counted(scaled, *args):
        rounds.append(scaled.bounds.shape[-1])
        return attempt(scaled, *args)

    monkeypatch.setattr(working_set_module, "attempt", counted)
    return rounds


@pytest.mark.parametrize("name", ["frobenius", "nuclear", "spectral", "l_1", "l_1.5", "l_inf"])
def test_a_neighbor_leads_to_the_same_solution(name, monkeypatch):
    geometry, problem = get_geometry(name), random_problem(1, 6, 8, 8)[0]
    moved = MarginProblem(problem.left + 0.01, problem.right)
    rounds = rounds_of(monkeypatch)
    start = solve(problem, geometry).multipliers
    assert rounds == []
    assert_same(solve(moved, geometry, start=start), solve(moved, geometry))
    if name in ("frobenius", "nuclear", "l_1", "l_1.5"):
        assert rounds and rounds[0] < 42  # it began with fewer constraints than there are


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_no_start_changes_the_answer(seed, share):
    rng, problem = np.random.default_rng(seed), random_problem(1, 6, 8, 8)[0]
    start = rng.normal(size=42) * 10.0 ** rng.uniform(-200, 200) * (rng.random(42) < share)
    assert_same(solve(problem, start=start), solve(problem))


def test_a_batch_and_equalities():
    batch = random_problem(3, 6, 8, 8)
    equality = np.zeros(42, dtype=bool)
    equality[::6] = True
    mixed = MarginProblem(batch.left, batch.right, np.where(equality, 0.5, 1.0), equality)
    cold = solve(mixed)
    found = solve(mixed, start=cold.multipliers)
    for i in range(3):
        assert_same(found[i], cold[i])


def test_a_contradiction_among_a_few_is_one_among_all(monkeypatch):
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(42, 8)), rng.normal(size=(42, 8))
    left[7], right[7] = -left[3], right[3]
    problem = MarginProblem(left, right)
    cold = solve(problem)
    rounds = rounds_of(monkeypatch)
    found = solve(problem, start=cold.multipliers)
    assert found.status is cold.status is Status.INFEASIBLE
    assert rounds == [2]
    assert sorted(found.conflict) == [3, 7]


def test_more_constraints_than_a_gram_matrix_holds(monkeypatch):
    rng = np.random.default_rng(0)
    problem = MarginProblem(rng.normal(size=(2300, 8)) + 1.5, rng.normal(size=(2300, 8)) + 1.5)
    cold = solve(problem)
    rounds = rounds_of(monkeypatch)
    assert_same(solve(problem, start=cold.multipliers), cold)
    assert rounds and max(rounds) < 100
    few = np.zeros(2300)
    few[:5] = 1
    assert_same(solve(problem, start=few), cold)


def test_starts_are_checked():
    problem = random_problem(1, 6, 8, 8)[0]
    with pytest.raises(InvalidInputError, match=r"Give a multiplier for each constraint: \(42,\)"):
        solve(problem, start=np.ones(41))
    with pytest.raises(InvalidInputError, match="list"):
        solve([problem, problem], start=np.ones(42))
    with pytest.raises(InvalidInputError, match="finite"):
        solve(problem, start=np.full(42, np.nan))


@pytest.mark.parametrize("geometry", [Frobenius(), Nuclear(), Lp(1)], ids=lambda g: g.name)
def test_a_start_for_no_constraints_is_empty(geometry):
    for shape in ((0,), (2, 0)):
        problem = MarginProblem(np.zeros((*shape, 3)), np.zeros((*shape, 2)))
        solution = solve(problem, geometry, start=np.zeros(shape))
        assert np.all(solution.status == Status.OPTIMAL)
        assert not solution.W.any()
