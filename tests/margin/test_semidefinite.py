import numpy as np
import pytest
from conic_oracle import conic_value, nuclear, spectral
from hypothesis import given, settings, strategies as st
from margin_examples import random_problem, stored_tokens, thin_problem, unit

from attractor.geometry import Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, solve
from attractor.margin.semidefinite import smoothing_path
from attractor.margin.semidefinite.smoothed_norm import NuclearPoint, SpectralPoint
from attractor.support.errors import Status

GEOMETRIES = [Nuclear(), Spectral()]
ORACLES = {Nuclear(): nuclear, Spectral(): spectral}
both = pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
seeds = st.integers(0, 2**20)


def general_problem(seed, equalities):
    """Bounds of either sign and zero, and equalities, that a hidden matrix meets."""
    rng = np.random.default_rng(seed)
    a, b, W = rng.normal(size=(9, 4)), rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    margins = np.einsum("jd,de,je->j", a, W, b)
    equality = np.arange(9) < equalities
    bounds = margins - np.where(equality, 0.0, rng.exponential(size=9))
    bounds[-2:] = np.where(margins[-2:] > 0, 0.0, bounds[-2:])
    return MarginProblem(a, b, bounds, equality)


@both
def test_small_problems_agree_with_an_interior_point_solver(geometry):
    problem = random_problem(3, 4, 4, 5, seed=3)
    for one, solution in zip(problem, solve(problem, geometry).value, strict=True):
        assert solution == pytest.approx(conic_value(one, ORACLES[geometry]), rel=1e-7)


@both
@pytest.mark.parametrize("equalities", [0, 3, 9])
def test_general_bounds_and_equalities_agree_with_an_interior_point_solver(geometry, equalities):
    problem = general_problem(equalities, equalities)
    solution = solve(problem, geometry)
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(conic_value(problem, ORACLES[geometry]), rel=1e-7)
    assert solution.equality_residual < 1e-14


@pytest.mark.long
@both
def test_every_random_data_set_is_solved(geometry):
    for shape, instances in [
        ((6, 8, 10), 200),
        ((5, 5, 5), 100),
        ((15, 5, 5), 60),
        ((3, 4, 2), 60),
    ]:
        problem = random_problem(instances, *shape, seed=1)
        solution = solve(problem, geometry)
        assert not (solution.status == Status.STOPPED_EARLY).any(), shape
        feasible = solution.status == Status.OPTIMAL
        assert feasible.any()
        assert solution.gap[feasible].max() <= 1e-9


@both
@pytest.mark.parametrize("shape", [(20, 10, 40), (15, 5, 20), (6, 2, 10), (1, 6, 8), (8, 4, 2)])
def test_other_shapes_are_solved(geometry, shape):
    solution = solve(random_problem(3, *shape, seed=2), geometry)
    assert set(solution.status) <= {Status.OPTIMAL, Status.INFEASIBLE}


@both
def test_far_tighter_tolerances_are_reached(geometry):
    # The last steps are Newton's on the face of the solution; interior points stop at 1e-10.
    solution = solve(random_problem(20, 6, 8, 10, seed=0), geometry, tolerance=1e-11)
    assert (solution.status == Status.OPTIMAL).all()


@both
@pytest.mark.parametrize("margin", [1e-2, 1e-4])
def test_nearly_infeasible_problems_are_solved(geometry, margin):
    # All right vectors are parallel, where every unitarily invariant norm is the same.
    problem = thin_problem(margin, 0)
    solution = solve(problem, geometry)
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(solve(problem).value, rel=1e-8)


def test_stored_nuclear_values():
    tokens, selection, _ = stored_tokens(slice(0, 2))
    solution = solve(MarginProblem.from_selection(tokens, selection), Nuclear())
    np.testing.assert_allclose(solution.value, [4.3487901243, 4.6354791612], rtol=1e-8)


@both
def test_two_orthogonal_constraints(geometry):
    # The nuclear solutions are [[1, c], [c, 1]] with |c| <= 1; c = 0 is the spectral one.
    solution = solve(MarginProblem(np.eye(2), np.eye(2)), geometry)
    assert solution.value == pytest.approx({"nuclear": 2, "spectral": 1}[geometry.name], rel=1e-9)
    assert solution.status is Status.OPTIMAL


@both
def test_one_constraint_and_one_line(geometry):
    a, b = np.array([[3.0, 4.0]]), np.array([[0.0, 2.0, 0.0]])
    np.testing.assert_allclose(solve(MarginProblem(a, b), geometry).W, a.T @ b / 100, atol=1e-15)
    rng = np.random.default_rng(0)
    line = MarginProblem(np.outer(rng.uniform(1, 2, 5), [1.0, 2.0]), np.tile(b, (5, 1)))
    assert solve(line, geometry).value == pytest.approx(solve(line).value, rel=1e-9)


@both
@pytest.mark.parametrize("copies", [2, 5])
def test_repeated_constraints_change_nothing(geometry, copies):
    one = random_problem(1, 4, 4, 5, seed=7)[0]
    many = MarginProblem(np.tile(one.left, (copies, 1)), np.tile(one.right, (copies, 1)))
    repeated = solve(many, geometry)
    assert repeated.status is Status.OPTIMAL
    assert repeated.value == pytest.approx(solve(one, geometry).value, rel=1e-8)


@both
def test_repeated_equalities_change_nothing(geometry):
    one = general_problem(3, 3)
    twice = MarginProblem(
        *(np.concatenate([array, array[:3]]) for array in (one.left, one.right)),
        np.concatenate([one.bounds, one.bounds[:3]]),
        np.concatenate([one.equality, one.equality[:3]]),
    )
    solution = solve(twice, geometry)
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(solve(one, geometry).value, rel=1e-8)


@both
def test_bounds_that_zero_meets_and_infeasible_instances(geometry):
    slack = MarginProblem(np.eye(3), np.eye(3), [-1.0, 0.0, -2.0])
    assert solve(slack, geometry).value == 0
    contradiction = MarginProblem([[1.0, 0.0], [-1.0, 0.0]], [[1.0], [1.0]])
    assert solve(contradiction, geometry).status is Status.INFEASIBLE


@both
def test_an_instance_is_the_same_alone_and_in_a_batch(geometry):
    problem = random_problem(4, 4, 4, 5, seed=9)
    left, right, bounds = (np.array(a) for a in (problem.left, problem.right, problem.bounds))
    left[1, 1], right[1, 1] = -left[1, 0], right[1, 0]  # infeasible
    left[2], right[2] = 0.0, 0.0
    bounds[2] = -1.0
    batch = solve(MarginProblem(left, right, bounds), geometry)
    assert batch.status.tolist() == [
        Status.OPTIMAL, Status.INFEASIBLE, Status.OPTIMAL, Status.OPTIMAL
    ]  # fmt: skip
    alone = solve(MarginProblem(left[3], right[3], bounds[3]), geometry)
    np.testing.assert_allclose(batch.value[3], alone.value, rtol=1e-9)
    assert batch.value[2] == 0


@pytest.mark.long
@both
@settings(max_examples=25, deadline=None)
@given(seed=seeds, exponent=st.integers(-60, 60))
def test_rotations_and_scales(geometry, seed, exponent):
    rng = np.random.default_rng(seed)
    a, b = unit(rng.normal(size=(6, 4))), unit(rng.normal(size=(6, 3)))
    value = solve(MarginProblem(a, b), geometry).value
    if not np.isfinite(value):
        return
    P, Q = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (4, 3))
    turned = solve(MarginProblem(a @ P, b @ Q), geometry)
    assert turned.value == pytest.approx(value, rel=1e-8)
    scaled = solve(MarginProblem(10.0**exponent * a, b), geometry)
    assert scaled.value == pytest.approx(value / 10.0**exponent, rel=1e-8)
    swapped = solve(MarginProblem(b, a), geometry)
    assert swapped.value == pytest.approx(value, rel=1e-8)


@both
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_no_feasible_matrix_is_smaller(geometry, seed):
    rng = np.random.default_rng(seed)
    a, b, W = rng.normal(size=(6, 4)), rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    margins = np.einsum("jd,de,je->j", a, W, b)
    solution = solve(MarginProblem(a, b, margins - rng.exponential(size=6)), geometry)
    assert solution.status is Status.OPTIMAL
    assert solution.value <= geometry.norm(W) * (1 + 1e-9)
    assert solution.dual_value <= geometry.norm(W)


def test_schatten_names_are_the_same_solver():
    problem = random_problem(2, 3, 4, 4, seed=0)
    for general, special in ((Schatten(1), Nuclear()), (Schatten(np.inf), Spectral())):
        np.testing.assert_array_equal(solve(problem, general).W, solve(problem, special).W)


@both
def test_what_aggressive_settings_leave_unsolved_conservative_ones_solve(geometry, monkeypatch):
    problem = random_problem(20, 6, 8, 10, seed=4)
    expected = solve(problem, geometry).value
    step, limits = smoothing_path.SmoothingPath.step, set()

    def fail_when_aggressive(self, *arguments):
        limits.add(self.settings.most_steps)
        step(self, *arguments)
        if self.settings.most_steps == min(limits):
            self.ended[:] = True

    monkeypatch.setattr(smoothing_path.SmoothingPath, "step", fail_when_aggressive)
    solution = solve(problem, geometry)
    assert len(limits) == 2
    assert (solution.status == Status.OPTIMAL).all()
    np.testing.assert_allclose(solution.value, expected, rtol=1e-8)


@both
def test_an_instance_that_fails_harms_no_other(geometry, monkeypatch):
    problem = random_problem(5, 4, 4, 5, seed=9)
    expected = solve(problem, geometry).value
    start = smoothing_path.SmoothingPath.start.__func__
    culprit = solve(problem[3]).W  # the path of this one cannot be begun

    def fail_on_the_fourth(cls, task, settings, **further):
        norms = np.linalg.norm(task.W, axis=(1, 2))
        scaled = np.linalg.norm(culprit) / norms
        if (np.abs(np.log2(scaled) - np.round(np.log2(scaled))) < 1e-9).any():
            raise np.linalg.LinAlgError
        return start(cls, task, settings, **further)

    monkeypatch.setattr(smoothing_path.SmoothingPath, "start", classmethod(fail_on_the_fourth))
    solution = solve(problem, geometry)
    np.testing.assert_allclose(solution.value, expected, rtol=1e-8)  # the next method took it on
    assert (solution.status == Status.OPTIMAL).all()


@both
def test_no_constraints(geometry):
    solution = solve(MarginProblem(np.zeros((0, 3)), np.zeros((0, 2))), geometry)
    assert solution.status is Status.OPTIMAL
    np.testing.assert_array_equal(solution.W, np.zeros((3, 2)))


@pytest.mark.parametrize("graph", [NuclearPoint, SpectralPoint])
@pytest.mark.parametrize("repeated", [False, True])
def test_tangents_of_the_smoothed_graph(graph, repeated):
    # Along the graph, W and M move by the tangent: differences of a hundredth of the third order.
    rng = np.random.default_rng(0)
    U, V = np.linalg.qr(rng.normal(size=(5, 3)))[0], np.linalg.qr(rng.normal(size=(3, 3)))[0]
    Y = (U * ([2.0, 2.0, 0.7] if repeated else [2.0, 1.1, 0.7])) @ V.T
    direction, scale = rng.normal(size=(5, 3)), np.array([0.9])

    def at(t):
        factors = np.linalg.svd((Y + t * direction)[None], full_matrices=False)
        return graph.at(factors, scale, np.array([0.05]))

    h = 1e-4
    point, before, after = at(0.0), at(-h), at(h)
    tangent = point.tangent(np.array([1e-12]))
    np.testing.assert_allclose(point.W + scale * point.M, Y[None], atol=1e-14)
    dM, dW = (after.M - before.M) / (2 * h), (after.W - before.W) / (2 * h)
    moved = tangent.move(dM)
    if tangent.level is not None:
        along = np.einsum("kpi,kpq,kqi->ki", tangent.left, dM, tangent.right)
        dt = (tangent.level * along).sum(-1) / tangent.level_slope
        moved = moved + tangent.raise_level(dt)
    np.testing.assert_allclose(moved, dW, atol=1e-6)
    a, b = rng.normal(size=(1, 4, 5)), rng.normal(size=(1, 4, 3))
    gram, column = tangent.gram(a, b, a @ np.swapaxes(a, -1, -2))
    images = [tangent.move(np.outer(a[0, j], b[0, j])[None]) for j in range(4)]
    expected = [[a[0, i] @ image[0] @ b[0, i] for image in images] for i in range(4)]
    np.testing.assert_allclose(gram[0], expected, atol=1e-12)
    if column is not None:
        raised = tangent.raise_level(np.ones(1))
        np.testing.assert_allclose(column, np.einsum("kjd,kde,kje->kj", a, raised, b), atol=1e-12)
