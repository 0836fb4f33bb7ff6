"""Key and query matrices trained as published, with and without their tiny weight decay."""

import numpy as np
import pytest

from attractor.analysis import verify
from attractor.attention import LinearHead
from attractor.datasets import unit_tokens
from attractor.datasets.torch_stream import TorchNormalStream
from attractor.geometry import Frobenius, Nuclear
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import optimal_tokens
from attractor.tokens import Tokens
from attractor.training import normalized_gradient_descent, train


@pytest.fixture(scope="module")
def verdicts():
    tokens, head = unit_tokens(6, 8, 10, seeds=100)

    def held(weight_decay):
        step = normalized_gradient_descent(0.1, per_factor=True, weight_decay=weight_decay)
        run = train(tokens, head, step, steps=1000, parameterization="KQ", record=[1000])
        return verify(run, selection="reached at step")

    return {decay: held(decay) for decay in (0.0, 2.2e-16)}


@pytest.mark.long
def test_decay_ends_nearer_to_the_solution_by_correlation(verdicts):
    correlation = {decay: float(one.correlation.mean()) for decay, one in verdicts.items()}
    assert correlation[2.2e-16] == pytest.approx(0.995, abs=0.003)
    assert correlation[0.0] == pytest.approx(0.978, abs=0.006)


@pytest.mark.long
def test_decay_ends_farther_from_the_solution_by_margin_ratio(verdicts):
    ratio = {decay: float(one.margin_ratio.mean()) for decay, one in verdicts.items()}
    assert ratio[2.2e-16] == pytest.approx(0.93, abs=0.01)
    assert ratio[0.0] == pytest.approx(0.99, abs=0.01)


def test_decay_stops_the_norm(verdicts):
    norms = {
        decay: np.linalg.norm(one.trajectory.W(), axis=(-2, -1)).mean()
        for decay, one in verdicts.items()
    }
    assert norms[2.2e-16] == pytest.approx(130, rel=0.03)
    assert norms[0.0] > 2000


@pytest.fixture(scope="module")
def plane():
    """Two sequences of three tokens in the plane: the paper's picture of training paths."""
    stream = TorchNormalStream(1)
    v, keys, queries = (stream.normal(*shape).astype(float) for shape in ((2,), (2, 3, 2), (2, 2)))
    keys = 0.3 * keys + np.array([[[-1, 0]], [[1, 0]]])
    queries /= np.linalg.norm(queries, axis=-1, keepdims=True)
    tokens, head = Tokens(keys, queries, [1, 1]), LinearHead(v / np.linalg.norm(v))
    return tokens, head, MarginProblem.from_selection(tokens, optimal_tokens(tokens, head))


def test_the_path_of_the_matrix_in_the_plane(plane):
    tokens, head, problem = plane
    solution = solve(problem, Frobenius())
    assert float(solution.value) == pytest.approx(8.6857, abs=1e-4)
    step = normalized_gradient_descent(0.1)
    run = train(tokens, head, step, steps=2000, initial=np.zeros((2, 2)))
    assert float(verify(run, solution).correlation.item()) == pytest.approx(0.99968, abs=1e-5)
    assert float(run.data["norm"][0, 0, -1]) == pytest.approx(195, abs=0.5)


def key_query_path(plane, eps):
    tokens, head, problem = plane
    start = {"K": 0.1 * np.random.default_rng(0).normal(size=(2, 2)), "Q": np.zeros((2, 2))}
    # The published loss adds 2.2e-16 (||K||^2 + ||Q||^2), whose gradient is twice as much.
    step = normalized_gradient_descent(0.1, per_factor=True, eps=eps, weight_decay=4.44e-16)
    run = train(
        tokens, head, step, steps=2000, parameterization="KQ", initial=start, record=[500, 2000]
    )
    verdict = verify(run, solve(problem, Nuclear()))
    return verdict.data["correlation"].values[0, 0], np.linalg.norm(run.W()[0, 0])


def test_the_path_of_keys_and_queries_in_the_plane(plane):
    correlation, norm = key_query_path(plane, eps=2.22e-16)
    np.testing.assert_allclose(correlation, 0.99995, atol=2e-5)
    assert norm == pytest.approx(300.5, abs=0.5)


def test_steps_of_constant_length_circle_the_minimum(plane):
    correlation, norm = key_query_path(plane, eps=0.0)
    assert (correlation < 0.999).all() and norm == pytest.approx(302.5, abs=0.5)
