"""Many constraints on few unknowns: what is certified, from few of them at a time."""

import numpy as np
import pytest
from scipy.optimize import linprog

from attractor.geometry import Frobenius, Lp, get_geometry
from attractor.margin import MarginProblem, solve
from attractor.margin.large import constraint_generation, driver
from attractor.margin.large.constraint_generation import is_overdetermined
from attractor.support.errors import Status

NORMS = (
    "frobenius",
    "l_1",
    "l_inf",
    "l_1.5",
    "l_3",
    "nuclear",
    "spectral",
    "schatten_1.5",
    "schatten_3",
)
M, D, E = 2100, 4, 5


def planted(seed=0, m=M, d=D, e=E):
    """Random constraints that a random matrix meets."""
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(d, e))
    left, right = rng.normal(size=(m, d)), rng.normal(size=(m, e))
    return left * np.sign(np.einsum("md,de,me->m", left, target, right))[:, None], right


def multiclass(seed=0, examples=700):
    """The best of four classes beats the three others, example after example."""
    rng = np.random.default_rng(seed)
    right = rng.normal(size=(examples, E))
    best = (right @ rng.normal(size=(E, D))).argmax(-1)
    example, other = np.nonzero(np.arange(D) != best[:, None])
    classes = np.eye(D)
    return classes[best[example]] - classes[other], right[example]


def vocabulary(seed=0):
    """Differences of twelve tokens under queries that are among twelve: every row many times."""
    rng = np.random.default_rng(seed)
    tokens, queries, target = (rng.normal(size=shape) for shape in ((12, D), (12, E), (D, E)))
    better, worse, query = rng.integers(0, 12, size=(3, M))
    worse = np.where(better == worse, (worse + 1) % 12, worse)
    gain = np.einsum("md,de,me->m", tokens[better] - tokens[worse], target, queries[query])
    return np.sign(gain)[:, None] * (tokens[better] - tokens[worse]), queries[query]


def tied(seed=0):
    """Rows of zeros and ones: many margins are the same."""
    left, right = planted(seed)
    rng = np.random.default_rng(seed)
    left, right = rng.integers(-1, 2, size=left.shape), rng.integers(-1, 2, size=right.shape)
    gain = np.einsum("md,de,me->m", left, rng.normal(size=(D, E)), right)
    kept = gain != 0
    return (np.sign(gain)[:, None] * left)[kept], right[kept].astype(float)


def of_low_rank(seed=0):
    """Left vectors in a plane."""
    left, right = planted(seed, d=2)
    return left @ np.random.default_rng(seed).normal(size=(2, D)), right


def of_all_scales(seed=0):
    """Rows that are as large as they like."""
    left, right = planted(seed)
    return left * 10.0 ** np.random.default_rng(seed).uniform(-3, 3, size=(M, 1)), right


SETS = (planted, multiclass, vocabulary, tied, of_low_rank, of_all_scales)


def linear_value(left, right, p):
    """The optimum in l_1 or l_inf by HiGHS."""
    rows = np.einsum("md,me->mde", left, right).reshape(len(left), -1)
    n, size = rows.shape[1], np.linalg.norm(rows, axis=1)
    rows, ones = rows / size[:, None], -1 / size
    if p == 1:
        return linprog(np.ones(2 * n), np.hstack([-rows, rows]), ones).fun
    unit, t = np.eye(n), np.ones((n, 1))
    above = np.block([[-rows, 0 * rows[:, :1]], [unit, -t], [-unit, -t]])
    costs = np.append(np.zeros(n), 1.0)
    return linprog(costs, above, np.append(ones, np.zeros(2 * n)), bounds=(None, None)).fun


@pytest.mark.parametrize(
    ("name", "make"),
    [(name, planted) for name in NORMS]
    + [(name, make) for make in SETS[1:] for name in ("frobenius", "l_1", "l_inf", "l_1.5")]
    + [("nuclear", vocabulary), ("spectral", tied)],
)
def test_every_norm_is_certified_on_all_constraints(name, make, monkeypatch):
    sizes, attempt = [], constraint_generation.attempt

    def counted(scaled, *args):
        sizes.append(scaled.bounds.shape[-1])
        return attempt(scaled, *args)

    monkeypatch.setattr(constraint_generation, "attempt", counted)
    left, right = make()
    geometry, problem = get_geometry(name), MarginProblem(left, right)
    solution = solve(problem, geometry)
    assert solution.status is Status.OPTIMAL
    assert sizes and max(sizes) < 0.2 * len(left)
    # Both bounds again, from the definition alone.
    assert problem.margins(solution.W).min() > 1 - 1e-9
    assert solution.multipliers.min() >= 0
    dual_norm = geometry.dual_norm(problem.apply_adjoint(solution.multipliers))
    assert geometry.norm(solution.W) <= (1 + 1e-8) * solution.multipliers.sum() / dual_norm


@pytest.mark.parametrize("make", [multiclass, vocabulary, of_all_scales])
@pytest.mark.parametrize("p", [1, np.inf])
def test_linear_programs_agree_with_the_simplex_method(p, make):
    left, right = make()
    solution = solve(MarginProblem(left, right), Lp(p))
    assert solution.value == pytest.approx(linear_value(left, right, p), rel=1e-7)


@pytest.mark.parametrize("name", ["frobenius", "l_1", "l_inf", "nuclear"])
def test_a_contradiction_among_few_of_many_is_proved(name):
    left, right = planted()
    left[-1], right[-1] = -2 * left[7], right[7]
    problem = MarginProblem(left, right)
    solution = solve(problem, get_geometry(name))
    assert solution.status is Status.INFEASIBLE
    assert solution.multipliers.min() >= 0
    size = np.abs(solution.multipliers).max()
    assert np.abs(problem.apply_adjoint(solution.multipliers)).max() < 1e-12 * size


@pytest.mark.parametrize("name", ["frobenius", "nuclear", "l_1", "l_inf", "l_1.5"])
def test_a_constraint_that_is_zero_and_asks_for_more(name):
    left, right = planted()
    left[5] = 0
    solution = solve(MarginProblem(left, right), get_geometry(name))
    assert solution.status is Status.INFEASIBLE
    assert np.flatnonzero(solution.multipliers).tolist() == [5]


@pytest.mark.parametrize("name", ["frobenius", "l_1", "l_inf", "nuclear"])
def test_equalities_and_other_bounds(name):
    left, right = planted(1)
    rng = np.random.default_rng(1)
    target = solve(MarginProblem(left, right)).W
    margins = MarginProblem(left, right).margins(target)
    equality = np.arange(M) < 3
    bounds = np.where(equality, margins, margins - rng.exponential(size=M))
    problem = MarginProblem(left, right, bounds, equality)
    solution = solve(problem, get_geometry(name))
    assert solution.status is Status.OPTIMAL
    np.testing.assert_allclose(problem.margins(solution.W)[:3], bounds[:3], rtol=1e-9)


def test_nothing_asked_gives_zero():
    left, right = planted()
    for name in ("frobenius", "l_1", "nuclear"):
        solution = solve(MarginProblem(left, right, -1.0), get_geometry(name))
        assert solution.status is Status.OPTIMAL
        assert not solution.W.any()


def test_a_start_from_a_neighbor_changes_nothing():
    left, right = planted()
    cold = solve(MarginProblem(left, right), Lp(3))
    again = solve(MarginProblem(left + 1e-9, right), Lp(3), start=cold.multipliers)
    assert again.status is Status.OPTIMAL
    assert again.value == pytest.approx(cold.value, rel=1e-5)


def test_batches_are_what_their_instances_are():
    both = [planted(seed) for seed in (0, 1)]
    batch = MarginProblem(*(np.stack(vectors) for vectors in zip(*both, strict=True)))
    together = solve(batch, Frobenius())
    for i, vectors in enumerate(both):
        np.testing.assert_array_equal(together.W[i], solve(MarginProblem(*vectors)).W)


@pytest.mark.parametrize("name", NORMS[1:])
@pytest.mark.parametrize("made", [planted, tied, multiclass])
def test_some_constraints_on_few_unknowns_agree_with_all_of_them_at_a_time(name, made, monkeypatch):
    left, right = made()
    problem = MarginProblem(left[:600], right[:600])
    few = solve(problem, get_geometry(name))
    assert driver.has_few_unknowns(600, problem.shape, get_geometry(name))
    monkeypatch.setattr(driver, "_FEWEST_GENERATED", 10**9)
    whole = solve(problem, get_geometry(name))
    assert few.status is whole.status is Status.OPTIMAL
    assert few.value == pytest.approx(whole.value, rel=2e-9)
    assert not np.array_equal(few.multipliers, whole.multipliers)


def test_where_few_constraints_at_a_time_do_not_get_there_all_of_them_do(monkeypatch):
    problem = MarginProblem(*planted(m=600))
    monkeypatch.setattr(constraint_generation, "_MOST_ROUNDS", 1)
    assert solve(problem, Lp(1.5)).status is Status.OPTIMAL


def test_a_contradiction_among_some_constraints_is_found():
    left, right = planted(m=600)
    left[17], right[17] = -left[3], right[3]
    solution = solve(MarginProblem(left, right), "nuclear")
    assert solution.status is Status.INFEASIBLE
    assert len(solution.conflict) <= D * E + 1  # Caratheodory


def test_which_problems_it_is_for():
    frobenius, l_inf = get_geometry("frobenius"), get_geometry("l_inf")
    for geometry in (frobenius, l_inf):
        assert is_overdetermined(10_000, (16, 16), geometry)
        assert not is_overdetermined(900, (16, 16), geometry)
        assert not is_overdetermined(32_256, (64, 64), geometry)
    assert is_overdetermined(6_000, (32, 32), frobenius)
    assert not is_overdetermined(6_000, (32, 32), l_inf)


@pytest.mark.slow
@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize(("m", "d", "e"), [(10_000, 16, 16), (100_000, 15, 25)])
def test_full_size(name, m, d, e):
    solution = solve(MarginProblem(*planted(0, m, d, e)), get_geometry(name), tolerance=1e-7)
    assert solution.status is Status.OPTIMAL
    assert solution.gap <= 1e-7
