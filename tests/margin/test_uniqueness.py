"""Whether solutions are unique, against the range of random functionals over all solutions."""

import warnings
from fractions import Fraction

import cvxpy as cp
import mpmath
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, strategies as st
from margin_examples import random_problem, stored_tokens

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, solution as solution_module, solve
from attractor.margin.faces.uniqueness import uniqueness_of
from attractor.support.errors import Status

SUM, LARGEST = Lp(1), Lp(np.inf)
FOUR = [SUM, LARGEST, Nuclear(), Spectral()]


def tied_problem(seed):
    """Few small integers: with and without ties, rows and columns that nothing asks for."""
    rng = np.random.default_rng(seed)
    d, e, m = rng.integers(1, 4, size=3)
    left, right = rng.integers(-2, 3, size=(m, d)), rng.integers(-2, 3, size=(m, e))
    target = rng.integers(-2, 3, size=(d, e))
    margins = np.einsum("jd,de,je->j", left, target, right)
    left = np.where(margins[:, None] < 0, -left, left).astype(float)
    equality = rng.random(m) < 0.2
    loosened = np.minimum(np.abs(margins), rng.integers(0, 3, size=m))
    bounds = np.where(equality, np.abs(margins), loosened)
    return MarginProblem(left, right.astype(float), bounds, equality)


def width(problem, geometry, value, functional):
    """How far a functional of solutions ranges, by linear programs over all of them."""
    rows = (problem.left[:, :, None] * problem.right[:, None, :]).reshape(len(problem.left), -1)
    m, entries = rows.shape
    identity, empty = np.eye(entries), np.zeros((m, entries))
    cost = np.append(functional.ravel(), np.zeros(entries))
    total = np.ones((1, entries)) if geometry == SUM else identity
    held = problem.equality
    ends = []
    for sign in (1, -1):
        found = scipy.optimize.linprog(
            sign * cost,
            A_ub=np.block(
                [
                    [identity, -identity],
                    [-identity, -identity],
                    [np.zeros((len(total), entries)), total],
                    [-rows[~held], empty[~held]],
                ]
            ),
            b_ub=np.concatenate(
                [
                    np.zeros(2 * entries),
                    np.full(len(total), value * (1 + 1e-9)),
                    -problem.bounds[~held],
                ]
            ),
            A_eq=np.hstack([rows[held], empty[held]]),
            b_eq=problem.bounds[held],
            bounds=(None, None),
            options={"primal_feasibility_tolerance": 1e-10},
        )
        ends.append(found.fun)
    return -(ends[0] + ends[1])


def exact(matrix):
    return [[Fraction(float(x)) for x in row] for row in matrix]


def exact_norm(matrix, geometry):
    """The norm of a matrix of fractions, to 50 digits."""
    entries = [[mpmath.mpf(x.numerator) / x.denominator for x in row] for row in matrix]
    with mpmath.workdps(50):
        if isinstance(geometry, Schatten):
            values = mpmath.svd_r(mpmath.matrix(entries), compute_uv=False)
        else:
            values = [abs(x) for row in entries for x in row]
        return sum(values) if geometry.p == 1 else max(values)


def assert_another_solution(solution):
    """That ``other_solution`` is one, in exact arithmetic, and not the one in hand.

    Norms are held against what the multipliers prove to be the smallest.
    """
    problem, geometry = solution.problem, solution.geometry
    left, right, other = exact(problem.left), exact(problem.right), exact(solution.other_solution)
    d, e = problem.shape
    forms = [[[x * y for y in b] for x in a] for a, b in zip(left, right, strict=True)]
    weights = [Fraction(float(x)) for x in solution.multipliers]
    weights = [x if q else max(x, 0) for x, q in zip(weights, problem.equality, strict=True)]
    combined = [
        [sum(w * form[i][j] for w, form in zip(weights, forms, strict=True)) for j in range(e)]
        for i in range(d)
    ]
    total = sum(w * Fraction(float(c)) for w, c in zip(weights, problem.bounds, strict=True))
    dual = type(geometry)(geometry.q) if type(geometry) is Lp else Schatten(geometry.q)
    least = float(total) / exact_norm(combined, dual)
    tolerance = 1.01 * max(1e-9, solution.gap)
    assert exact_norm(other, geometry) <= least * (1 + tolerance)
    reach = np.linalg.norm(problem.left, axis=-1) * np.linalg.norm(problem.right, axis=-1)
    rounding = 1e-14 * (d + e) * reach * np.linalg.norm(solution.other_solution)
    for form, c, equal, small in zip(
        forms, problem.bounds, problem.equality, rounding, strict=True
    ):
        margin = sum(form[i][j] * other[i][j] for i in range(d) for j in range(e))
        short = Fraction(float(c)) - margin
        allowed = tolerance * c if c > 0 and not equal else max(tolerance * abs(c), small)
        assert (abs(short) if equal else short) <= allowed
    difference = np.linalg.norm(solution.other_solution - solution.W)
    assert difference >= 1e-3 * np.linalg.norm(solution.W)


@pytest.mark.parametrize("geometry", [SUM, LARGEST], ids=lambda geometry: geometry.name)
@given(st.integers(0, 10**6))
def test_answers_agree_with_all_solutions_of_the_linear_program(geometry, seed):
    problem = tied_problem(seed)
    solution = solve(problem, geometry)
    functional = np.random.default_rng(seed).normal(size=problem.shape)
    wide = width(problem, geometry, solution.norm, functional) > 1e-5 * max(solution.norm, 1e-3)
    if solution.uniqueness == "not unique":
        assert_another_solution(solution)
    assert solution.uniqueness == ("not unique" if wide else "unique")


def test_two_entries_leave_a_nuclear_solution_free():
    solution = solve(MarginProblem(np.eye(2), np.eye(2)), Nuclear())
    assert solution.uniqueness == "not unique"
    assert_another_solution(solution)
    assert "one of many with this norm" in repr(solution)


def test_an_entry_that_nothing_asks_for_is_free_in_the_largest_entry_norm():
    solution = solve(MarginProblem([[1.0, 2.0, 0.0]], [[1.0, 1.0]]), LARGEST)
    assert solution.uniqueness == "not unique"
    assert_another_solution(solution)
    difference = solution.other_solution - solution.W
    np.testing.assert_allclose(difference[:2], 0, atol=1e-9)


def test_equal_entries_tie_in_the_sum_norm():
    assert solve(MarginProblem([[1.0, 2.0]], [[1.0, 1.0]]), SUM).uniqueness == "not unique"
    solution = solve(MarginProblem([[1.0, 2.0]], [[1.0, 1.5]]), SUM)
    assert solution.uniqueness == "unique"
    assert "one of many" not in repr(solution)
    assert np.isnan(solution.other_solution).all()


def test_what_the_spans_leave_out_is_free_in_the_spectral_norm():
    solution = solve(MarginProblem([[1.0, 0.0, 0.0]], [[1.0, 0.0]]), Spectral())
    assert solution.uniqueness == "not unique"
    assert_another_solution(solution)
    full = solve(MarginProblem(np.eye(3), np.eye(3)), Spectral())
    assert full.uniqueness == "unique"


@pytest.mark.parametrize("geometry", [SUM, Nuclear()], ids=lambda geometry: geometry.name)
def test_generic_problems_have_one_solution(geometry):
    tokens, selection, _ = stored_tokens(slice(0, 20))
    solution = solve(MarginProblem.from_selection(tokens, selection), geometry)
    assert set(solution.uniqueness) == {"unique"}


@pytest.mark.parametrize("geometry", [Nuclear(), Spectral()], ids=lambda geometry: geometry.name)
def test_answers_agree_with_all_solutions_of_the_cone_program(geometry):
    known = 0
    for seed in range(12):
        problem = tied_problem(seed)
        solution = solve(problem, geometry)
        if solution.uniqueness == "not known" or solution.norm == 0:
            continue
        W = cp.Variable(problem.shape)
        rows = problem.left[:, :, None] * problem.right[:, None, :]
        margins = rows.reshape(len(rows), -1) @ cp.vec(W, order="C")
        size = cp.normNuc(W) if geometry == Nuclear() else cp.sigma_max(W)
        constraints = [size <= solution.norm * (1 + 1e-7), margins >= problem.bounds - 1e-7]
        if problem.equality.any():
            held = np.flatnonzero(problem.equality)
            constraints.append(margins[held] <= problem.bounds[held] + 1e-7)
        functional = np.random.default_rng(seed).normal(size=problem.shape)
        model = cp.Problem(
            cp.Maximize(cp.sum(cp.multiply(functional, W - solution.W))), constraints
        )
        opposite = cp.Problem(cp.Minimize(model.objective.args[0]), constraints)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                range_ = model.solve(solver=cp.CLARABEL) - opposite.solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            continue  # with older BLAS kernels Clarabel gives up on one or another
        known += 1
        wide = range_ > 0.02 * solution.norm  # 1e-7 leaves a curved norm room for its square root
        assert solution.uniqueness == ("not unique" if wide else "unique"), seed
        if wide:
            assert_another_solution(solution)
    assert known >= 6


def test_strictly_convex_norms_have_one_solution():
    problem = MarginProblem(np.eye(2), np.eye(2))
    for geometry in (Frobenius(), Lp(1.5), Schatten(3)):
        assert solve(problem, geometry).uniqueness == "unique"


@pytest.mark.parametrize(
    "geometry", [*FOUR, Frobenius(), Lp(3)], ids=lambda geometry: geometry.name
)
def test_zero_is_the_only_matrix_of_norm_zero_and_no_matrix_is_not_known_to_be_alone(geometry):
    assert solve(MarginProblem([[1.0]], [[1.0]], 0.0), geometry).uniqueness == "unique"
    infeasible = solve(MarginProblem([[1.0], [-1.0]], [[1.0], [1.0]]), geometry)
    assert infeasible.uniqueness == "not known"


def test_batches_answer_one_by_one():
    left = np.array([[[1.0, 2.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]])
    present = np.array([[True, False], [True, True]])
    solution = solve(MarginProblem(left, np.ones((2, 2, 2)), present=present), SUM)
    assert list(solution.uniqueness) == [solution[0].uniqueness, solution[1].uniqueness]
    assert solution.other_solution.shape == (2, 2, 2)
    np.testing.assert_array_equal(solution.other_solution[1], solution[1].other_solution)


def ragged_batch(count, seed=0):
    """Problems with ties, rows of zeros and of every size, contradictions, and empty slots."""
    rng = np.random.default_rng(seed)
    shape = (count, 5)
    left, right = rng.integers(-2, 3, size=(2, *shape, 3)).astype(float)
    target = rng.normal(size=(count, 3, 3))
    margins = np.einsum("ijd,ide,ije->ij", left, target, right)
    wrong = (margins < 0) & (rng.random(shape) < 0.98)
    left *= np.where(wrong, -1, 1)[..., None] * 10.0 ** rng.uniform(-6, 6, size=(*shape, 1))
    present = rng.random(shape) < 0.8
    left[~present] = 7.0
    bounds = 10.0 ** rng.uniform(-6, 6, size=shape) * (rng.random(shape) < 0.9)
    return MarginProblem(left, right, bounds, rng.random(shape) < 0.2, present=present)


def judged_one_by_one(monkeypatch):
    """The problems that are judged each by itself from now on, in a list that grows."""
    judged = []
    monkeypatch.setattr(
        solution_module,
        "uniqueness_of",
        lambda problem, *rest: judged.append(problem) or uniqueness_of(problem, *rest),
    )
    return judged


def test_nuclear_solutions_get_at_once_the_answers_that_each_gets_alone(monkeypatch):
    judged = judged_one_by_one(monkeypatch)
    solution = solve(ragged_batch(120), Nuclear())
    answers = solution.uniqueness
    left = len(judged)
    assert list(answers) == [
        str(
            uniqueness_of(
                solution.problem[i],
                solution.W[i],
                solution.multipliers[i][solution.problem.present[i]],
                float(solution.gap[i]),
                Nuclear(),
            )[0]
        )
        for i in range(120)
    ]
    assert {"unique", "not unique", "not known"} == set(answers)
    assert left < 120 - (answers == "unique").sum() / 2


def test_nuclear_solutions_of_generic_problems_are_not_judged_one_by_one(monkeypatch):
    judged = judged_one_by_one(monkeypatch)
    assert set(solve(random_problem(50, 3, 4, 5), Nuclear()).uniqueness) == {"unique"}
    assert not judged
    monkeypatch.setattr("attractor.margin.faces.uniqueness._LARGEST", 40)  # one or two at a time
    assert set(solve(random_problem(50, 3, 4, 5), Nuclear()).uniqueness) == {"unique"}
    assert not judged


@pytest.mark.parametrize("geometry", FOUR, ids=lambda geometry: geometry.name)
def test_answers_do_not_depend_on_units(geometry):
    problem = random_problem(3, 2, 3, 4, seed=4)
    plain = solve(problem, geometry).uniqueness
    other = solve(MarginProblem(problem.left * 1e60, problem.right, 1e-30), geometry).uniqueness
    np.testing.assert_array_equal(plain, other)


def near_opposite_problem(rng):
    """Pairs of rows that leave next to no room between them, so that solutions are large."""
    d, e = rng.integers(2, 5, size=2)
    left = np.repeat(rng.normal(size=(rng.integers(1, 3), d)), 2, axis=0)
    left[1::2] = -left[1::2] + 10.0 ** -rng.uniform(1, 6) * rng.normal(size=left[1::2].shape)
    return MarginProblem(left, np.repeat(rng.normal(size=(len(left) // 2, e)), 2, axis=0))


def scaled_problem(rng):
    """Rows of every size."""
    d, e = rng.integers(1, 5, size=2)
    left, right = rng.integers(-1, 2, size=(2, rng.integers(1, 6), max(d, e))).astype(float)
    left, right = left[:, :d], right[:, :e]
    margins = np.einsum("jd,de,je->j", left, rng.normal(size=(d, e)), right)
    left *= np.where(margins < 0, -1, 1)[:, None] * 10.0 ** rng.uniform(-8, 8, size=(len(left), 1))
    return MarginProblem(left, right, 10.0 ** rng.uniform(-8, 8, size=len(left)))


def rank_deficient_problem(rng):
    """Rows and columns in lower spaces than they lie in."""
    d, e, m = rng.integers(2, 5, size=3)
    left = rng.normal(size=(m, d - 1)) @ rng.normal(size=(d - 1, d))
    right = rng.normal(size=(m, 1)) @ rng.normal(size=(1, e))
    margins = np.einsum("jd,de,je->j", left, rng.normal(size=(d, e)), right)
    return MarginProblem(left * np.sign(margins)[:, None], right)


def integer_problem(rng):
    return tied_problem(int(rng.integers(10**6)))


FAMILIES = [near_opposite_problem, scaled_problem, rank_deficient_problem, integer_problem]


def answers(family, seeds):
    """How often each answer is given, every other solution checked."""
    counts = dict.fromkeys(("unique", "not unique", "not known"), 0)
    for seed in seeds:
        problem = family(np.random.default_rng(seed))
        for geometry in FOUR:
            solution = solve(problem, geometry)
            if solution.status is not Status.OPTIMAL:
                continue
            counts[solution.uniqueness] += 1
            if solution.uniqueness == "not unique":
                assert_another_solution(solution)
    return counts


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_other_solutions_of_degenerate_problems_are_solutions_and_rarely_missed(family):
    counts = answers(family, range(5))
    assert counts["not unique"] >= 2
    assert counts["not known"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_other_solutions_of_many_degenerate_problems(family):
    counts = answers(family, range(100, 250))
    assert counts["not known"] <= 0.01 * sum(counts.values())


@pytest.mark.parametrize("geometry", [Nuclear(), Spectral()], ids=lambda geometry: geometry.name)
@pytest.mark.parametrize("turned", [False, True], ids=["a row", "a column"])
def test_of_a_single_row_or_column_singular_values_have_one_solution(geometry, turned):
    left, right = [[0.01], [-0.0001]], [[-1, 0, 0], [-2e5, 0, 1e-4]]
    long_and_thin = MarginProblem(right, left) if turned else MarginProblem(left, right)
    assert solve(long_and_thin, geometry).uniqueness == "unique"
    rng = np.random.default_rng(0)
    for _ in range(5):
        shape = rng.integers(1, 5, size=2)
        left, right = rng.normal(size=(shape[0], 1)), rng.normal(size=shape)
        right *= np.sign(left * (right @ rng.normal(size=(shape[1], 1))))
        problem = MarginProblem(right, left) if turned else MarginProblem(left, right)
        assert solve(problem, geometry).uniqueness == "unique"


@pytest.mark.parametrize("geometry", FOUR, ids=lambda geometry: geometry.name)
def test_near_opposite_rows_do_not_hide_what_their_difference_asks_for(geometry):
    rng = np.random.default_rng(5)
    known = 0
    for _ in range(5):
        left = rng.normal(size=(3, 3))
        left[1] = -left[0] + 1e-5 * rng.normal(size=3)
        solution = solve(MarginProblem(left, np.ones((3, 1)) * rng.normal(size=3)), geometry)
        known += solution.uniqueness != "not known"
        if solution.uniqueness == "not unique":
            assert_another_solution(solution)
    assert known == 5


def test_other_solutions_of_wide_matrices_are_found():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(20, 60)), np.repeat(rng.normal(size=(4, 60)), 5, axis=0)
    solution = solve(MarginProblem(left, right), Spectral())
    assert solution.uniqueness == "not unique"
    assert Spectral().norm(solution.other_solution) <= solution.norm * (1 + 1e-9)


def test_looking_for_another_solution_leaves_the_one_in_hand_alone():
    solution = solve(MarginProblem(np.eye(2), np.eye(2)), Nuclear())
    W, multipliers = solution.W.copy(), solution.multipliers.copy()
    assert solution.uniqueness == "not unique"
    np.testing.assert_array_equal(solution.W, W)
    np.testing.assert_array_equal(solution.multipliers, multipliers)


def test_a_decomposition_that_does_not_converge_is_taken_by_another_method(monkeypatch):
    problem, usual = random_problem(3, 3, 4, 4, seed=1), np.linalg.svd
    expected, failed = str(solve(problem[0], Spectral()).uniqueness), []

    def svd(rows, *arguments, **options):
        if rows.ndim == 2 and rows.shape[0] != rows.shape[1] and not options.get("compute_uv"):
            failed.append(rows.shape)
            raise np.linalg.LinAlgError("SVD did not converge")
        return usual(rows, *arguments, **options)

    solution = solve(problem[0], Spectral())
    monkeypatch.setattr("attractor.margin.faces.uniqueness.np.linalg.svd", svd)
    assert str(solution.uniqueness) == expected and failed
