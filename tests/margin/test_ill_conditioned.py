"""Problems close to infeasible or badly scaled, in every geometry."""

import functools

import mpmath as mp
import numpy as np
import pytest
from adversarial_problems import adversarial_problems
from certificate_examples import GEOMETRIES, load_checker, through_json
from conic_oracle import random_small_problem
from margin_examples import random_problem, thin_problem

from attractor.geometry import Lp, Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, solve
from attractor.margin.algorithms import solve_in_frobenius
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.certificate_file import contents
from attractor.margin.ill_conditioned import methods
from attractor.margin.ill_conditioned.central_path import PowerGraph, ThresholdGraph, centered
from attractor.margin.ill_conditioned.constraints import Constraints
from attractor.margin.ill_conditioned.methods import solve_ill_conditioned
from attractor.margin.ill_conditioned.orthogonal_factor import OrthogonalFactor
from attractor.margin.methods import Task
from attractor.support.errors import Status

CURVED = [geometry for geometry in GEOMETRIES if geometry.name != "frobenius"]
every = pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
curved = pytest.mark.parametrize("geometry", CURVED, ids=lambda g: g.name)


def two_opposed(margin, seed, m=12, d=4, e=3):
    """Two constraints that all but contradict each other, and others."""
    rng = np.random.default_rng(seed)
    left, right, W = rng.normal(size=(m, d)), rng.normal(size=(m, e)), rng.normal(size=(d, e))
    left *= np.sign(np.einsum("md,de,me->m", left, W, right))[:, None]
    apart = rng.normal(size=d)
    apart *= np.sign(apart @ W @ right[0])
    right[1], left[1] = right[0], margin * apart - left[0]
    return MarginProblem(left, right)


def cost_of_rounding(problem, W):
    """What half a unit in the last place of each entry of W takes from a margin, relatively."""
    sizes = np.einsum("md,de,me->m", np.abs(problem.left), np.abs(W), np.abs(problem.right))
    return float((sizes / np.abs(problem.bounds)).max()) * 2.0**-53


@every
@pytest.mark.parametrize("margin", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("opposed", [True, False])
def test_thin_margins_are_certified(geometry, margin, opposed):
    problem = two_opposed(margin, 3) if opposed else thin_problem(margin, 3, m=14, d=4)
    solution = solve(problem, geometry)
    assert solution.value >= 0.1 / margin
    assert solution.gap <= max(1e-9, 10 * cost_of_rounding(problem, solution.W))
    if margin >= 1e-5:
        assert solution.status is Status.OPTIMAL


@every
def test_margins_of_a_part_in_a_hundred_million_are_met_to_rounding(geometry):
    problem = two_opposed(1e-8, 5)
    solution = solve(problem, geometry)
    checker = load_checker()  # in exact arithmetic
    assert checker.verify(through_json(contents(solution))).startswith("optimal to ")
    assert solution.gap <= 10 * cost_of_rounding(problem, solution.W) < 1e-5


@pytest.mark.parametrize("geometry", [Nuclear(), Spectral(), Schatten(1.5), Schatten(3)], ids=str)
def test_a_thin_wedge_has_its_closed_form(geometry):
    # With one right vector, every unitarily invariant norm is that of a column.
    a = np.array([[1.0, 0.0, 0.5], [-1.0, 1e-6, -0.5]])
    b = np.array([[0.6, 0.8], [0.6, 0.8]])
    with mp.workdps(60):
        exact = mp.matrix(a.tolist())
        length = mp.sqrt(sum(mp.mpf(x) ** 2 for x in b[0]))
        multipliers = mp.lu_solve(exact * exact.T, mp.matrix([1, 1]))
        assert min(multipliers) > 0
        expected = float(mp.sqrt(sum(multipliers)) / length)
    assert solve(MarginProblem(a, b), geometry).value == pytest.approx(expected, rel=2e-9)


@every
def test_columns_of_sizes_from_a_millionth_to_a_million(geometry):
    rng = np.random.default_rng(4)
    left, right = rng.normal(size=(3, 6, 3)), rng.normal(size=(3, 6, 3))
    W = rng.normal(size=(3, 3))
    left *= np.sign(np.einsum("imd,de,ime->im", left, W, right))[..., None]
    left *= 10.0 ** rng.uniform(-6, 6, size=(3, 1, 3))
    assert (solve(MarginProblem(left, right), geometry).status == Status.OPTIMAL).all()


def test_columns_that_left_the_spectral_norm_open():
    problems = [problem for _, problem in adversarial_problems(2, 35)]
    for i in (24, 34):
        assert solve(problems[i], Spectral()).status is Status.OPTIMAL


@pytest.fixture
def alone():
    """Solves by the method under test, whatever others would make of a problem."""
    return functools.partial(solve, methods=[solve_ill_conditioned])


@pytest.mark.long
@curved
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(12), id="first"),
        pytest.param(range(12, 32), id="rest", marks=pytest.mark.slow),
    ],
)
def test_it_solves_any_problem_alone(geometry, seeds, alone):
    problems = [random_small_problem(seed) for seed in seeds]
    found = alone(problems, geometry)
    for one, other in zip(found, solve(problems, geometry), strict=True):
        assert one.status is other.status is Status.OPTIMAL
        assert one.value == pytest.approx(other.value, rel=2e-9)


@curved
@pytest.mark.parametrize("shape", [(6, 8, 10), (2, 3, 12), (6, 4, 4)])
def test_it_solves_other_shapes_alone(geometry, shape, alone):
    # The second is solved in the spans of its constraints where the norm allows it.
    found = alone(random_problem(1, *shape, seed=1), geometry)
    assert (found.status == Status.OPTIMAL).all()


def started(problem, geometry):
    """A task with the Frobenius solution to start from."""
    scaled = ScaledConstraints.of(problem.batched())
    count, m, d = scaled.left.shape
    W = np.full((count, d, scaled.right.shape[-1]), np.nan)
    task = Task(scaled, geometry, 1e-9, W, np.zeros((count, m)))
    W, multipliers = solve_in_frobenius(task)
    return Task(scaled, geometry, 1e-9, W, multipliers)


@pytest.mark.parametrize("geometry", [Nuclear(), Lp(1.5), Lp(np.inf)], ids=str)
def test_what_has_no_start_or_breaks_down_harms_no_other(geometry, monkeypatch):
    task = started(random_problem(4, 3, 4, 4, seed=2), geometry)
    expected, _ = solve_ill_conditioned(task)
    assert np.isfinite(expected).all()
    path, calls = methods._path, []

    def fail_on_the_second(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise np.linalg.LinAlgError
        return path(*arguments)

    monkeypatch.setattr(methods, "_path", fail_on_the_second)
    task.W[1] = np.nan
    W, multipliers = solve_ill_conditioned(task)
    assert np.isnan(W[[1, 2]]).all()
    assert not multipliers[[1, 2]].any()
    # To the digits of the method: products of matrices may round by where in memory these lie.
    np.testing.assert_allclose(W[[0, 3]], expected[[0, 3]], rtol=1e-7, atol=1e-9)


def test_instances_that_would_take_minutes_are_let_be(monkeypatch):
    task = started(random_problem(1, 3, 4, 4, seed=2), Nuclear())
    monkeypatch.setattr(methods, "_MOST_WORK", 1000)
    W, multipliers = solve_ill_conditioned(task)
    assert np.isnan(W).all()
    assert not multipliers.any()


def constraints_of(problem):
    return Constraints.of(ScaledConstraints.of(problem.batched()), 0, 1.0)


def test_a_centered_point_has_equal_products():
    problem = two_opposed(1e-7, 1)
    task = started(problem, Lp(2))
    constraints = constraints_of(problem)
    M = constraints.combine(task.multipliers[0])
    multipliers = task.multipliers[0] * np.linalg.norm(task.W[0]) / np.linalg.norm(M)
    x, s = centered(constraints, task.W[0], multipliers, 0.1)
    W, _ = constraints.combine_exactly(x)
    np.testing.assert_allclose(x[0] * s, 0.1 * np.sum(task.W[0] ** 2) / len(s), rtol=0.05)
    margins = np.einsum("md,de,me->m", constraints.left, W, constraints.right)
    rounding = 1e-15 * np.linalg.norm(W)
    np.testing.assert_allclose(margins, constraints.bounds + s, rtol=0.05, atol=rounding)
    assert s.max() > 1e5 * s.min()


def test_orthogonal_factors_are_accurate_where_the_matrix_is_singular_in_working_precision():
    rng = np.random.default_rng(0)
    blocks = rng.normal(size=(5, 7))
    blocks[1] = -blocks[0] + 1e-9 * blocks[1]
    diagonal = np.array([0.0, 0.0, 1e-12, 1.0, 1e6])
    y = rng.normal(size=5)
    with mp.workdps(80):
        B, half = mp.matrix(blocks.tolist()), mp.diag([mp.sqrt(r) for r in diagonal])
        matrix = B * B.T + half * half
        exact = mp.lu_solve(matrix, mp.matrix(y.tolist()))
        energy = float((exact.T * matrix * exact)[0])
        factor = OrthogonalFactor.of(blocks, diagonal)
        off = mp.matrix(factor.solve(y).tolist()) - exact
        assert float((off.T * matrix * off)[0]) < 1e-10 * energy
    assert np.sum(factor.half(y) ** 2) == pytest.approx(energy, rel=1e-5)


@curved
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)])
def test_tangents_are_differences_along_the_graph(geometry, shape):
    rng = np.random.default_rng(1)
    problem = MarginProblem(rng.normal(size=(5, shape[0])), rng.normal(size=(5, shape[1])))
    constraints = constraints_of(problem)
    W, E = rng.normal(size=shape), rng.normal(size=shape)
    if geometry.p in (1, np.inf):
        graph = ThresholdGraph(geometry, constraints, W)
        Z = graph.coordinate(W, W / geometry.dual_norm(W))
    else:
        graph, Z = PowerGraph(geometry, constraints), W
    h, area = 1e-5, 0.05
    before, point, after = (graph.at(Z + t * h * E, area, 0.0) for t in (-1, 0, 1))
    np.testing.assert_allclose(graph.coordinate(point.W, point.M), Z, atol=1e-13)
    dW, dM = (after.W - before.W) / (2 * h), (after.M - before.M) / (2 * h)
    size = np.abs(dW).max() + np.abs(point.move(dM)).max()
    np.testing.assert_allclose(point.move(dM), dW, atol=1e-6 * size)

    # The factor has the inner products that the tangent makes of the constraints.
    rows = constraints.rows
    moved = np.stack([point.move(row.reshape(shape)).ravel() for row in rows])
    root = point.root()
    np.testing.assert_allclose(root @ root.T, rows @ moved.T, rtol=1e-9, atol=1e-9 * size)
