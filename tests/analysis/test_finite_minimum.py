"""Runs that end at a finite minimum of the loss have no direction, and the verdict says so."""

import mpmath
import numpy as np
import pytest
from sizes import MANY, drawn

import attractor as at
from attractor.analysis.outcomes import AT_REST, BESIDE

DIRECTIONS = ("margin_ratio", "correlation", "directional_bregman_divergence", "kkt_residual")


@pytest.fixture(scope="module")
def contradiction():
    """Two sequences of one dimension whose labels ask for opposite signs of W."""
    tokens = at.Tokens([[[1.0], [-1.0]], [[0.6], [-0.8]]], [[1.0], [1.0]], [1, -1])
    return tokens, at.LinearHead([1.0])


LOSSES = {
    "logistic": lambda m: mpmath.log(1 + mpmath.exp(-m)),
    "exponential": lambda m: mpmath.exp(-m),
    "linear": lambda m: -m,
}


def exact_loss(tokens, head, loss):
    """The loss of W in as many digits as mpmath has."""
    v = [mpmath.mpf(x) for x in head.weight.tolist()]
    n, size = len(tokens.keys[..., 0, 0].ravel()), (tokens.key_dimension, tokens.query_dimension)
    keys_of = tokens.keys.reshape(n, -1, size[0])
    queries_of, labels_of = tokens.queries.reshape(n, 1, size[1]), tokens.labels.reshape(n, 1)

    def value(*W):
        W = mpmath.matrix(np.reshape(W, size).tolist())
        total = mpmath.mpf(0)
        for keys, query, y in zip(keys_of, queries_of, labels_of, strict=True):
            X, z = mpmath.matrix(keys.tolist()), mpmath.matrix(query[0].tolist())
            weights = [mpmath.exp(s) for s in X * W * z]
            gamma = [y[0] * mpmath.fdot(v, X[t, :]) for t in range(X.rows)]
            margin = mpmath.fdot(weights, gamma) / mpmath.fsum(weights)
            total += LOSSES[loss](margin) / n
        return total

    return value


def gradient(function, W):
    orders = np.eye(len(W), dtype=int)
    return [mpmath.diff(function, tuple(W), tuple(n)) for n in orders.tolist()]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_matrix_at_rest_is_said_to_be_and_where(contradiction, loss):
    tokens, head = contradiction
    run = at.train(tokens, head, at.gradient_descent(1.0), steps=2000, loss=loss, seeds=2)
    verdict = at.verify(run)
    with mpmath.workdps(30):
        value = exact_loss(tokens, head, loss)
        exact = float(mpmath.findroot(lambda w: mpmath.diff(value, w), 0.1))
    data = verdict.to_xarray()
    assert (data["comparison"] == AT_REST).all() and verdict.at_minimum.all()
    np.testing.assert_allclose(data["minimum"].values.ravel(), exact, rtol=1e-9)
    np.testing.assert_allclose(data["minimum_norm"].values.ravel(), abs(exact), rtol=1e-9)
    np.testing.assert_allclose(data["minimum_distance"].values, 0, atol=1e-6)
    assert not data["optimum_feasible"].any()
    assert all(np.isnan(data[name]).all() for name in DIRECTIONS)
    said = " ".join(str(verdict).replace("\n", " ").split())
    for words in (
        f"In 2 of 2 trials W is at rest at a finite minimum of the loss, of norm {abs(exact):.4g}",
        "there is no limit direction to compare with",
        "no matrix selects the tokens of highest score",
    ):
        assert words in said
    assert verdict.summary()["comparison"] == {AT_REST: 2}
    assert verdict.summary()["minimum_norm"]["median"] == pytest.approx(abs(exact), rel=1e-9)


def test_what_is_still_moving_is_not_at_rest(contradiction):
    tokens, head = contradiction
    for optimizer, steps in (
        (at.normalized_gradient_descent(0.1), 2000),  # which circles it
        (at.gradient_descent(1e-3), 100),  # which is on its way
    ):
        run = at.train(tokens, head, optimizer, steps=steps, initial=np.array([[1.0]]))
        verdict = at.verify(run)
        assert verdict.data["comparison"].item() == BESIDE
        apart = abs(run.W().item() - verdict.data["minimum"].item())
        assert apart > 1e-3
        assert verdict.data["minimum_distance"].item() == pytest.approx(apart, rel=1e-9)
        assert "W is beside a finite minimum of the loss" in verdict.why
        assert "at rest" not in verdict.why and np.isnan(verdict.margin_ratio).all()


@pytest.fixture(scope="module")
def prompts():
    """Random sequences in the plane, too many for one matrix to select the tokens of all."""
    rng = np.random.default_rng(0)
    tokens = at.Tokens(
        rng.normal(size=(24, 6, 3, 2)), np.ones((24, 6, 1)), rng.choice([-1, 1], (24, 6))
    )
    return tokens, at.LinearHead(rng.normal(size=2))


@pytest.mark.long
def test_minima_of_random_data_are_minima(prompts):
    tokens, head = prompts
    run, longer = (
        at.train(tokens, head, at.gradient_descent(1.0), steps=steps) for steps in (4000, 64_000)
    )
    data = at.verify(run).data
    ended = data["comparison"].values[:, 0]
    assert {AT_REST, BESIDE, "compared"} == {*ended}
    for i in np.flatnonzero(ended != "compared"):
        minimum = data["minimum"].values[i, 0].ravel()
        with mpmath.workdps(40):
            value = exact_loss(tokens[[i]], head, "logistic")
            slopes = gradient(value, minimum)
            mixed = [[(2, 0), (1, 1)], [(1, 1), (0, 2)]]
            bent = [[mpmath.diff(value, tuple(minimum), n) for n in orders] for orders in mixed]
            curvature = np.array(bent, dtype=float)
            assert np.linalg.eigvalsh(curvature).min() > 0
            off = np.linalg.solve(curvature, np.array(slopes, dtype=float))
        np.testing.assert_allclose(off, 0, atol=1e-9)
        np.testing.assert_allclose(longer.W()[i, 0].ravel(), minimum, atol=0.05)
    moved = np.abs(longer.W() - run.W())[:, 0].max((-1, -2))
    assert moved[ended == AT_REST].max() < 1e-5 and moved[ended == "compared"].min() > 0.3
    assert not data["optimum_feasible"].values[ended != "compared"].any()


@pytest.mark.parametrize("factor", [1, 30, 1000])
def test_runs_that_diverge_are_compared_however_slow(factor):
    tokens, head = drawn(MANY)
    start = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=300).W()
    slow = at.gradient_descent(1e-6)
    verdict = at.verify(at.train(tokens, head, slow, steps=3, initial=factor * start[:, 0]))
    assert not verdict.at_minimum.any() and "minimum" not in verdict.data
    assert (verdict.data["comparison"] == "compared").all()
    assert np.isfinite(verdict.margin_ratio).all()


def test_numbers_that_overflow_have_no_minimum(contradiction):
    tokens, head = contradiction
    run = at.train(tokens, head, at.gradient_descent(1e-3), steps=1, initial=np.array([[1e300]]))
    assert not at.verify(run).at_minimum.any()


@pytest.mark.long
def test_weights_padding_and_queries_count_as_in_training():
    head, step = at.LinearHead([1.0]), at.gradient_descent(1.0)
    first, second = [[1.0], [-1.0]], [[0.6], [-0.8]]
    padded = [[*first, [9.0]], [*second, [9.0]]]
    data = {
        "repeated": at.Tokens([first, first, second], [[1.0]] * 3, [1, 1, -1]),
        "weights": at.Tokens([first, second], [[1.0]] * 2, [1, -1], weights=[4 / 3, 2 / 3]),
        "padding": at.Tokens(
            padded, [[1.0]] * 2, [1, -1], np.array([[1, 1, 0]] * 2, bool), weights=[4 / 3, 2 / 3]
        ),
        "queries": at.Tokens(
            [first, second], [[[1.0]] * 2] * 2, [[1, 1], [-1, 1]],
            rows=[[True, True], [True, False]],
        ),
    }  # fmt: skip
    found = {}
    for name, tokens in data.items():
        run = at.train(tokens, head, step, steps=3000, initial=np.array([[1.0]]))
        verdict = at.verify(run).data
        assert verdict["comparison"].item() == AT_REST, name
        found[name] = verdict["minimum"].item()
    np.testing.assert_allclose([*found.values()], found["repeated"], rtol=1e-9)
