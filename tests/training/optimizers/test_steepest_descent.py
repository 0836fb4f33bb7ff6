import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from attractor.attention.scaled import Scaled
from attractor.geometry import BlockMaximum, BlockSum, Lp, get_geometry, registered_geometries
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision
from attractor.training.optimizers import (
    greedy_coordinate_descent,
    sign_descent,
    spectral_descent,
    steepest_descent,
)

GEOMETRIES = [geometry for kind in registered_geometries() for geometry in kind.examples()]


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


@functools.partial(jax.jit, static_argnums=0)
def direction(optimizer, gradient):
    """What a step of length one goes against."""
    updates, _ = optimizer.update(gradient, optimizer.init(gradient), gradient)
    return jax.tree.map(lambda leaf: -leaf, updates)


@functools.partial(jax.jit, static_argnums=0)
def _first_step(optimizer, mantissas, log_scales, W):
    gradient = jax.tree.map(Scaled, mantissas, log_scales)
    return optimizer.step(gradient, optimizer.init(W), W)[0], optimizer.log_time_step(gradient)


def first_step(optimizer, gradient, W):
    """Where the first step leads, and the logarithm of its time."""
    mantissas = {name: leaf.mantissa for name, leaf in gradient.items()}
    log_scales = {name: leaf.log_scale for name, leaf in gradient.items()}
    return _first_step(optimizer, mantissas, log_scales, W)


@jax.jit  # one program for all: each by itself would compile every operation
def steps(G):
    """A step of length 0.5 in every geometry."""
    optimizers = [steepest_descent(0.5, geometry) for geometry in GEOMETRIES]
    return [optimizer.update(G, optimizer.init(None))[0] for optimizer in optimizers]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
def test_no_step_of_the_length_gains_more(geometry):
    optimizer = steepest_descent(0.5, geometry)
    G = np.random.default_rng(0).normal(size=(3, 4))
    step = np.asarray(steps(G)[GEOMETRIES.index(geometry)])
    assert geometry.norm(step) == pytest.approx(0.5, rel=1e-12)
    assert (G * step).sum() == pytest.approx(-0.5 * geometry.dual_norm(G), rel=1e-12)
    assert optimizer.geometry == geometry


TIMED = ["l_1", "l_1.5", "l_8", "l_inf", "spectral", "nuclear", "schatten_1.5", "schatten_4"]


@jax.jit
def log_times(G, log_scale):
    """Of each geometry: a gradient's time, that of a zero one, and that of two arrays."""
    found = {}
    for geometry in TIMED:
        optimizer = steepest_descent(0.5, geometry)
        shape = G.shape if optimizer.by_entry else ()
        gradient = {"W": Scaled(G, jnp.full(shape, log_scale))}
        zero = {"W": Scaled(jnp.zeros((3, 4)), jnp.full(shape, -jnp.inf))}
        two = gradient | {"v": Scaled(jnp.ones((3, 4)), jnp.full(shape, log_scale))}
        found[geometry] = [optimizer.log_time_step(each) for each in (gradient, zero, two)]
    return found


@pytest.mark.parametrize("geometry", TIMED)
@pytest.mark.parametrize("log_scale", [0.0, -5000.0, 5000.0])
def test_the_time_of_a_step_is_by_the_dual_norm(geometry, log_scale):
    G = np.random.default_rng(1).normal(size=(3, 4))
    found, of_zero, of_two = log_times(G, log_scale)[geometry]
    wanted = np.log(0.5 / get_geometry(geometry).dual_norm(G)) - log_scale
    assert float(found) == pytest.approx(wanted, rel=1e-14)
    assert of_zero == -jnp.inf
    if geometry == "l_inf":  # signs are one direction for all arrays together
        wanted = np.log(0.5 / (np.abs(G).sum() + 12)) - log_scale
        assert float(of_two) == pytest.approx(wanted, rel=1e-14)
    else:
        assert np.isnan(of_two)


@pytest.mark.parametrize("geometry", ["spectral", "nuclear", "schatten_3"])
def test_a_compiled_step_and_its_time_decompose_the_gradient_once(geometry):
    optimizer = steepest_descent(0.5, geometry)

    def step(G, W):
        return optimizer.step(Scaled(G, jnp.zeros(())), optimizer.init(W), W)[0]

    def step_and_time(G, W):
        return step(G, W), optimizer.log_time_step(Scaled(G, jnp.zeros(())))

    def loops(function):
        program = jax.jit(jax.vmap(function)).lower(G, jnp.zeros_like(G)).compile()
        return program.as_text().count(" while(")

    G = jnp.asarray(np.random.default_rng(3).normal(size=(2, 3, 4)))
    assert loops(step_and_time) == loops(step) > 0


def test_signs_are_exact_whatever_the_magnitudes():
    gradient = {
        "W": Scaled(
            jnp.array([[1.0, -2.0, 0.0], [-1.0, 3.0, -0.5]]),
            jnp.array([[0.0, -9000.0, 0.0], [500.0, -3.0, -400.0]]),
        ),
        "v": Scaled(jnp.array([-7.0]), jnp.array([-2000.0])),
    }
    W = {"W": jnp.zeros((2, 3)), "v": jnp.zeros(1)}
    moved, _ = first_step(sign_descent(0.25), gradient, W)
    np.testing.assert_array_equal(moved["W"], [[-0.25, 0.25, 0], [0.25, -0.25, 0.25]])
    np.testing.assert_array_equal(moved["v"], [0.25])


def test_only_the_largest_entry_of_all_moves():
    optimizer = greedy_coordinate_descent(0.5)
    gradient = {"W": jnp.array([[1.0, -4.0], [4.0, 0.0]]), "v": jnp.array([3.0, 4.0])}
    found = direction(optimizer, gradient)
    # Of three entries of size 4, the first one.
    np.testing.assert_array_equal(found["W"], [[0, -0.5], [0, 0]])
    np.testing.assert_array_equal(found["v"], [0, 0])
    gradient["v"] = jnp.array([3.0, -4.0 - 1e-15])
    found = direction(optimizer, gradient)
    assert (found["W"] == 0).all()
    np.testing.assert_array_equal(found["v"], [0, -0.5])


def test_greedy_descent_compares_arrays_in_their_true_magnitudes():
    gradient = {
        "W": Scaled(jnp.array([[5.0, 1.0]]), jnp.asarray(-3000.0)),
        "v": Scaled(jnp.array([1e-3]), jnp.asarray(-2000.0)),
    }
    W = {"W": jnp.zeros((1, 2)), "v": jnp.zeros(1)}
    moved, log_time = first_step(greedy_coordinate_descent(0.5), gradient, W)
    assert (moved["W"] == 0).all() and moved["v"].item() == -0.5
    wanted = np.log(0.5) + 2000 - np.log(1e-3)
    assert float(log_time) == pytest.approx(wanted, rel=1e-15)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([2.5, 3.0, 8.0, 101.0]), st.integers(0, 10**6), st.floats(0, 3000))
def test_roots_see_entries_far_below_the_largest(p, seed, depth):
    # With p = 101 an entry smaller by e^-1000 moves by e^-10 of what the largest moves by.
    rng = np.random.default_rng(seed)
    mantissa, log_scale = rng.normal(size=(3, 4)), -depth * rng.random((3, 4))
    mantissa[1, 2] = 0
    with double_precision():
        gradient = {"W": Scaled(jnp.asarray(mantissa), jnp.asarray(log_scale))}
        W = {"W": jnp.zeros((3, 4))}
        moved = np.asarray(first_step(steepest_descent(1.0, Lp(p)), gradient, W)[0]["W"])
    with mpmath.workdps(40):
        power = 1 / (mpmath.mpf(p) - 1)
        entries = [
            mpmath.mpf(m) * mpmath.exp(mpmath.mpf(s))
            for m, s in zip(mantissa.ravel().tolist(), log_scale.ravel().tolist(), strict=True)
        ]
        norm = sum(abs(x) ** (1 + power) for x in entries) ** (1 / (1 + power))
        wanted = [float(-mpmath.sign(x) * (abs(x) / norm) ** power) for x in entries]
    np.testing.assert_allclose(moved.ravel(), wanted, rtol=1e-12, atol=1e-300)


def exact_orthogonal_factor(G):
    """``U V^T`` to fifty digits, over singular values that rounding did not make."""
    with mpmath.workdps(50):
        U, s, V = mpmath.svd_r(mpmath.matrix(G.tolist()))
        count = sum(value > sum(G.shape) * mpmath.mpf(2) ** -52 * s[0] for value in s)
        total = U[:, :count] * V[:count, :]
        return np.array(total.tolist(), float), float(s[0] / s[count - 1])


def with_singular_values(values, shape, seed):
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(n, len(values))))[0] for n in shape)
    return U * np.asarray(values) @ V.T


@pytest.mark.parametrize("shape", [(5, 5), (6, 4), (4, 6)], ids=str)
@pytest.mark.parametrize(
    "values",
    [
        [1, 0.8, 0.5, 0.1],
        [1, 1, 1, 1],
        [1, 1 + 1e-15, 0.5, 0.5 - 1e-14],
        [1, 0.3],
        [1],
        [1, 1e-2, 1e-2, 1e-3],
        [1, 1e-4, 1e-8, 1e-12],
    ],
    ids=str,
)
def test_the_spectral_direction_against_fifty_digits(shape, values):
    rng = np.random.default_rng(3)
    for seed, scale in enumerate((1.0, 1e-200, 1e200)):
        G = scale * with_singular_values(values, shape, seed)
        found = direction(spectral_descent(1.0), jnp.asarray(G))
        wanted, condition = exact_orthogonal_factor(G)
        assert condition > 1e3 or np.abs(found - wanted).max() < 1e-12
        # Of small singular values no more can be known than the roundings of G leave.
        neighbor = np.nextafter(G, rng.choice([-1e300, 1e300], shape))
        moved = np.abs(exact_orthogonal_factor(neighbor)[0] - wanted).max()
        assert np.abs(found - wanted).max() < 30 * moved + 1e-14
        values_found = np.linalg.svdvals(np.asarray(found))
        rounded = np.round(values_found)
        np.testing.assert_allclose(values_found, rounded, atol=1e-13)
        assert rounded.sum() == len(values)


def test_newton_schulz_is_the_iteration_of_muon():
    from optax import contrib

    G = jnp.asarray(np.random.default_rng(2).normal(size=(6, 4)))
    for gradient in (G, G.T):
        found = direction(spectral_descent(1.0, method="newton-schulz"), gradient)
        numbers = {"W": contrib.MuonDimensionNumbers()}
        stock = contrib.scale_by_muon(
            beta=0.0, nesterov=False, eps=0.0, weight_dimension_numbers=numbers
        )
        state = stock.init({"W": gradient})
        wanted, _ = jax.jit(stock.update)({"W": gradient}, state, {"W": gradient})
        np.testing.assert_allclose(found, wanted["W"], rtol=1e-9, atol=1e-10)
        assert np.linalg.svdvals(np.asarray(found)).min() > 0.5
        tiny = direction(spectral_descent(1.0, method="newton-schulz"), 1e-200 * gradient)
        np.testing.assert_allclose(tiny, found, rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"method": "qr"}, "method: 'qr'"),
        ({"method": "newton-schulz", "iterations": 0}, "iterations"),
        ({"method": "newton-schulz", "iterations": 2.0}, "iterations"),
    ],
)
def test_settings_of_spectral_descent_are_checked(settings, says):
    with pytest.raises(InvalidInputError, match=says):
        spectral_descent(0.1, **settings)


def test_geometries_go_by_name():
    assert steepest_descent(0.1, "l_3") is steepest_descent(0.1, Lp(3))
    assert steepest_descent(0.1, "l_3").settings["geometry"] == "l_3"
    with pytest.raises(InvalidInputError, match="geometry"):
        steepest_descent(0.1, "round")


@pytest.mark.parametrize("name", ["max({})", "sum({})"])
def test_blocks_whose_gradients_differ_beyond_floating_point_keep_their_steps(name):
    geometry = get_geometry(name.format("2 spectral[0:3], l_inf[3:4], l_3[4:5], nuclear[5:7]"))
    G = np.random.default_rng(3).normal(size=(7, 5))
    log_scale = np.repeat([0.0, 0, 0, -1000, -3000, -500, -500], 5).reshape(7, 5)
    log_scale[3, 2] -= 900
    optimizer = steepest_descent(1.0, geometry)

    @jax.jit
    def compiled(G, log_scale):
        gradient = {"W": Scaled(G, log_scale)}
        return optimizer.update(gradient, optimizer.init(gradient), gradient)[0]["W"]

    found = compiled(G, log_scale)
    wanted = geometry.steepest_descent_direction(G)
    if isinstance(geometry, BlockSum):  # the one that gains most, however far apart the scales
        wanted = BlockMaximum(*geometry.blocks).steepest_descent_direction(G)
        wanted[3:] = 0
    np.testing.assert_allclose(-found, wanted, atol=1e-15, rtol=1e-13)
    assert not compiled(np.zeros((7, 5)), np.full((7, 5), -np.inf)).any()
