import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.analysis import directional_bregman_divergence
from attractor.analysis.measures import measure_direction, project_on_equalities
from attractor.geometry import Frobenius, Geometry, Lp, Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection
from attractor.tokens import Tokens

GEOMETRIES = [Frobenius(), *(Lp(p) for p in (1.1, 1.5, 3, 8)), *(Schatten(p) for p in (1.5, 3))]


@pytest.fixture
def solution(rng):
    tokens = Tokens(rng.normal(size=(4, 3, 6)), rng.normal(size=(4, 5)))
    selection = Selection.from_index(tokens, [0, 1, 2, 0])
    return solve(MarginProblem.from_selection(tokens, selection), Frobenius())


def test_the_solution_measures_one_at_any_length(solution):
    W = np.stack([1e-3 * solution.W, solution.W, 1e9 * solution.W])
    measures = measure_direction(W, solution)
    np.testing.assert_allclose(measures.margin_ratio, 1, rtol=1e-9)
    np.testing.assert_allclose(measures.correlation, 1, rtol=1e-12)
    np.testing.assert_allclose(measures.kkt_residual, 0, atol=1e-9)


def test_other_directions_measure_less_than_one(solution, rng):
    W = solution.W + 0.3 * rng.normal(size=(200, *solution.W.shape))
    measures = measure_direction(W, solution)
    assert (measures.margin_ratio < 1).all()
    assert (measures.correlation < 1).all()
    assert (measures.kkt_residual > 1e-3).all()
    closer = measure_direction(0.9 * solution.W + 0.1 * W, solution)
    assert (closer.margin_ratio > measures.margin_ratio).all()


def test_the_divergence_is_that_of_the_directions_and_keeps_its_digits(solution, rng):
    step = 1e-9 * rng.normal(size=solution.W.shape)
    W = np.stack([5 * solution.W, solution.W + step, rng.normal(size=solution.W.shape)])
    measures = measure_direction(W, solution)
    found = measures.directional_bregman_divergence
    unit = solution.W / np.linalg.norm(solution.W)
    across = step - (step * unit).sum() * unit
    assert found[0] < 1e-31
    assert found[1] == pytest.approx((across**2).sum() / (solution.W**2).sum() / 2, rel=1e-6)
    assert found[2] == pytest.approx(1 - measures.correlation[2])
    nuclear = solve(solution.problem, Nuclear())
    assert np.isnan(measure_direction(W, nuclear).directional_bregman_divergence).all()
    power = solve(solution.problem, Lp(1.5))
    b = W[2] / Lp(1.5).norm(W[2])
    expected = 1 - (np.sign(b) * np.abs(b) ** 0.5 * power.W).sum() / power.value
    measured = measure_direction(W, power).directional_bregman_divergence[2]
    assert measured == pytest.approx(expected, rel=1e-9)


def test_margin_ratio_by_hand():
    tokens = Tokens([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 2.0], [0.0, 0.0]]], [[1.0], [1.0]])
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 0]))
    solution = solve(problem, Frobenius())
    np.testing.assert_allclose(solution.W, [[1.0], [0.5]], rtol=1e-12)
    W = np.array([[[3.0], [4.0]]])
    expected = min(3, 8) / 5 * np.sqrt(1.25)
    assert measure_direction(W, solution).margin_ratio[0] == pytest.approx(expected)
    wrong_side = measure_direction(-W, solution)
    assert wrong_side.margin_ratio[0] == pytest.approx(-8 / 5 * np.sqrt(1.25))
    assert wrong_side.kkt_residual[0] == pytest.approx(1 + 8 / 5 * np.sqrt(1.25))


def test_matrices_without_a_direction_measure_nothing(solution):
    W = np.stack([0 * solution.W, np.nan * solution.W])
    measures = measure_direction(W, solution)
    assert np.isnan(measures.margin_ratio).all()
    assert np.isnan(measures.correlation).all()


def test_an_infeasible_problem_measures_nothing(solution):
    tokens = Tokens([[[1.0], [-1.0]], [[1.0], [-1.0]]], [[1.0], [1.0]])
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [0, 1]))
    infeasible = solve(problem, Frobenius())
    assert np.isnan(measure_direction(np.ones((2, 1, 1)), infeasible).margin_ratio).all()


def test_equalities_are_projected_out_before_the_ratio(rng):
    keys = rng.normal(size=(2, 4, 6))
    tokens = Tokens(keys, rng.normal(size=(2, 5)))
    mask = np.zeros((2, 1, 4), bool)
    mask[0, 0, [0, 2]] = mask[1, 0, 1] = True
    selection = Selection(mask, np.zeros((2, 1), bool))
    solution = solve(MarginProblem.from_selection(tokens, selection), Frobenius())
    pair = np.einsum("d,e->de", keys[0, 0] - keys[0, 2], tokens.queries[0, 0])
    W = solution.W + 5 * pair
    measures = measure_direction(W[None], solution)
    assert measures.margin_ratio[0] == pytest.approx(1, rel=1e-9)
    assert measures.correlation[0] == pytest.approx(1, rel=1e-12)
    assert measures.removed_norm[0] == pytest.approx(5 * np.linalg.norm(pair))
    projected = project_on_equalities(W[None], solution.problem)[0]
    assert np.sum(projected * pair) == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("scale", [2.0**600, 2.0**-600])
def test_equalities_of_any_length_are_removed_alike(scale, rng):
    left, right, W = rng.normal(size=(2, 3)), rng.normal(size=(2, 4)), rng.normal(size=(1, 3, 4))
    of = [
        MarginProblem(factor * left, right, np.zeros(2), np.ones(2, bool)) for factor in (1, scale)
    ]
    projected = [project_on_equalities(W, problem) for problem in of]
    np.testing.assert_array_equal(*projected)


def test_loose_bounds_count_as_violated_never_as_margin():
    problem = MarginProblem(
        left=np.array([[1.0, 0.0], [0.0, 1.0]]), right=np.ones((2, 1)), bounds=np.array([1.0, 0.0])
    )
    solution = solve(problem, Frobenius())
    measures = measure_direction(np.array([[[2.0], [-1e-3]], [[2.0], [1e-3]]]), solution)
    assert measures.violated.tolist() == [1, 0]
    np.testing.assert_allclose(measures.margin_ratio, 1, rtol=1e-6)


def test_correlation_is_left_out_where_another_solution_may_exist():
    # The largest entry of W alone is asked for: the other entry is free.
    free = solve(MarginProblem([[1.0, 0.0]], [[1.0]]), Lp(np.inf))
    assert free.uniqueness == "not unique"
    measures = measure_direction(free.W[None], free)
    assert np.isnan(measures.correlation).all()
    assert measures.margin_ratio[0] == pytest.approx(1)


@pytest.mark.parametrize("geometry", [Nuclear(), Lp(1)], ids=lambda g: g.name)
def test_correlation_with_a_solution_known_to_be_the_only_one(solution, geometry, rng):
    only = solve(solution.problem, geometry)
    assert only.uniqueness == "unique"
    W = np.stack([3 * only.W, rng.normal(size=only.W.shape)])
    cosine = (W[1] * only.W).sum() / np.linalg.norm(W[1]) / np.linalg.norm(only.W)
    np.testing.assert_allclose(measure_direction(W, only).correlation, [1, cosine], rtol=1e-9)


def divergence(W, solution, geometry):
    return directional_bregman_divergence(np.asarray(W)[None], np.asarray(solution), geometry)[0]


def exact(W, solution, geometry):
    """``1 - <grad psi(b), a>`` in 80 digits."""
    with mpmath.workdps(80):
        p = mpmath.mpf(getattr(geometry, "p", 2.0))
        b, a = (mpmath.matrix(np.asarray(matrix).tolist()) for matrix in (W, solution))
        if isinstance(geometry, Schatten):
            U, s, V = mpmath.svd_r(b)
            norm = sum(x**p for x in s) ** (1 / p)
            slope = U * mpmath.diag([(x / norm) ** (p - 1) for x in s]) * V
            a = a / sum(x**p for x in mpmath.svd_r(a, compute_uv=False)) ** (1 / p)
        else:
            norm = sum(abs(x) ** p for x in b) ** (1 / p)
            slope = b.apply(lambda x: mpmath.sign(x) * (abs(x) / norm) ** (p - 1))
            a = a / sum(abs(x) ** p for x in a) ** (1 / p)
        return 1 - sum(x * y for x, y in zip(slope, a, strict=True))


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (1, 4)])
def test_every_digit_is_right_down_to_1e_30(geometry, shape, rng):
    solution = rng.normal(size=shape)
    smallest = 1.0
    for distance in (3, 0.3, 1e-2, 1e-4, 1e-8, 1e-12, 1e-14, 2e-15):
        W = 1e5 * (solution / np.linalg.norm(solution) + distance * rng.normal(size=shape))
        expected = exact(W, solution, geometry)
        error = abs(divergence(W, solution, geometry) - expected) / expected
        assert error < 1e-12, (distance, float(expected))
        smallest = min(smallest, float(expected))
    assert smallest < 1e-28


@given(
    p=st.floats(1.05, 8),
    size=st.floats(-20, 0),
    zeros=st.integers(0, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_entries_that_are_zero_lose_no_digit(p, size, zeros, seed):
    random = np.random.default_rng(seed)
    solution = random.normal(size=(2, 3))
    solution.flat[:zeros] = 0
    W = solution + 10**size * random.normal(size=(2, 3))
    W.flat[zeros // 2 : zeros] = 0
    if not (W != solution).any():
        return
    expected = exact(W, solution, Lp(p))
    found = divergence(W, solution, Lp(p))
    assert abs(found - expected) <= 1e-11 * expected + 1e-45


@pytest.mark.parametrize("p", [1.5, 3])
def test_a_solution_of_low_rank(p, rng):
    solution = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 4))
    unit = solution / np.linalg.norm(solution)
    for distance in (1, 1e-2, 1e-4, 1e-6, 1e-8):
        W = unit + distance * rng.normal(size=(5, 4))
        expected = exact(W, solution, Schatten(p))
        error = abs(divergence(W, solution, Schatten(p)) - expected) / expected
        assert error < 1e-13 + 1e-14 / distance, distance


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_it_is_between_0_and_2_and_knows_no_scale(geometry, rng):
    solution = rng.normal(size=(3, 4))
    W = rng.normal(size=(20, 3, 4))
    values = directional_bregman_divergence(W, solution, geometry)
    assert ((values > 0) & (values < 2)).all()
    scales = np.exp2(rng.integers(-900, 900, size=(20, 1, 1)))
    again = directional_bregman_divergence(W * scales, 2.0**-800 * solution, geometry)
    np.testing.assert_allclose(again, values, rtol=1e-13)
    assert divergence(-solution, solution, geometry) == pytest.approx(2, rel=1e-13)
    assert divergence(7 * solution, solution, geometry) < 1e-30


def test_with_p_2_it_is_one_minus_the_correlation(rng):
    W, solution = rng.normal(size=(2, 4, 5))
    cosine = np.sum(W * solution) / np.linalg.norm(W) / np.linalg.norm(solution)
    for geometry in (Frobenius(), Lp(2), Schatten(2)):
        assert divergence(W, solution, geometry) == pytest.approx(1 - cosine, rel=1e-13)


def test_entrywise_and_schatten_agree_on_diagonal_matrices(rng):
    W, solution = np.apply_along_axis(np.diag, 1, np.abs(rng.normal(size=(2, 4))))
    expected = divergence(W, solution, Lp(1.5))
    assert divergence(W, solution, Schatten(1.5)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("geometry", [Lp(1), Lp(np.inf), Nuclear(), Spectral()], ids=repr)
def test_norms_without_a_mirror_map_have_none(geometry):
    assert np.isnan(divergence(np.eye(2), np.ones((2, 2)), geometry))


def test_matrices_without_a_direction_have_none():
    W = np.stack([np.eye(2), np.zeros((2, 2)), np.full((2, 2), np.nan), np.full((2, 2), np.inf)])
    for geometry in (Lp(1.5), Schatten(1.5)):
        values = directional_bregman_divergence(W, np.ones((2, 2)), geometry)
        assert np.isnan(values).tolist() == [False, True, True, True]
        nothing = directional_bregman_divergence(W, np.zeros((2, 2)), geometry)
        assert np.isnan(nothing).all()


def test_a_geometry_of_the_user_uses_its_mirror_map(rng):
    class Weighted(Frobenius):
        """``psi = sum_ij c_i W_ij^2 / 2``."""

        name = "weighted"

        def norm(self, W):
            return np.sqrt((self.mirror_map(W) * W).sum((-1, -2)))

        def mirror_map(self, W):
            return W * np.array([[1.0], [4.0]])

    W, solution = rng.normal(size=(2, 2, 3))
    stretch = np.array([[1.0], [2.0]])
    expected = divergence(stretch * W, stretch * solution, Frobenius())
    assert isinstance(Weighted(), Geometry)
    assert divergence(W, solution, Weighted()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("power", [10, 20, 24, 30])
@pytest.mark.parametrize("seed", range(4))
def test_the_divergence_of_directions_that_agree_is_not_below_zero(seed, power):
    # Next to entries that are zero, differences are exact far below rounding.
    rng = np.random.default_rng(seed)
    solution = np.array([[0.5, 0.0], [-0.5, 0.0]])
    W = np.geomspace(1, 1e4, 300)[:, None, None] * solution * rng.choice([1, 1.1], (300, 1, 1))
    W[:, :, 1] += 10.0**-power * rng.normal(size=(300, 2))
    W[:, 0, 0] += np.spacing(W[:, 0, 0]) * rng.integers(-1, 2, size=300)
    found = directional_bregman_divergence(W, solution, Frobenius())
    assert (found >= 0).all() and (found < 1e-17).all()
