"""What margin answers say is proved: statuses, upper bounds, gaps, and lower bounds."""

import importlib.util
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, Solution, solve
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate import certify
from attractor.margin.certificates.certificate_file import contents
from attractor.margin.certificates.contradiction import proved_multipliers
from attractor.support.errors import Status

NORMS = [Frobenius(), Lp(1), Lp(1.5), Lp(np.inf), Nuclear(), Spectral(), Schatten(3)]
CHECKER = Path(__file__).parents[2] / "tools" / "verify_certificate.py"
seeds = st.integers(0, 2**20)


def verified(solution):
    spec = importlib.util.spec_from_file_location("verify_certificate", CHECKER)
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    return checker.verify(json.loads(json.dumps(contents(solution)), parse_int=float))


def meets(problem, W):
    """Whether a matrix of fractions meets all constraints, exactly."""
    for a, b, c, held in zip(
        problem.left.tolist(), problem.right.tolist(), problem.bounds.tolist(),
        problem.equality.tolist(), strict=True,
    ):  # fmt: skip
        margin = sum(
            Fraction(u) * W[i][k] * Fraction(v) for i, u in enumerate(a) for k, v in enumerate(b)
        )
        if margin < Fraction(c) or (held and margin > Fraction(c)):
            return False
    return True


def harmless(first, second, bounds, count=30):
    """Two rows among many that ask for nothing."""
    left = [first, second, *count * [[0, 1]]]
    return MarginProblem(left, np.ones((2 + count, 1)), [*bounds, *count * [0]])


@pytest.mark.long
@pytest.mark.parametrize(
    ("problem", "W"),
    [
        (harmless([1, 0], [-1, 3e-14], [1, -1 + 3e-14]), [1, 2]),
        (harmless([1, 0], [-1, 2.0**-47], [1, 1], 200), [1, 2.0**48]),
        (harmless([1, 0], [-1, 1e-14], [1, 1], 100), [1, 3e14]),
    ],
)
def test_no_problem_that_has_a_solution_is_infeasible(problem, W):
    assert meets(problem, [[Fraction(w)] for w in W])
    for geometry in NORMS:
        solution = solve(problem, geometry)
        assert solution.status is not Status.INFEASIBLE
        assert solution.norm_lower_bound <= geometry.norm(np.reshape(W, (2, 1))) * (1 + 1e-15)


@pytest.mark.parametrize("apart", [1e-3, 1e-6, 1e-8])
def test_the_gap_of_near_parallel_constraints_is_of_a_point_that_exists(apart):
    problem = MarginProblem(
        [[1, 0], [-1, apart]], [[1], [1]], [1, -1 + apart], equality=[True, False]
    )
    # The one solution: w_1 = 1 and w_2 = (c_2 + 1) / a, in fractions.
    second = (Fraction(float(problem.bounds[1])) + 1) / Fraction(apart)
    assert meets(problem, [[Fraction(1)], [second]])
    exact = float(1 + second**2) ** 0.5
    solution = solve(problem)
    assert solution.status is Status.OPTIMAL
    assert solution.dual_value <= exact * (1 + 1e-15) and exact <= solution.value * (1 + 1e-15)
    assert solution.value - solution.dual_value <= solution.gap * solution.value
    # One that meets the constraints to 1e-8 is far from any that meets them.
    off = certify(problem.batched(), np.array([[[1.0], [0.0]]]), solution.multipliers[None],
                  Frobenius())  # fmt: skip
    assert off.gap[0] >= (off.value[0] - off.dual_value[0]) / off.value[0] >= 0
    assert off.value[0] >= exact * (1 - 1e-15)


@given(seeds, st.sampled_from(NORMS))
def test_values_are_of_matrices_that_meet_equalities_exactly(seed, geometry):
    rng = np.random.default_rng(seed)
    d, e = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    m = int(rng.integers(2, 8))
    left, right = np.round(rng.normal(size=(m, d)) * 8) / 8, np.round(rng.normal(size=(m, e)), 2)
    W = np.round(rng.normal(size=(d, e)) * 4) / 4
    apart = 2.0 ** -float(rng.integers(1, 40))
    left[1], right = -left[0] + apart * left[1], np.round(right * 8) / 8
    right[1] = right[0]
    margins = np.einsum("md,de,me->m", left, W, right)
    equality = rng.random(m) < 0.4
    problem = MarginProblem(left, right, margins - ~equality * rng.choice([0, 0.5], m), equality)
    assert meets(problem, [[Fraction(w) for w in row] for row in W.tolist()])
    solution = solve(problem, geometry)
    assert solution.status is not Status.INFEASIBLE
    assert solution.dual_value <= geometry.norm(W) * (1 + 1e-14)
    if solution.status is Status.OPTIMAL:
        assert solution.value <= geometry.norm(W) * (1 + 2e-12) + 1e-300
        assert solution.gap <= 1e-9


def test_no_gap_is_known_where_rounding_makes_equalities_contradict():
    left = np.array([[1.0, 0], [0, 1], [1, 1]])
    problem = MarginProblem(left, np.ones((3, 1)), [0.1, 0.2, 0.3], True)  # 0.1 + 0.2 is more
    solution = solve(problem)
    assert solution.status is Status.INFEASIBLE and verified(solution).startswith("infeasible")
    W = np.array([[0.1], [0.2]])
    certificate = certify(problem.batched(), W[None], np.zeros((1, 3)), Frobenius())
    assert certificate.gap[0] == np.inf and certificate.violation[0] < 1e-14
    consistent = MarginProblem(left, np.ones((3, 1)), [0.125, 0.25, 0.375], True)
    solution = solve(consistent)
    assert solution.status is Status.OPTIMAL and solution.gap < 1e-12


@pytest.mark.parametrize("geometry", NORMS, ids=lambda g: g.name)
def test_bounds_that_leave_no_room_are_met_exactly(geometry):
    rng = np.random.default_rng(4)
    left, right = np.round(rng.normal(size=(2, 5, 4)) * 16) / 16
    W = np.round(rng.normal(size=(4, 4)) * 4) / 4
    margins = np.einsum("md,de,me->m", left, W, right)
    band = MarginProblem(
        np.concatenate([left, -left]), np.tile(right, (2, 1)), np.concatenate([margins, -margins])
    )
    solution = solve(band, geometry)
    assert solution.status is Status.OPTIMAL and np.isfinite(solution.value)
    assert solution.value <= geometry.norm(W)


@given(seeds)
def test_a_random_contradiction_is_proved(seed):
    rng = np.random.default_rng(seed)
    d, e = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    m = 6 * d * e + 4
    solution = solve(MarginProblem(rng.normal(size=(m, d)), rng.normal(size=(m, e))))
    if solution.status is not Status.OPTIMAL:
        assert solution.status is Status.INFEASIBLE
        assert solution.conflict.size <= d * e + 1
        assert verified(solution).startswith("infeasible")


@pytest.mark.parametrize("apart", [0.0, 1e-15, -1e-15])
def test_contradictions_of_few_equations_hold_exactly_or_are_not_claimed(apart):
    rng = np.random.default_rng(0)
    rows = np.round(rng.normal(size=(4, 6)) * 64) / 64
    cycle = np.concatenate([rows[:3], -rows[:3].sum(0, keepdims=True)])
    cycle[3, 2] += apart
    solution = solve(MarginProblem(cycle, np.ones((4, 1))))
    assert (solution.status is Status.INFEASIBLE) == (apart == 0)
    if apart:
        assert solution.status in (Status.OUT_OF_REACH, Status.OPTIMAL, Status.STOPPED_EARLY)
        assert solution.norm_lower_bound > 1e13
        assert (solution.status is Status.OUT_OF_REACH) == (solution.conflict.size > 0)


def test_multipliers_that_only_nearly_cancel_prove_nothing():
    left = np.array([[1.0, 0], [-1, 1e-12]])
    scaled = ScaledConstraints.of(MarginProblem(left, np.ones((2, 1))).batched())
    assert proved_multipliers(scaled, 0, np.ones(2)) is None
    scaled = ScaledConstraints.of(MarginProblem(left, np.ones((2, 1)), [1, -1]).batched())
    assert proved_multipliers(scaled, 0, np.ones(2)) is None
    exact = ScaledConstraints.of(MarginProblem([[1.0], [-3.0]], np.ones((2, 1))).batched())
    found = proved_multipliers(exact, 0, np.array([0.9, 1.1]))
    assert found is not None and found[0] * exact.left[0, 0, 0] == -found[1] * exact.left[0, 1, 0]


@pytest.mark.parametrize("tiny", [1e-310, 1e-318, 5e-324])
@pytest.mark.parametrize("sign", [1, -1])
def test_lower_bounds_are_of_the_bounds_given(tiny, sign):
    left = np.array([[1.0, 0], [0.5, 1], [-0.25, 2]])
    problem = MarginProblem(left, np.ones((3, 1)), [1.0, sign * tiny, tiny])
    solution = solve(problem)
    assert solution.status is Status.OPTIMAL
    multipliers = [Fraction(x) for x in solution.multipliers.tolist()]
    total = sum(Fraction(c) * x for c, x in zip(problem.bounds.tolist(), multipliers, strict=True))
    sums = [
        sum(Fraction(v) * x for v, x in zip(column, multipliers, strict=True))
        for column in left.T.tolist()
    ]
    assert Fraction(solution.dual_value) ** 2 * sum(s * s for s in sums) <= total**2
    assert verified(solution).startswith("optimal")


@pytest.mark.parametrize("scale", [1.0, 1 - 1e-10, 1 - 1e-8])
def test_files_of_matrices_that_fall_short_are_accepted(scale):
    left = np.array([[1.0, 0, 0], [0, 1, 0], [0.3, 0.2, 0.1]])
    problem = MarginProblem(left, np.ones((3, 1)), [1, 1, 0], [False, False, True])
    solution = solve(problem)
    W = scale * solution.W
    certificate = certify(problem.batched(), W[None], solution.multipliers[None], Frobenius())
    shorter = type(solution)(
        W, solution.multipliers, Status.STOPPED_EARLY, problem, solution.geometry, certificate
    )
    assert verified(shorter).startswith("optimal")


def test_an_answer_without_a_gap_says_so():
    left = np.array([[1.0, 0], [0, 1], [1, 1]])
    problem = MarginProblem(left, np.ones((3, 1)), [0.1, 0.2, 0.3], True)
    W = np.array([[0.1], [0.2]])
    certificate = certify(problem.batched(), W[None], np.zeros((1, 3)), Frobenius())
    text = str(Solution(W, np.zeros(3), Status.STOPPED_EARLY, problem, Frobenius(), certificate))
    assert "not known" in text and "largest violation" in text
