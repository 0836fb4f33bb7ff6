import json
import math
from fractions import Fraction

import numpy as np
import pytest
from certificate_examples import (
    contradictory,
    inequalities,
    load_checker,
    mixed,
    through_json,
)
from hypothesis import given, strategies as st
from margin_examples import random_problem, thin_problem

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, solve
from attractor.margin.certificates import exact
from attractor.margin.certificates.certificate_file import contents
from attractor.support.errors import InvalidInputError, Status

checker = load_checker()


def proves_contradiction(problem, x):
    """In rationals, from the definition alone."""
    left, right = problem.left.tolist(), problem.right.tolist()
    total = sum(Fraction(c) * y for c, y in zip(problem.bounds.tolist(), x, strict=True))
    for i in range(problem.shape[0]):
        for k in range(problem.shape[1]):
            terms = [y * Fraction(a[i]) * Fraction(b[k]) for y, a, b in zip(x, left, right)]  # noqa: B905
            if sum(terms):
                return False
    return total > 0 and all(y >= 0 or e for y, e in zip(x, problem.equality, strict=True))


def test_reading_gives_the_same_bits(tmp_path):
    solution = solve(inequalities(), Nuclear())
    path = tmp_path / "new folder" / "certificate.json"
    solution.save_certificate(path)
    file = json.loads(path.read_text())
    assert np.array_equal(file["W"], solution.W)
    assert np.array_equal(file["multipliers"], np.maximum(solution.multipliers, 0))
    for name in ("left", "right", "bounds", "equality"):
        assert np.array_equal(file[name], getattr(solution.problem, name))
    assert [p.name for p in path.parent.iterdir()] == ["certificate.json"]


@pytest.mark.parametrize(
    ("geometry", "family", "p"),
    [
        (Frobenius(), "entrywise", 2.0),
        (Lp(1), "entrywise", 1.0),
        (Lp(math.inf), "entrywise", "inf"),
        (Lp(1.1), "entrywise", 1.1),
        (Nuclear(), "schatten", 1.0),
        (Spectral(), "schatten", "inf"),
        (Schatten(3), "schatten", 3.0),
    ],
)
def test_norms_by_family_and_exponent(geometry, family, p):
    file = contents(solve(inequalities(), geometry))
    assert file["norm"] == {"family": family, "p": p}
    assert set(file["factors"]) == ({"M", "W"} if family == "schatten" else set())


def test_the_gap_claimed_is_that_of_the_solution_and_rounding():
    for problem in (inequalities(3), mixed(3)):
        solution = solve(problem)
        claim = contents(solution)["claim"]
        assert solution.gap <= claim["gap"] <= solution.gap + 4e-13


def test_batches_are_refused_and_their_instances_are_not(tmp_path):
    solution = solve(random_problem(3, 4, 4, 5))
    with pytest.raises(InvalidInputError, match=r"solution\[i\]"):
        solution.save_certificate(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
    for i in range(3):
        assert checker.verify(through_json(contents(solution[i])))


def test_empty_slots_are_left_out():
    problem = inequalities()
    present = np.arange(12) != 4
    padded = MarginProblem(problem.left, problem.right, problem.bounds, False, present)
    file = contents(solve(padded))
    assert len(file["left"]) == len(file["multipliers"]) == 11
    assert checker.verify(through_json(file))


def test_problems_without_constraints_are_refused(tmp_path):
    solution = solve(MarginProblem(np.zeros((0, 3)), np.zeros((0, 2))))
    with pytest.raises(InvalidInputError, match="no constraints"):
        solution.save_certificate(tmp_path / "file")


def test_a_solution_that_proves_nothing_is_refused(tmp_path):
    solution = solve(inequalities())
    values = {**vars(solution), "W": np.full((4, 3), np.nan), "multipliers": np.zeros(12)}
    certificate = type(solution.certificate)(
        **{**vars(solution.certificate), "gap": np.array([np.inf]), "dual_value": np.array([0.0])}
    )
    nothing = type(solution)(**{**values, "certificate": certificate})
    with pytest.raises(InvalidInputError, match="proves nothing"):
        nothing.save_certificate(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
@pytest.mark.parametrize("geometry", [Frobenius(), Nuclear(), Lp(3)], ids=lambda g: g.name)
def test_sizes_far_from_one(scale, geometry):
    problem = inequalities(2)
    for factors in ((scale, 1.0, 1.0), (1.0, scale, scale), (scale, 1 / scale, 1.0)):
        left, right, c = (
            part * factor
            for part, factor in zip(
                (problem.left, problem.right, problem.bounds), factors, strict=True
            )
        )
        solution = solve(MarginProblem(left, right, c), geometry)
        assert solution.status is Status.OPTIMAL
        assert checker.verify(through_json(contents(solution))).startswith("optimal to ")


@pytest.mark.parametrize("seed", range(4))
def test_solutions_below_the_normal_numbers(seed):
    problem = inequalities(seed)
    scaled = MarginProblem(problem.left * 1e155, problem.right * 1e155, problem.bounds * 1e-4)
    solution = solve(scaled, Nuclear())
    assert solution.status is Status.OPTIMAL and solution.norm < 1e-313
    assert checker.verify(through_json(contents(solution))).startswith("optimal to ")


@pytest.mark.long
def test_a_contradiction_of_rounded_data_is_claimed_as_the_bound_it_is():
    solution = solve(thin_problem(1e-15, 0, 40, 14))
    assert solution.status is Status.OUT_OF_REACH
    assert exact_multipliers(solution.problem, solution.multipliers) is None
    file = through_json(contents(solution))
    assert file["claim"]["kind"] == "lower bound"
    assert file["claim"]["norm_at_least"] == pytest.approx(solution.dual_value, rel=1e-12)
    assert checker.verify(file).startswith("no matrix of norm below ")


def test_stopped_early_claims_the_gap_that_is_left():
    solution = solve(thin_problem(1e-13, 0))
    assert solution.status is Status.STOPPED_EARLY
    file = through_json(contents(solution))
    assert file["claim"]["gap"] == pytest.approx(solution.gap)
    assert checker.verify(file)


def exact_multipliers(problem, multipliers):
    arrays = problem.left, problem.right, problem.bounds, problem.equality
    return exact.exact_multipliers(*arrays, multipliers)


@given(st.integers(0, 2**20), st.integers(1, 3), st.integers(1, 3))
def test_exact_multipliers_of_random_contradictions(seed, d, e):
    problem = contradictory(seed, 6 * d * e, d, e)
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-8, 8, size=(6 * d * e, 1))
    problem = MarginProblem(problem.left * sizes, problem.right)
    solution = solve(problem)
    if solution.status is Status.INFEASIBLE:
        x = exact_multipliers(problem, solution.multipliers)
        assert proves_contradiction(problem, x)
        ratio = np.array([float(Fraction(y, max(map(abs, x)))) for y in x])
        near = solution.multipliers / np.abs(solution.multipliers).max()
        assert np.allclose(ratio, near, rtol=1e-6, atol=1e-9)
        assert checker.verify(through_json(contents(solution))).startswith("infeasible, ")


def test_exact_multipliers_where_the_equation_leaves_several_free():
    a = np.array([[1.0, 0], [-3, 0], [0, 0.1], [0, -0.7], [0.3, 0.1], [-0.3, -0.1]])
    problem = MarginProblem(a, np.ones((6, 1)))
    x = np.array([3.0, 1.0, 7.0, 1.0, 1.0, 1.0])
    found = exact_multipliers(problem, x)
    assert proves_contradiction(problem, found)


def test_exact_multipliers_of_equalities_may_be_negative():
    a = np.array([[1.0, 0], [0, 1], [1, 1]])
    problem = MarginProblem(a, np.ones((3, 1)), [1.0, 1.0, 3.0], True)
    solution = solve(problem)
    found = exact_multipliers(problem, solution.multipliers)
    assert min(found) < 0
    assert proves_contradiction(problem, found)
    assert exact_multipliers(problem, -solution.multipliers) is None


def test_exact_multipliers_are_none_where_there_is_no_contradiction():
    problem = MarginProblem(np.array([[1.0], [-1.0], [2.0]]), np.ones((3, 1)), [1.0, -1.0, 1.0])
    assert exact_multipliers(problem, np.array([1.0, 1.0, 0.0])) is None  # 0 >= 0 only
    assert exact_multipliers(problem, np.array([1.0, 0.0, 1.0])) is None  # rows do not cancel
    assert exact_multipliers(problem, np.zeros(3)) is None
    many = MarginProblem(np.ones((700, 1)), np.ones((700, 1)))
    assert exact_multipliers(many, np.ones(700)) is None  # more than is worth the time
