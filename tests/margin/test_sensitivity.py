import numpy as np
import pytest
from margin_examples import random_problem, random_tokens, unit

from attractor.errors import InvalidInputError
from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral
from attractor.margin import MarginProblem, solve
from attractor.selection import Selection
from attractor.tokens import Tokens

SMOOTH = [Frobenius(), Lp(1.5), Lp(3), Schatten(1.5), Schatten(3)]
KINKED = [Nuclear(), Spectral(), Lp(1), Lp(np.inf)]


def slope(value, step):
    """Derivative at zero by central differences, extrapolated once."""
    coarse = (value(step) - value(-step)) / (2 * step)
    fine = (value(step / 2) - value(-step / 2)) / step
    return (4 * fine - coarse) / 3


def data_set(rng, queries=1):
    keys, asked = unit(rng.normal(size=(3, 4, 5))), unit(rng.normal(size=(3, queries, 5)))
    return keys, asked, rng.integers(0, 4, size=(3, queries))


def solution_of(keys, queries, index, geometry=Frobenius(), tolerance=1e-10):  # noqa: B008
    tokens = Tokens(keys, queries)
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, index))
    return solve(problem, geometry, tolerance=tolerance)


@pytest.mark.parametrize("geometry", SMOOTH + KINKED, ids=lambda g: g.name)
def test_derivatives_in_keys_and_queries_are_those_of_solving_again(rng, geometry):
    keys, queries, index = data_set(rng, queries=2)
    found = solution_of(keys, queries, index, geometry).sensitivity()
    exact = geometry == Frobenius()
    step, accuracy = (2e-4, 1e-7) if exact else (1e-3, 1e-4)
    assert found.differentiable
    for _ in range(3):
        direction = rng.normal(size=keys.shape)
        expected = slope(
            lambda t, D=direction: solution_of(keys + t * D, queries, index, geometry).norm, step
        )
        assert (found.keys * direction).sum() == pytest.approx(expected, rel=accuracy, abs=accuracy)
        direction = rng.normal(size=queries.shape)
        expected = slope(
            lambda t, D=direction: solution_of(keys, queries + t * D, index, geometry).norm, step
        )
        found_slope = (found.queries * direction).sum()
        assert found_slope == pytest.approx(expected, rel=accuracy, abs=accuracy)


def test_derivatives_in_the_vectors_and_bounds_of_constraints(rng):
    left, right = rng.normal(size=(5, 4)), rng.normal(size=(5, 3))
    bounds, equality = np.array([1.0, 2, 0.5, -0.3, 0.7]), np.array([0, 0, 0, 1, 1], dtype=bool)
    found = solve(MarginProblem(left, right, bounds, equality)).sensitivity()
    assert found.differentiable
    assert found.keys is None
    moves = [rng.normal(size=a.shape) for a in (left, right, bounds)]
    for place, derivative in enumerate((found.left, found.right, found.bounds)):

        def value(t, place=place):
            given = [left, right, bounds]
            given[place] = given[place] + t * moves[place]
            return solve(MarginProblem(*given, equality)).norm

        expected = slope(value, 1e-4)
        assert (derivative * moves[place]).sum() == pytest.approx(expected, rel=1e-8, abs=1e-9)


def test_queries_that_are_keys_move_along(rng):
    keys, index = unit(rng.normal(size=(3, 4, 5))), rng.integers(0, 4, size=3)

    def solution(keys):
        tokens = Tokens.self_attention(keys, query_position=-1)
        return solve(MarginProblem.from_selection(tokens, Selection.from_index(tokens, index)))

    found = solution(keys).sensitivity()
    direction = rng.normal(size=keys.shape)
    expected = slope(lambda t: solution(keys + t * direction).norm, 1e-4)
    assert (found.total_in_keys(-1) * direction).sum() == pytest.approx(expected, rel=1e-9)
    assert (found.keys * direction).sum() != pytest.approx(expected, rel=1e-3)


def test_every_position_asks_in_causal_attention(rng):
    keys = unit(rng.normal(size=(2, 3, 8)))
    index = np.array([[0, 1, 1], [0, 0, 2]])

    def solution(keys):
        tokens = Tokens.causal(keys)
        return solve(MarginProblem.from_selection(tokens, Selection.from_index(tokens, index)))

    found = solution(keys).sensitivity()
    direction = rng.normal(size=keys.shape)
    expected = slope(lambda t: solution(keys + t * direction).norm, 1e-4)
    assert (found.total_in_keys(range(3)) * direction).sum() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("geometry", SMOOTH + KINKED, ids=lambda g: g.name)
def test_longer_vectors_need_a_smaller_matrix(geometry):
    # The norm falls in proportion when all vectors on one side grow (Euler's identity).
    solution = solve(random_problem(3, 3, 4, 5), geometry)
    found, problem = solution.sensitivity(), solution.problem
    for derivative, vectors in ((found.left, problem.left), (found.right, problem.right)):
        np.testing.assert_allclose((derivative * vectors).sum((-1, -2)), -solution.norm, rtol=1e-7)
    np.testing.assert_allclose((found.bounds * problem.bounds).sum(-1), solution.norm, rtol=1e-7)


def test_tied_tokens(rng):
    keys, queries, _ = data_set(rng)
    mask = np.zeros((3, 1, 4), dtype=bool)
    mask[:, 0, :1] = mask[0, 0, 2] = True

    def solution(keys):
        tokens = Tokens(keys, queries)
        selection = Selection(mask, mask.sum(-1) > 1)
        return solve(MarginProblem.from_selection(tokens, selection, ties="equal"))

    found = solution(keys).sensitivity()
    direction = rng.normal(size=keys.shape)
    expected = slope(lambda t: solution(keys + t * direction).norm, 1e-4)
    assert (found.keys * direction).sum() == pytest.approx(expected, rel=1e-9)


def test_a_constraint_that_is_the_sum_of_two_leaves_one_sided_derivatives():
    left, right = [[1.0, 0], [0, 1], [1, 1]], np.ones((3, 1))
    solution = solve(MarginProblem(left, right, [1.0, 1.0, 2.0]))
    found = solution.sensitivity()
    assert found.same_for_all_solutions
    assert not found.unique_multipliers
    assert not found.differentiable
    assert "one-sided" in repr(found)
    assert "other multipliers may" in repr(found)

    def one_sided(t):
        return (solve(MarginProblem(left, right, [1.0, 1.0, 2.0 + t])).norm - solution.norm) / t

    assert one_sided(-1e-6) == pytest.approx(0, abs=1e-5)
    assert one_sided(1e-6) == pytest.approx(2**-0.5, abs=1e-5)
    assert 0 <= found.bounds[2] <= 2**-0.5 + 1e-12


def test_copies_of_a_constraint_leave_one_sided_derivatives():
    problem = MarginProblem([[1.0, 0], [1.0, 0], [0, 1]], np.ones((3, 1)))
    assert not solve(problem).sensitivity().differentiable


def test_an_idle_constraint_at_its_bound_does_no_harm():
    # v(c) = sqrt(1 + max(c - 1, 0)^2) is differentiable at c = 1.
    problem = MarginProblem([[1.0, 0], [1.0, 1.0]], np.ones((2, 1)))
    solution = solve(problem)
    assert solution.support.all()
    found = solution.sensitivity()
    assert found.differentiable
    np.testing.assert_allclose(found.bounds, [1, 0], atol=1e-12)


def test_idle_constraints_at_their_bounds_may_cancel():
    # The last two say together that w_2 = 0, and their multipliers may rise together.
    problem = MarginProblem([[1.0, 0], [0, 1], [0, -1]], np.ones((3, 1)), [1.0, 0, 0])
    found = solve(problem).sensitivity()
    assert not found.unique_multipliers


def test_a_nuclear_solution_among_many_says_so():
    # [[1, c], [c, 1]] is a solution for every |c| <= 1.
    found = solve(MarginProblem(np.eye(2), np.eye(2)), Nuclear()).sensitivity()
    assert not found.same_for_all_solutions
    assert not found.differentiable
    assert "other solutions may give others" in repr(found)


@pytest.mark.parametrize(
    ("geometry", "left", "right", "unique"),
    [
        # l_1 on one row: the multiplier is one over the largest entry, whichever it is.
        (Lp(1), [[1.0, 0.5]], [[1.0]], True),
        # l_inf: both constraints bear on the same bound.
        (Lp(np.inf), [[1.0, 0], [0, 1.0]], [[1.0], [1.0]], False),
        (Lp(np.inf), [[1.0, 0.5]], [[1.0]], True),
        # Nuclear norm: multipliers (1, 1) make the identity, and nothing else does.
        (Nuclear(), np.eye(2), np.eye(2), True),
        # Spectral norm: any two that add up to one will do.
        (Spectral(), np.eye(2), np.eye(2), False),
    ],
    ids=["l_1", "l_inf shared", "l_inf", "nuclear", "spectral"],
)
def test_multipliers_where_the_norm_has_kinks(geometry, left, right, unique):
    found = solve(MarginProblem(left, right), geometry).sensitivity()
    assert bool(found.unique_multipliers) == unique


def test_contradictions_have_no_derivatives():
    left = np.array([[[1.0], [-1.0]], [[1.0], [2.0]]])
    found = solve(MarginProblem(left, np.ones((2, 2, 1)))).sensitivity()
    assert np.isnan(found.left[0]).all() and np.isnan(found.bounds[0]).all()
    np.testing.assert_allclose(found.bounds[1], [1, 0], atol=1e-12)
    assert found.differentiable.tolist() == [False, True]
    assert "1 of 2" in repr(found)
    lone = solve(MarginProblem([[1.0], [-1.0]], np.ones((2, 1)))).sensitivity()
    assert "no solution" in repr(lone)


def test_batches_are_their_instances_side_by_side():
    tokens, selection = random_tokens(4, 3, 4, 5)
    solution = solve(MarginProblem.from_selection(tokens, selection))
    together = solution.sensitivity()
    assert together.keys.shape == tokens.keys.shape
    assert together.queries.shape == tokens.queries.shape
    for i in range(4):
        alone = solution[i].sensitivity()
        np.testing.assert_array_equal(alone.keys, together.keys[i])
        np.testing.assert_array_equal(alone.queries, together.queries[i])
        assert alone.differentiable == together.differentiable[i]
        assert alone.total_in_keys(0).shape == tokens.keys[i].shape


def test_only_tokens_that_carry_a_multiplier_move_the_norm():
    tokens, selection = random_tokens(1, 4, 5, 6)
    solution = solve(MarginProblem.from_selection(tokens, selection))[0]
    moved = np.linalg.norm(solution.sensitivity().keys, axis=-1) > 0
    allowed = (solution.support_tokens | selection.mask[0])[:, 0]
    assert (moved <= allowed).all()
    assert 0 < moved.sum() < moved.size


def test_labeled_arrays_and_tables():
    tokens, selection = random_tokens(2, 3, 4, 5)
    solution = solve(MarginProblem.from_selection(tokens, selection))
    data = solution.sensitivity().to_xarray()
    assert data["keys"].dims == ("instance", "sequence", "token", "row")
    assert data["queries"].dims == ("instance", "sequence", "query", "column")
    assert data["differentiable"].dims == ("instance",)
    alone = solution[0].sensitivity()
    sizes = np.linalg.norm(alone.keys, axis=-1)
    i, t = np.unravel_index(sizes.argmax(), sizes.shape)
    assert repr(alone).splitlines()[3].split("  ")[1] == f"sequence {i}, token {t}"
    assert "<table" in alone._repr_html_()


def test_positions_of_queries_must_fit():
    tokens, selection = random_tokens(1, 3, 4, 5)
    found = solve(MarginProblem.from_selection(tokens, selection))[0].sensitivity()
    for positions in (4, [0, 1], 0.5, -5):
        with pytest.raises(InvalidInputError, match="query_positions"):
            found.total_in_keys(positions)
    bare = solve(MarginProblem(np.eye(2), np.eye(2))).sensitivity()
    with pytest.raises(InvalidInputError, match="from_selection"):
        bare.total_in_keys(0)


@pytest.mark.parametrize(("geometry", "smooth"), [(Spectral(), True), (Lp(np.inf), False)])
def test_solutions_that_differ_matter_where_the_data_meet_the_difference(geometry, smooth):
    # W = [[1, 0], [0, w]] is a spectral solution for every |w| <= 1, but the query never meets
    # w: the norm is one over its length. In l_inf, W = [[1, v], [u, w]] is one, and turning the
    # query meets v: the norm is one over the sum of its entries.
    keys, query = np.array([[[0.0, 0], [-1, -1], [-1, 1]]]), np.array([[1.0, 0]])
    tokens = Tokens(keys, query)
    chosen = Selection.from_index(tokens, [0])
    solution = solve(MarginProblem.from_selection(tokens, chosen), geometry)
    assert solution.uniqueness == "not unique"
    found = solution.sensitivity()
    assert bool(found.differentiable) == smooth
    assert found.queries[0, 0, 0] == pytest.approx(-1, abs=1e-6)
    for turn in (1e-3, -1e-3):
        turned = Tokens(keys, query + np.array([[0, turn]]))
        norm = solve(MarginProblem.from_selection(turned, chosen), geometry).norm
        assert norm == pytest.approx(1.0 if smooth else 1 - 1e-3, abs=1e-5)


def test_solutions_that_differ_where_a_constraint_looks_leave_kinks():
    # The same as two constraints of their own: turning one of the right sides meets w, and the
    # norm falls whichever way it turns.
    left, right = np.array([[1.0, 1], [1, -1]]), np.array([[1.0, 0], [1, 0]])
    found = solve(MarginProblem(left, right), Spectral()).sensitivity()
    assert found.unique_multipliers
    assert not found.differentiable
    for turn in (1e-3, -1e-3):
        turned = right + np.array([[0, turn], [0, 0]])
        assert solve(MarginProblem(left, turned), Spectral()).norm == pytest.approx(
            1 - 0.5e-3, abs=1e-5
        )
