import cvxpy as cp
import jax
import numpy as np
import pytest
from runs import embedded_contexts, linear_path

from attractor.corpora.linear import (
    EmbeddedContexts,
    decoder_problem,
    finite_part,
    linear_regularization_path,
    measure_linear,
)
from attractor.margin import solve
from attractor.support.errors import InvalidInputError
from attractor.support.precision import double_precision

SMALL = embedded_contexts()


def plain_slope(contexts, W):
    with double_precision():
        logs = jax.nn.softmax(contexts.embeddings @ W.T)
        weights = contexts.frequencies[:, None] * (np.asarray(logs) - contexts.probabilities)
    return weights.T @ contexts.embeddings


def test_points_are_those_of_a_conic_solver():
    radii = [0.5, 3.0, 9.0]
    path = linear_regularization_path(SMALL, radii=radii)
    assert (path.data["optimality"] < 1e-10).all() and path.axis == "radius"
    np.testing.assert_allclose(path.data["norm"].squeeze(), [radii] * 3, rtol=1e-12)
    for i, contexts in enumerate(SMALL):
        p, pi = contexts.probabilities, contexts.frequencies
        for radius in radii:
            W = cp.Variable((4, 6))
            logits = contexts.embeddings @ W.T
            value = pi @ cp.log_sum_exp(logits, axis=1) - cp.sum(
                cp.multiply(pi[:, None] * p, logits)
            )
            problem = cp.Problem(cp.Minimize(value), [cp.norm(W, "fro") <= radius])
            problem.solve(cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
            np.testing.assert_allclose(path.W(radius)[i, 0], W.value, atol=3e-4)
            loss = float(path.data["loss"].sel(radius=radius)[i, 0])
            assert problem.value == pytest.approx(loss, abs=1e-8)


def test_gradient_points_against_the_matrix():
    """Where plain arithmetic still can tell: everything but rounding is along W."""
    path = linear_path()
    for i, contexts in enumerate(SMALL):
        for radius in path.steps:
            W = path.W(radius)[i, 0]
            multiplier = np.exp(float(path.data["log_multiplier"].sel(radius=radius)[i, 0]))
            residual = plain_slope(contexts, W) + multiplier * W
            assert np.abs(residual).max() < 1e-14 + 1e-12 * multiplier * radius
    assert (path.data["kkt_residual"] < 1e-11).all()


def test_limits_are_the_margin_solution_and_the_finite_part():
    path = linear_regularization_path(SMALL, radii=[1, 10, 100, 1e3, 1e4])
    solution, finite = solve(decoder_problem(SMALL)), finite_part(SMALL)
    measured = measure_linear(path, solution, finite)
    distance = 1 - measured["correlation"].isel(seed=0).to_numpy()
    # The matrix is R times a direction plus an offset that settles, so that this falls as R^-2.
    ratios = distance[:, -2] / distance[:, -1]
    np.testing.assert_allclose(ratios, 100, rtol=0.2)
    assert (distance[:, -1] < 1e-5).all() and (np.diff(distance) < 0).all()
    assert (measured["finite_error"].isel(radius=-1) < 1e-9).all()
    assert (measured["relative_finite_error"].isel(radius=0) > 0.01).all()
    assert (path.data["optimality"] < 1e-10).all()
    assert "3 trained" in repr(path) and "regularization path" in repr(path)
    slope = path.data["log_excess_loss"].differentiate("radius").isel(radius=-1, seed=0)
    np.testing.assert_allclose(slope, -1 / solution.norm, rtol=1e-2)


def test_rotated_one_hot_contexts_keep_their_direction():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    contexts = EmbeddedContexts.one_hot(basis, [2, 0, 3, 1], 4)
    path = linear_regularization_path(contexts, radii=[1, 50, 1e4])
    direction = (np.eye(4)[[2, 0, 3, 1]] - 0.25).T @ basis / np.sqrt(3)
    for radius in path.steps:
        np.testing.assert_allclose(path.W(radius)[0, 0], radius * direction, rtol=1e-12)
        odds = np.log(3) - radius / np.sqrt(3)
        expected = np.log(np.logaddexp(0, odds)) if radius < 50 else odds
        found = path.data["log_excess_loss"].sel(radius=radius).item()
        assert found == pytest.approx(expected, rel=1e-11)


def test_incompatible_contexts_tend_to_the_least_loss_within_supports():
    """Two contexts of one embedding, of odds 1:1 and 3:1, meet at 2:1 in probability."""
    contexts = EmbeddedContexts([[1.0, 0], [1, 0]], [[0.5, 0.5, 0], [0.75, 0.25, 0]])
    W = linear_regularization_path(contexts, radii=[500]).W()[0, 0]
    assert W[0, 0] - W[1, 0] == pytest.approx(np.log(0.625 / 0.375), abs=1e-12)


@pytest.mark.parametrize(
    ("argument", "given", "options"),
    [
        ("contexts", 3, {}),
        ("radii", SMALL, {"radii": [2, 1]}),
        ("tolerance", SMALL, {"tolerance": 0}),
        ("contexts", EmbeddedContexts([[1.0], [2.0]], [[1, 0], [0, 1]]), {}),
        ("contexts", EmbeddedContexts([[1.0]], [[0.4, 0.6]]), {}),
    ],
)
def test_bad_arguments_are_named(argument, given, options):
    with pytest.raises(InvalidInputError, match=f"^{argument}: "):
        linear_regularization_path(given, **options)


def test_a_path_that_is_lost_says_so():
    """Beyond the finite part, of norm 30, lambda falls to e^-100000 within a radius of two."""
    contexts = EmbeddedContexts([[200.0, 0], [0, 0.02]], [[1, 0], [0.3, 0.7]])
    path = linear_regularization_path(contexts, radii=[1, 10, 1e3])
    optimality = path.data["optimality"].squeeze().to_numpy()
    assert (optimality[:2] < 1e-8).all() and optimality[2] == np.inf
    lost = np.isnan(path.data["W"].squeeze()).all(("row", "column"))
    np.testing.assert_array_equal(lost, [False, False, True])
    assert "1 unconverged" in repr(path)
