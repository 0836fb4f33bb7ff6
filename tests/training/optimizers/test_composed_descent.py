"""Spectral descent of the product of keys and queries, beside convex programs, loops and mpmath."""

import functools

import cvxpy
import jax
import mpmath
import numpy as np
import pytest
import scipy.linalg
from sizes import USUAL, drawn

import attractor as at
from attractor.attention.parameterization import KeyQueryFactors, Parameters
from attractor.attention.scaled import Scaled
from attractor.geometry import Spectral
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

WIDE = ((3, 4, 3), (4, 3, 5), (3, 3, 3))
"""Sizes d, e and width at which every matrix is a change of the product."""
NARROW = ((3, 4, 2), (4, 4, 1))


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def draw(seed, d, e, width):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape) for shape in ((d, width), (e, width), (d, e)))


@functools.partial(jax.jit, static_argnums=(0, 1))  # or every operation is a program
def compiled_step(method, rate, K, Q, G):
    optimizer = at.composed_spectral_descent(rate, method=method)
    factors = KeyQueryFactors(K, Q)
    slopes = KeyQueryFactors(G @ Q, G.T @ K)
    updates, _ = optimizer.update(slopes, optimizer.init(factors), factors, matrix_gradient=G)
    return updates.K, updates.Q


def step(method, K, Q, G, rate=1.0):
    """The step of both factors, as a loop of one's own takes it."""
    return tuple(map(np.asarray, compiled_step(method, rate, K, Q, G)))


def decrease(K, Q, G, dK, dQ):
    return -np.vdot(G @ Q, dK) - np.vdot(G.T @ K, dQ)


def moved(K, Q, dK, dQ):
    return dK @ Q.T + K @ dQ.T


def polar(G):
    U, _, V = np.linalg.svd(G, full_matrices=False)
    return U @ V


def steepest(K, Q, G, norms):
    """The largest decrease of all steps whose changes of the product have the norms asked for."""
    dK, dQ = cvxpy.Variable(K.shape), cvxpy.Variable(Q.shape)
    value = -cvxpy.sum(cvxpy.multiply(G @ Q, dK)) - cvxpy.sum(cvxpy.multiply(G.T @ K, dQ))
    problem = cvxpy.Problem(cvxpy.Maximize(value), norms(dK @ Q.T, K @ dQ.T))
    return problem.solve(cvxpy.CLARABEL)


@pytest.mark.parametrize("sizes", WIDE, ids=str)
def test_no_step_of_that_length_is_steeper_than_the_exact_one(sizes):
    K, Q, G = draw(1, *sizes)
    taken = step("exact", K, Q, G)
    best = steepest(K, Q, G, lambda a, b: [cvxpy.sigma_max(a + b) <= 1])
    assert decrease(K, Q, G, *taken) == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(moved(K, Q, *taken), -polar(G), atol=1e-12)


def test_of_all_such_steps_it_is_the_smallest():
    K, Q, G = draw(2, 3, 4, 5)
    change = np.hstack([np.kron(np.eye(3), Q), np.kron(K, np.eye(4))])  # of dK and dQ^T, by rows
    least = np.linalg.lstsq(change, -polar(G).ravel())[0]
    dK, dQ = step("exact", K, Q, G)
    np.testing.assert_allclose(np.r_[dK.ravel(), dQ.T.ravel()], least, atol=1e-12)


@pytest.mark.parametrize("sizes", NARROW, ids=str)
def test_no_step_with_a_half_for_each_factor_is_steeper_than_the_split_one(sizes):
    K, Q, G = draw(3, *sizes)
    taken = step("split", K, Q, G)
    half = lambda a, b: [cvxpy.sigma_max(a) <= 0.5, cvxpy.sigma_max(b) <= 0.5]  # noqa: E731
    assert decrease(K, Q, G, *taken) == pytest.approx(steepest(K, Q, G, half), rel=1e-6)
    best = steepest(K, Q, G, lambda a, b: [cvxpy.sigma_max(a + b) <= 1])
    assert decrease(K, Q, G, *taken) < best * (1 + 1e-6)


def test_square_factors_are_split_as_exactly():
    K, Q, G = draw(4, 3, 3, 3)
    np.testing.assert_allclose(moved(K, Q, *step("split", K, Q, G)), -polar(G), atol=1e-12)


@pytest.mark.parametrize("method", ["exact", "split", "scaled"])
def test_the_product_moves_no_farther_and_turns_with_the_factors(method):
    for seed in range(5):
        K, Q, G = draw(seed, 4, 3, 4)
        dK, dQ = step(method, K, Q, G)
        assert np.linalg.norm(moved(K, Q, dK, dQ), 2) < 1 + 1e-12
        R = scipy.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0]
        turned = step(method, K @ R, Q @ R, G)
        for after, before in zip(turned, (dK, dQ), strict=True):
            np.testing.assert_allclose(after, before @ R, atol=1e-11)


def test_scaled_steps_are_those_of_the_largest_singular_values():
    K, Q, G = draw(5, 4, 3, 2)
    dK, dQ = step("scaled", K, Q, G, 0.3)
    np.testing.assert_allclose(dK, -0.15 * polar(G @ Q) / np.linalg.norm(Q, 2), atol=1e-13)
    np.testing.assert_allclose(dQ, -0.15 * polar(G.T @ K) / np.linalg.norm(K, 2), atol=1e-13)


def test_where_factors_have_lost_their_rank():
    K, Q, G = draw(6, 3, 3, 3)
    dK, dQ = step("exact", K, 0 * Q, G)  # as training often starts
    assert not dK.any()
    np.testing.assert_allclose(K @ dQ.T, -polar(G), atol=1e-12)
    K[:, 0] = Q[:, 0] = 0  # both of rank two: some changes of the product are out of reach
    exact = step("exact", K, Q, G)
    np.testing.assert_allclose(exact, step("split", K, Q, G), atol=1e-14)
    assert np.linalg.norm(moved(K, Q, *exact), 2) < 1 + 1e-12
    halves = steepest(K, Q, G, lambda a, b: [cvxpy.sigma_max(a) <= 0.5, cvxpy.sigma_max(b) <= 0.5])
    assert decrease(K, Q, G, *exact) == pytest.approx(halves, rel=1e-6)
    for method in ("exact", "split", "scaled"):
        assert not np.any(step(method, K, Q, 0 * G)) and not np.any(step(method, 0 * K, 0 * Q, G))


def loop(tokens, v, K, Q, rate, steps, update):
    """Training in plain NumPy: the gradient in W from its formula, the factors by ``update``."""
    for _ in range(steps):
        G = np.zeros((len(K), len(Q)))
        for x, z, y in zip(
            tokens.keys[0], tokens.queries[0, :, 0], tokens.labels[0, :, 0], strict=True
        ):
            s = np.exp(x @ K @ Q.T @ z)
            s, gains = s / s.sum(), x @ v
            slope = -y / (1 + np.exp(y * (s @ gains)))
            G += np.outer(x.T @ (slope * s * (gains - s @ gains)), z)
        dK, dQ = update(K, Q, G)
        K, Q = K - rate * dK, Q - rate * dQ
    return K @ Q.T


def by_lyapunov(K, Q, G):
    L = scipy.linalg.solve_sylvester(K @ K.T, Q @ Q.T, polar(G))
    return L @ Q, L.T @ K


def by_halves(K, Q, G):
    def half(other, slope):
        root = scipy.linalg.inv(scipy.linalg.sqrtm(other.T @ other))
        return polar(slope @ root) @ root / 2

    return half(Q, G @ Q), half(K, G.T @ K)


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "width", "update"), [("exact", 5, by_lyapunov), ("split", 2, by_halves)]
)
def test_training_is_a_plain_loop(method, width, update):
    # More rows than dimensions: the gradient has full rank, and one steepest direction.
    tokens, head = at.datasets.unit_tokens(6, 4, 5, seeds=[1])
    rule = at.composed_spectral_descent(0.02, method=method)
    run = at.train(
        tokens, head, rule, steps=30, parameterization=at.KeyQuery(width), record=[0, 30],
        weights="all",
    )  # fmt: skip
    K, Q = (run.data[name].isel(seed=0, step=0).to_numpy().squeeze() for name in "KQ")
    W = loop(tokens, np.asarray(head.weight)[0], K, Q, 0.02, 30, update)
    np.testing.assert_allclose(run.W().squeeze(), W, rtol=1e-10)
    assert run.geometry == ("spectral" if method == "exact" else "not known")


@pytest.mark.long
def test_it_is_exact_where_gradients_are_beyond_floating_point():
    """Along a matrix with gaps in the thousands, beside mpmath."""
    tokens, head = at.datasets.unit_tokens(2, 3, 3, seeds=[1])
    rng = np.random.default_rng(0)
    K, Q = 130 * rng.normal(size=(2, 3, 3))
    run = at.train(
        tokens, head, at.composed_spectral_descent(1e-3), steps=1, parameterization="KQ",
        initial={"K": K, "Q": Q}, weights="all", record=[0, 1],
    )  # fmt: skip
    assert run.data.log_gradient_norm.isel(step=0).item() < -4000
    with mpmath.workdps(3000):
        exact = np.vectorize(mpmath.mpf, otypes=[object])
        W, v = exact(K) @ exact(Q).T, exact(np.asarray(head.weight)[0])
        G = np.zeros((3, 3), object)
        for x, z, y in zip(
            tokens.keys[0], tokens.queries[0, :, 0], tokens.labels[0, :, 0], strict=True
        ):
            x, z = exact(x), exact(z)
            s = np.array([mpmath.exp(score) for score in x @ W @ z])
            s, gains = s / s.sum(), x @ v
            slope = -y / (1 + mpmath.exp(y * (s @ gains)))
            G = G + np.outer(x.T @ (slope * s * (gains - s @ gains)), z)
        size = max(abs(entry) for entry in G.ravel())
    with mpmath.workdps(50):
        U, values, V = mpmath.svd_r(mpmath.matrix((G / size).tolist()))
        kept = [i for i in range(3) if values[i] > 1e-14]
        D = sum(np.outer(list(U[:, i]), list(V[i, :])) for i in kept).astype(float)
    L = scipy.linalg.solve_sylvester(K @ K.T, Q @ Q.T, D)
    for name, start, change in (("K", K, L @ Q), ("Q", Q, L.T @ K)):
        taken = run.data[name].isel(instance=0, seed=0, step=1) - start
        np.testing.assert_allclose(taken, -1e-3 * change, atol=3e-14)


@pytest.mark.parametrize("layer", ["W", "p", "(v, KQ)", at.KeyQuery(2)], ids=str)
def test_what_it_cannot_train_is_refused(layer):
    tokens, head = drawn(USUAL)
    with pytest.raises(InvalidInputError, match=r"keys and queries|width of 5") as refused:
        at.train(tokens, head, at.composed_spectral_descent(0.1), steps=1, parameterization=layer)
    assert refused.value.argument == "parameterization"


def test_a_loop_that_lacks_something_is_told():
    K, Q, G = draw(7, 3, 3, 3)
    optimizer = at.composed_spectral_descent(0.1)
    with pytest.raises(InvalidInputError, match="update"):
        optimizer.update(KeyQueryFactors(G, G), (), KeyQueryFactors(K, Q))
    with pytest.raises(InvalidInputError, match="KeyQueryFactors"):
        optimizer.init(G)
    with pytest.raises(InvalidInputError, match="method"):
        at.composed_spectral_descent(0.1, method="newton")


def test_scaled_gradients_of_training_are_taken():
    K, Q, G = draw(8, 3, 3, 3)
    optimizer = at.composed_spectral_descent(1.0)
    tree = Parameters(KeyQueryFactors(K, Q), None)
    gradient = jax.tree.map(lambda leaf: Scaled(leaf, np.array(-5000.0)), tree)
    found, _ = optimizer.step(
        gradient, optimizer.init(tree), tree, matrix_gradient=Scaled(G, np.array(-5000.0))
    )
    expected = np.add((K, Q), step("exact", K, Q, G))
    np.testing.assert_allclose((found.attention.K, found.attention.Q), expected, atol=1e-13)


def test_which_norm_of_the_product_is_declared():
    exact, split = (at.composed_spectral_descent([0.1, 0.2], method=m) for m in ("exact", "split"))
    assert exact.effective_geometry(at.KeyQuery()) == Spectral()
    assert split.effective_geometry(at.KeyQuery()) is None
    assert at.gradient_descent(0.1).effective_geometry(at.KeyQuery()).name == "nuclear"
