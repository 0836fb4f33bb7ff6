"""Columns of constraints that differ by many orders of magnitude, against exact arithmetic."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from certificate_examples import GEOMETRIES
from exact_oracle import exact_norm
from margin_examples import random_problem

from attractor.geometry import Frobenius, Lp
from attractor.margin import MarginProblem, solve
from attractor.margin.algorithms import solve_in_frobenius
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.frobenius import active_sets
from attractor.margin.frobenius.active_sets import solve_exactly
from attractor.margin.ill_conditioned.rounding import exact_rows, round_together
from attractor.margin.linear import simplex
from attractor.margin.linear.simplex import solve_by_exact_simplex
from attractor.margin.methods import Task
from attractor.support.errors import Status

LEFT = np.array([[-6, 4, 4], [-2, 7, 0], [-2, -1, 3], [2, -6, 5]])
EXAMPLE = MarginProblem(LEFT * np.array([1, 1e-6, 1e-12]), np.ones((4, 1)))
some = pytest.mark.parametrize(
    "seeds",
    [range(0, 120), pytest.param(range(120, 360), marks=pytest.mark.slow)],
    ids=["", "more"],
)
exact = pytest.mark.parametrize("geometry", [Frobenius(), Lp(1), Lp(np.inf)], ids=lambda g: g.name)


def scaled_columns(seed):
    """Small integers, columns of left, right or both scaled by powers of ten or two to 1e-12."""
    rng = np.random.default_rng(seed)
    m, d, e = (int(rng.integers(*ends)) for ends in ((3, 9), (2, 5), (1, 4)))
    left, right = (rng.integers(-9, 10, size=(m, size)).astype(float) for size in (d, e))
    left[~left.any(-1), 0] = right[~right.any(-1), 0] = 1
    margins = np.einsum("md,de,me->m", left, rng.integers(-5, 6, size=(d, e)), right)
    if seed % 5:  # else it may have no solution
        left *= np.where(margins < 0, -1, 1)[:, None]
    base, top, sides = *((10.0, 12) if seed % 2 else (2.0, 40)), seed // 2 % 3
    for side, array in enumerate((left, right)):
        if sides in (side, 2):
            spread = top // 2 if sides == 2 else top
            middle = rng.integers(0, spread + 1, size=array.shape[-1])
            powers = np.concatenate([[0, spread], middle])[: array.shape[-1]]
            array *= base ** -rng.permutation(powers)
    return MarginProblem(left, right, rng.choice([1, 0.5, 2, 0, -1], m) if seed // 6 % 2 else 1.0)


def assert_exact(solution, problem, geometry):
    """The exact smallest norm, or that there is none."""
    expected = exact_norm(problem, 2 if geometry == Frobenius() else geometry.p)
    if math.isinf(expected):
        assert solution.status is Status.INFEASIBLE
    else:
        assert solution.status is Status.OPTIMAL
        assert solution.value == pytest.approx(expected, rel=2e-9)


def test_the_example_has_the_norm_it_has_in_exact_arithmetic():
    assert exact_norm(EXAMPLE, 2) == pytest.approx(372093023255.84, rel=1e-13)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_the_example_is_solved_in_every_geometry(geometry):
    solution = solve(EXAMPLE, geometry)
    assert solution.gap <= 1e-8
    if geometry.name not in ("l_1.1", "l_8"):
        assert solution.status is Status.OPTIMAL
    if geometry == Frobenius() or geometry.p in (1, np.inf):
        assert solution.value <= exact_norm(EXAMPLE, 1) * (1 + 1e-9)


@pytest.mark.long
@exact
@some
def test_scaled_columns_are_solved(geometry, seeds):
    problems = [scaled_columns(seed) for seed in seeds]
    for problem, solution in zip(problems, solve(problems, geometry), strict=True):
        assert_exact(solution, problem, geometry)


@pytest.mark.long
@exact
def test_exact_methods_solve_any_problem_alone(geometry):
    methods = [solve_exactly]
    if geometry != Frobenius():
        methods = [solve_in_frobenius, solve_by_exact_simplex]
    for seed in range(40):
        problem = scaled_columns(seed)
        assert_exact(solve(problem, geometry, methods=methods), problem, geometry)


@exact
@pytest.mark.parametrize("seed", range(6))
def test_exact_methods_keep_equalities(geometry, seed):
    problem = random_problem(1, 3, 4, 3, seed=seed)[0]
    equality = np.arange(len(problem.bounds)) % 4 == 0
    twice = [np.concatenate([a, a[:1]]) for a in (problem.left, problem.right, problem.bounds)]
    problem = MarginProblem(*twice, np.append(equality, True))
    alone = solve_exactly if geometry == Frobenius() else solve_by_exact_simplex
    found = solve(problem, geometry, methods=[solve_in_frobenius, alone])
    assert found.value == pytest.approx(solve(problem, geometry).value, rel=2e-9)
    assert found.status is Status.OPTIMAL


def test_equalities_that_contradict_each_other_do_so_exactly():
    left = np.array([[1e-12, 3.0], [2e-12, 6.0], [1.0, 1.0]])
    problem = MarginProblem(left, np.ones((3, 1)), [1.0, 1.5, 1.0], [True, True, False])
    solution = solve(problem, methods=[solve_exactly])
    assert solution.status is Status.INFEASIBLE
    np.testing.assert_allclose(solution.multipliers / solution.multipliers[0], [1, -0.5, 0])


@exact
def test_what_exact_methods_do_not_answer_harms_no_other(geometry, monkeypatch):
    module = active_sets if geometry == Frobenius() else simplex
    alone = solve_exactly if geometry == Frobenius() else solve_by_exact_simplex
    solve_one, calls = module._solve, []

    def fail_on_the_second(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise OverflowError
        return solve_one(*arguments)

    problem = random_problem(3, 2, 3, 3, seed=1)
    monkeypatch.setattr(module, "_solve", fail_on_the_second)
    found = run_alone(alone, problem, geometry)
    assert np.isfinite(found).all((-1, -2)).tolist() == [True, False, True]
    monkeypatch.setattr(module, "_MOST", 3)
    assert np.isnan(run_alone(alone, problem, geometry)).all()


def run_alone(method, problem, geometry):
    """The matrices of a method, from the Frobenius solutions."""
    scaled = ScaledConstraints.of(problem)
    count, m, d = scaled.left.shape
    nothing = np.full((count, d, scaled.right.shape[-1]), np.nan)
    task = Task(scaled, geometry, 1e-9, nothing, np.zeros((count, m)))
    return method(replace(task, W=solve_in_frobenius(task)[0]))[0]


@pytest.mark.parametrize("seed", range(5))
def test_numbers_rounded_together_keep_a_sum_that_all_but_vanishes(seed):
    rng = np.random.default_rng(seed)
    left = rng.integers(-9, 10, size=(4, 3)) * np.array([1, 1e-6, 1e-12])
    rows = exact_rows(left, np.ones((4, 1)))
    numbers = [Fraction(int(k), 7) for k in rng.integers(10**12, 10**13, size=3)]
    # The last row takes the first two entries of the sum away.
    rows[3] = [-sum(x * row[k] for x, row in zip(numbers, rows, strict=False)) for k in (0, 1)]
    rows[3].append(Fraction(0))
    rows[3] = [f / 10**12 for f in rows[3]]
    numbers.append(Fraction(10**12))

    def lost(found):
        """What is left of the entries that vanish, beside the one that does not."""
        exact = [Fraction(x) for x in found.tolist()]
        sums = [sum(x * row[k] for x, row in zip(exact, rows, strict=True)) for k in range(3)]
        return float(max(map(abs, sums[:2])) / abs(sums[2]))

    nearest = np.array([float(x) for x in numbers])
    rounded = round_together(rows, numbers)
    assert lost(rounded) < 1e-3 * lost(nearest)
    np.testing.assert_allclose(rounded, nearest, rtol=1e-2)
