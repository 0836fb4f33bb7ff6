import dataclasses
from threading import Thread

import numpy as np
import pytest

from attractor.margin import MarginProblem, _solve, solve, solved_once as solved_once_module
from attractor.margin.solved_once import solved_once
from attractor.support.threads import use_threads


@pytest.fixture
def problem():
    """Instances of four and of five constraints, one of them infeasible."""
    random = np.random.default_rng(3)
    left, right = random.normal(size=(2, 6, 5, 3))
    present = np.ones((6, 5), dtype=bool)
    present[1::2, 2] = False
    left[4, 1], right[4, 1] = -left[4, 0], right[4, 0]
    return MarginProblem(left, right, present=present)


@pytest.fixture
def solved(monkeypatch):
    """How many instances each call of the methods was handed."""
    counts, attempt = [], _solve.attempt

    def counted(scaled, *arguments):
        counts.append(len(scaled.bounds))
        return attempt(scaled, *arguments)

    monkeypatch.setattr(_solve, "attempt", counted)
    return counts


def bits(solution):
    certificate = dataclasses.astuple(solution.certificate)
    arrays = (solution.W, solution.multipliers, *certificate)
    return [array.tobytes() for array in arrays], solution.status.tolist()


@pytest.mark.parametrize("norm", ["frobenius", "l_3"])
def test_what_was_solved_before_is_not_solved_again_and_has_the_same_bits(problem, norm, solved):
    alone, fewer = bits(solve(problem, norm)), bits(solve(problem[2:5], norm))
    solved.clear()
    with solved_once():
        assert bits(solve(problem[2:5], norm)) == fewer
        assert sum(solved) == 3
        assert bits(solve(problem, norm)) == alone
        assert sum(solved) == 6
        assert bits(solve(problem[::-1], norm)[::-1]) == alone
        assert bits(solve([problem], norm)[0]) == alone
        assert sum(solved) == 6


def test_empty_slots_do_not_tell_instances_apart(problem, solved):
    with solved_once():
        solve(problem)
        alone = solve(problem[1])
    assert sum(solved) == 6
    assert alone.multipliers.tobytes() == solve(problem[1]).multipliers.tobytes()


def test_another_norm_tolerance_or_problem_is_solved(problem, solved):
    changed = MarginProblem(
        problem.left, problem.right, 2 * problem.bounds, present=problem.present
    )
    with solved_once():
        solve(problem)
        for again in ((problem, "l_3"), (changed, "frobenius")):
            solved.clear()
            solve(*again)
            assert sum(solved) == 6
        solved.clear()
        solve(problem, tolerance=1e-6)
        assert sum(solved) == 6


def test_inner_blocks_and_threads_share_and_nothing_is_kept_after(problem, solved):
    with solved_once():
        with solved_once(), use_threads(2):
            solve(problem)
        solve(problem)
        assert sum(solved) == 6
        thread = Thread(target=solve, args=(problem,))  # not started under these settings
        thread.start()
        thread.join()
        assert sum(solved) == 12
    solve(problem)
    assert sum(solved) == 18


def test_uniqueness_is_judged_once_for_solutions_of_the_same_bits(problem, monkeypatch):
    judged, uniqueness_of = [], solved_once_module.uniqueness_of
    monkeypatch.setattr(
        solved_once_module,
        "uniqueness_of",
        lambda *arguments: judged.append(None) or uniqueness_of(*arguments),
    )
    alone = solve(problem, "l_1").uniqueness
    with solved_once():
        first, again, other = (solve(problem, norm) for norm in ("l_1", "l_1", "l_inf"))
        assert np.array_equal(first.uniqueness, alone)
        assert len(judged) == len(problem)
        assert np.array_equal(again.uniqueness, alone)
        assert len(judged) == len(problem)
        assert len(other.uniqueness) == len(problem)
        assert len(judged) == 2 * len(problem)
