"""Joint mirror descent on two sequences: deterministic numbers of the published code."""

import numpy as np
import pytest

from attractor.papers.figure import Request
from attractor.papers.mirror_descent.figures._two_sequences import EXACT, PUBLISHED, joint_runs

SETTINGS = {"seeds": 1}
SHOWN = [0, 1, 2, 5, 10, 20]
SOLUTIONS = {
    1.75: ([1, 0], [[-0.0818, -0.0627], [-0.0777, 0.1985]], [0.0255, 0.4592], 2.1699),
    2.0: ([1, 0], [[-0.0839, -0.0675], [-0.0794, 0.1945]], [0.0255, 0.4592], 2.1744),
    3.0: ([0, 0], [[0.1098, -0.0323], [-0.0666, 0.1969]], [-0.1832, 0.4213], 2.3122),
}
SOFTMAX = {
    1.75: [0.333, 0.333, 0.371, 0.593, 0.938, 1.000],
    2.0: [0.333, 0.333, 0.413, 0.671, 0.957, 0.999],
    3.0: [0.333, 0.333, 0.771, 0.942, 0.987, 0.998],
}
LOGISTIC = {
    1.75: [0.520, 0.550, 0.606, 0.747, 0.920, 0.997],
    2.0: [0.544, 0.587, 0.632, 0.778, 0.913, 0.990],
    3.0: [0.652, 0.708, 0.782, 0.870, 0.931, 0.973],
}
EXACT_DIVERGENCES = {1.75: (8.4e-6, 1.2e-7), 2.0: (4.7e-6, 3.1e-6), 3.0: (8.9e-5, 5.4e-4)}
PUBLISHED_DIVERGENCES = {
    1.75: (0.00827, 0.00020),
    2.0: (0.00381, 0.00032),
    3.0: (0.00273, 0.00242),
}


@pytest.fixture(scope="module")
def exact():
    return joint_runs(Request("quick", SETTINGS)).sel(kernel=EXACT)


@pytest.mark.parametrize("p", SOLUTIONS)
def test_tokens_solutions_and_probabilities(exact, p):
    run = exact.sel(p=p)
    tokens, W, v, margin = SOLUTIONS[p]
    assert run["tokens"].values.tolist() == tokens
    np.testing.assert_allclose(run["W_solution"], W, atol=6e-5)
    np.testing.assert_allclose(run["v_solution"], v, atol=6e-5)
    assert float(run["label_margin"]) == pytest.approx(margin, abs=6e-5)
    assert run["step"].values[:501].tolist() == list(range(501))
    np.testing.assert_allclose(run["softmax_probability"][SHOWN], SOFTMAX[p], atol=6e-4)
    after = run["published_logistic_probability"][[k + 1 for k in SHOWN]]
    np.testing.assert_allclose(after, LOGISTIC[p], atol=6e-4)
    assert float(run["logistic_probability"][0]) == 0.5


@pytest.mark.parametrize("p", EXACT_DIVERGENCES)
def test_both_directions_are_reached(exact, p):
    end = exact.sel(p=p).isel(record=-1)
    found = [float(end["W_divergence"]), float(end["v_divergence"])]
    np.testing.assert_allclose(found, EXACT_DIVERGENCES[p], rtol=0.04)


def test_descent_takes_the_second_best_tokens_at_p_2(exact):
    short = exact["label_margin"] / exact["best_label_margin"]
    np.testing.assert_allclose(short.sel(p=[1.75, 3.0]), 1, rtol=1e-12)
    assert float(short.sel(p=2)) == pytest.approx(0.9988, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("p", PUBLISHED_DIVERGENCES)
def test_as_published_both_come_to_a_halt(p):
    request = Request("quick", SETTINGS, as_published=True)
    end = joint_runs(request).sel(kernel=PUBLISHED, p=p).isel(record=-1)
    found = [float(end["W_divergence"]), float(end["v_divergence"])]
    np.testing.assert_allclose(found, PUBLISHED_DIVERGENCES[p], rtol=0.03)
