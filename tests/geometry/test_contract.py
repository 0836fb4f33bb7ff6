"""What every registered geometry promises, at every exponent it offers for tests."""

import pickle
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from attractor.geometry import Geometry, registered_geometries

EVERY = [geometry for kind in registered_geometries() for geometry in kind.examples()]
SMOOTH = [geometry for geometry in EVERY if geometry.unique]
ROUGH = [geometry for geometry in EVERY if not geometry.unique]
BOUNDED = [g for g in SMOOTH if not np.isnan(g.distance_to_solution(1.0, 1e-3))]
in_both_libraries = pytest.mark.parametrize("apply", ["numpy", "jit"], indirect=True)
FIRST = [next(iter(kind.examples())) for kind in registered_geometries()]
# What takes matrices of several shapes is compiled for one geometry of each kind.
in_jax_once_a_kind = pytest.mark.parametrize(
    ("geometry", "apply"),
    [(g, "numpy") for g in EVERY] + [(g, "jit") for g in FIRST],
    indirect=True,
    ids=str,
)
# Called as they are, JAX compiles each operation of a method: that is shown once a kind, too.
in_single_precision_too = pytest.mark.parametrize(
    ("geometry", "apply"),
    [(g, kind) for g in EVERY for kind in ("numpy", "numpy-single", "jit", "jit-single")]
    + [(g, "jax") for g in FIRST],
    indirect=True,
    ids=str,
)
SHAPE = (4, 3, 5)
"""What tests draw whose shape does not matter, so that each geometry is compiled once."""


@pytest.fixture(params=EVERY, ids=repr)
def geometry(request) -> Geometry:
    return request.param


traced = []


@partial(jax.jit, static_argnames="geometry")
def compiled(geometry, G):
    """What all methods make of the matrices, by name, as one program."""
    traced.append(geometry)
    names = ["norm", "dual_norm", "steepest_descent_direction"]
    if geometry.unique:
        names += ["mirror_map", "inverse_mirror_map"]
    return {name: getattr(geometry, name)(G) for name in names}


@pytest.fixture(params=["numpy", "numpy-single", "jit", "jit-single"])
def apply(request):
    """Evaluates a method in one library and precision; gives back NumPy and the precision."""
    library, _, single = request.param.partition("-")
    dtype = np.float32 if single else np.float64
    with jax.enable_x64(not single):

        def call(method, matrices):
            if library == "numpy":
                result = method(np.asarray(matrices, dtype))
                assert isinstance(result, (np.ndarray, np.generic))
            elif library == "jax":
                result = method(jnp.asarray(matrices, dtype))
                assert isinstance(result, jax.Array)
            else:
                result = compiled(method.__self__, np.asarray(matrices, dtype))[method.__name__]
            assert result.dtype == dtype
            return np.asarray(result)

        call.eps = float(np.finfo(dtype).eps)
        yield call


def inner(A, B):
    return (A * B).sum((-2, -1))


@in_single_precision_too
def test_direction_attains_the_dual_norm_within_the_unit_ball(geometry, apply):
    G = np.random.default_rng(0).normal(size=SHAPE)
    D = apply(geometry.steepest_descent_direction, G)
    assert D.shape == G.shape
    rtol = 1e3 * apply.eps
    np.testing.assert_allclose(geometry.norm(D.astype(float)), 1.0, rtol=rtol)
    np.testing.assert_allclose(inner(G, D), geometry.dual_norm(G), rtol=rtol)


@in_single_precision_too
def test_norms_agree_in_every_library_and_precision(geometry, apply):
    G = np.random.default_rng(1).normal(size=SHAPE)
    for method in (geometry.norm, geometry.dual_norm):
        np.testing.assert_allclose(apply(method, G), method(G), rtol=30 * apply.eps)


@pytest.mark.parametrize("apply", ["jit-single"], indirect=True)
def test_compiled_methods_agree_with_the_others(geometry, apply):
    G = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    methods = [geometry.norm, geometry.dual_norm, geometry.steepest_descent_direction]
    if geometry.unique:
        methods += [geometry.mirror_map]
    for method in methods:
        np.testing.assert_allclose(apply(method, G), method(G), rtol=1e-3, atol=1e-5)


entries = st.one_of(st.sampled_from([0.0, 1.0, -1.0]), st.floats(-1e3, 1e3, allow_subnormal=False))
shapes = st.tuples(st.integers(1, 5), st.integers(1, 5))


@given(shapes.flatmap(lambda shape: arrays(float, (2, *shape), elements=entries)))
@pytest.mark.parametrize("kind", registered_geometries())
def test_duality_and_the_laws_of_a_norm(kind, pair):
    A, B = pair
    for geometry in kind.examples():
        room = 1 + 2 * geometry.norm_rounding(*A.shape)
        for norm in (geometry.norm, geometry.dual_norm):
            assert norm(A + B) <= (norm(A) + norm(B)) * room + 1e-300
            assert norm(-3 * A) == pytest.approx(3 * norm(A), rel=1e-14)
            assert (norm(A) > 0) == (A != 0).any()
        bound = geometry.norm(A) * geometry.dual_norm(B)
        assert abs(inner(A, B)) <= bound * (1 + 1e-13)
        D = geometry.steepest_descent_direction(B)
        assert geometry.norm(D) <= 1 + 1e-12
        assert inner(B, D) == pytest.approx(geometry.dual_norm(B), rel=1e-12)


def test_no_matrix_of_the_unit_ball_does_better(geometry):
    rng = np.random.default_rng(1)
    G = rng.normal(size=(3, 4))
    D = rng.normal(size=(500, 3, 4))
    assert (inner(G, D) / geometry.norm(D) <= geometry.dual_norm(G) * (1 + 1e-12)).all()


@in_both_libraries
def test_zero_is_zero_and_harms_no_other(geometry, apply):
    G = np.zeros(SHAPE)
    G[1] = 1
    D = apply(geometry.steepest_descent_direction, G)
    assert (D[[0, 2, 3]] == 0).all()
    assert (D[1] != 0).any()
    for norm in (geometry.norm, geometry.dual_norm):
        assert (apply(norm, G) > 0).tolist() == [False, True, False, False]


@in_jax_once_a_kind
def test_a_matrix_with_nan_gives_nan_and_harms_no_other(geometry, apply):
    whole = 0.1 * np.random.default_rng(5).normal(size=SHAPE)
    broken = whole.copy()
    broken[1, 0, 1] = np.nan
    methods = [geometry.norm, geometry.dual_norm, geometry.steepest_descent_direction]
    if geometry.unique:
        methods += [geometry.mirror_map, geometry.inverse_mirror_map]
    for method in methods:
        found = apply(method, broken)
        assert np.isnan(found[1]).any()
        np.testing.assert_array_equal(found[[0, 2, 3]], apply(method, whole)[[0, 2, 3]])


@in_jax_once_a_kind
def test_batches_of_any_shape_and_none(geometry, apply):
    G = np.random.default_rng(6).normal(size=(2, 2, 3, 5))
    rtol = 100 * apply.eps
    for method in (geometry.norm, geometry.dual_norm):
        assert apply(method, G[:0]).shape == (0, 2)
        np.testing.assert_allclose(apply(method, G)[1, 0], apply(method, G[1, 0]), rtol=rtol)
    directions = apply(geometry.steepest_descent_direction, G)
    alone = apply(geometry.steepest_descent_direction, G[1, 0])
    np.testing.assert_allclose(directions[1, 0], alone, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("shape", [(4, 3), (2, 5), (1, 3), (1, 1)], ids=str)
def test_dual_norm_constant_is_the_least(geometry, shape):
    constant = geometry.dual_norm_constant(*shape)
    G = np.random.default_rng(2).normal(size=(300, *shape))
    largest = (geometry.dual_norm(G) / np.linalg.norm(G, axis=(1, 2))).max()
    assert largest <= constant * (1 + 1e-12)
    corner = np.zeros(shape)
    corner[0, 0] = 1
    row, column = np.zeros((2, *shape))
    row[0], column[:, 0] = 1, 1
    extremes = np.stack([np.ones(shape), np.eye(*shape), corner, row, column])
    ratio = geometry.dual_norm(extremes) / np.linalg.norm(extremes, axis=(1, 2))
    assert ratio.max() == pytest.approx(constant, rel=1e-13)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_norms_neither_overflow_nor_vanish(geometry, scale):
    G = np.random.default_rng(3).normal(size=(2, 3, 3))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for norm in (geometry.norm, geometry.dual_norm):
            np.testing.assert_allclose(norm(G * scale) / scale, norm(G), rtol=1e-13)
        np.testing.assert_allclose(
            geometry.steepest_descent_direction(G * scale),
            geometry.steepest_descent_direction(G),
            rtol=1e-11,
            atol=1e-300,
        )


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e30])
@pytest.mark.parametrize("apply", ["numpy-single", "jit-single"], indirect=True)
def test_tiny_gradients_in_single_precision_keep_their_norm(geometry, apply, scale):
    G = np.random.default_rng(4).normal(size=SHAPE)
    for norm in (geometry.norm, geometry.dual_norm):
        np.testing.assert_allclose(apply(norm, G * scale) / scale, norm(G), rtol=1e-5)


def test_strict_convexity_is_declared(geometry):
    pairs = np.zeros((2, 2, 2, 2))
    pairs[0, 0, 0, 0] = pairs[0, 1, 1, 1] = 1
    pairs[1, 0], pairs[1, 1] = np.eye(2), np.diag([1.0, -1.0])
    pairs /= geometry.norm(pairs)[..., None, None]
    middle = geometry.norm(pairs.mean(1))
    assert (middle < 1 - 1e-4).all() == geometry.unique


def test_unitary_invariance_is_declared(geometry):
    rng = np.random.default_rng(7)
    W = rng.normal(size=(4, 3))
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (4, 3))
    same = np.isclose(geometry.norm(U @ W @ V), geometry.norm(W), rtol=1e-12)
    assert same == geometry.unitarily_invariant


@pytest.mark.parametrize("geometry", SMOOTH, ids=repr)
def test_mirror_maps_are_inverse(geometry, apply):
    rng = np.random.default_rng(8)
    U, V = (np.linalg.qr(rng.normal(size=(4, n, 3)))[0] for n in (3, 5))
    values = np.array([[2, 1.5, 1], [1, 1, 1], [0.02, 0.01, 0], [0, 0, 0]])
    W = (U * values[:, None, :]) @ np.swapaxes(V, 1, 2)
    image = apply(geometry.mirror_map, W)
    back = apply(geometry.inverse_mirror_map, image)
    rtol = 1e4 * apply.eps
    np.testing.assert_allclose(back, W, rtol=rtol, atol=rtol)
    assert (image[3] == 0).all()
    assert (back[3] == 0).all()


@pytest.mark.parametrize("geometry", ROUGH, ids=repr)
def test_mirror_maps_are_refused_where_the_potential_is_not_smooth(geometry):
    for method in (geometry.mirror_map, geometry.inverse_mirror_map):
        with pytest.raises(NotImplementedError, match=re.escape(geometry.name)):
            method(np.ones((2, 2)))


@pytest.mark.parametrize("geometry", SMOOTH, ids=repr)
def test_steepest_descent_is_the_inverse_mirror_map_in_the_unit_ball(geometry):
    G = np.random.default_rng(9).normal(size=(6, 4, 3))
    W = geometry.inverse_mirror_map(G)
    D = geometry.steepest_descent_direction(G)
    np.testing.assert_allclose(D, W / geometry.norm(W)[:, None, None], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("geometry", BOUNDED, ids=repr)
def test_distance_bound_holds_for_feasible_matrices(geometry):
    # One constraint <A, W> >= 1: the solution is the steepest direction over the dual norm.
    rng = np.random.default_rng(10)
    A = rng.normal(size=(40, 1, 3, 4))
    least = 1 / geometry.dual_norm(A)
    solution = geometry.steepest_descent_direction(A) * least[..., None, None]
    step = 10.0 ** rng.uniform(-6, 0, size=(40, 50, 1, 1))
    W = solution + step * geometry.norm(solution)[..., None, None] * rng.normal(size=(40, 50, 3, 4))
    margins = inner(A, W)
    A, least, solution = (np.broadcast_to(x, (40, 50, *x.shape[2:])) for x in (A, least, solution))
    feasible = margins > 0
    W = W[feasible] / margins[feasible][:, None, None]
    value = geometry.norm(W)
    gap = (value - least[feasible]) / value + 1e-15
    distance = np.linalg.svdvals(W - solution[feasible])[:, 0]
    bound = np.array([geometry.distance_to_solution(v, g) for v, g in zip(value, gap, strict=True)])
    assert (distance <= bound).all()
    assert geometry.distance_to_solution(1.0, 0.0) == 0


@pytest.mark.parametrize("geometry", ROUGH, ids=repr)
def test_no_distance_is_claimed_where_solutions_are_many(geometry):
    assert np.isnan(geometry.distance_to_solution(1.0, 1e-3))


@pytest.mark.parametrize("geometry", BOUNDED, ids=repr)
def test_distance_bound_is_nearly_attained(geometry):
    ratios = []
    corner = np.diag([1.0, 0.0])
    for A, step in ((np.eye(2), np.diag([1.0, -1.0])), (corner, np.diag([0.0, 1.0]))):
        solution = geometry.steepest_descent_direction(A)
        W = solution + 0.1 * step
        value = geometry.norm(W)
        gap = (value - geometry.norm(solution)) / value
        ratios.append(0.1 / geometry.distance_to_solution(value, gap))
    assert 0.4 < max(ratios) <= 1


def test_name_and_representation_lead_back(geometry):
    import attractor.geometry as rooms

    again = eval(repr(geometry), vars(rooms) | {"inf": np.inf})
    for other in (rooms.get_geometry(geometry.name), again, pickle.loads(pickle.dumps(geometry))):
        assert other == geometry
        assert hash(other) == hash(geometry)
    assert rooms.get_geometry(geometry) is geometry
    assert geometry != geometry.name


def test_geometries_are_equal_exactly_when_their_norms_are():
    W = np.random.default_rng(11).normal(size=(4, 5))
    for a in EVERY:
        for b in EVERY:
            assert (a == b) == np.isclose(a.norm(W), b.norm(W), rtol=1e-12)


def test_geometries_may_be_static_arguments(geometry):
    G = np.ones(SHAPE, np.float32)
    compiled(geometry, G)
    before = len(traced)
    compiled(pickle.loads(pickle.dumps(geometry)), G)
    assert len(traced) == before
