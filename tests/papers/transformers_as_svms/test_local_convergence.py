"""Convergence to the solution for the tokens attended to, by both measures."""

import numpy as np
import pytest

from attractor.datasets import unit_tokens
from attractor.geometry import Frobenius, Nuclear
from attractor.margin import MarginProblem, solve
from attractor.papers import get_figure
from attractor.papers.drawing import compute
from attractor.papers.figure import Request
from attractor.papers.transformers_as_svms.descent import descent
from attractor.papers.transformers_as_svms.figures.local_convergence import SHAPE
from attractor.selection import attended_tokens
from attractor.training import train

FIGURE = get_figure("transformers-as-svms/local-convergence")
STEPS = 400


@pytest.fixture(scope="module")
def data():
    return FIGURE.compute(Request("quick", {"seeds": 4, "steps": STEPS}))


@pytest.mark.parametrize(("run", "parameterization"), [("W", "W"), ("KQ", "KQ")])
def test_correlations_are_those_with_the_solution_of_the_step_itself(data, run, parameterization):
    tokens, head = unit_tokens(*SHAPE, seeds=4)
    W = train(tokens, head, steps=STEPS, record=[50], **descent(parameterization)).W(50)[:, 0]
    problem = MarginProblem.from_selection(tokens, attended_tokens(tokens, W))
    for norm in (Frobenius(), Nuclear()):
        solution = solve(problem, norm).W
        lengths = np.linalg.norm(W, axis=(1, 2)) * np.linalg.norm(solution, axis=(1, 2))
        found = data["correlation"].sel(run=run, norm=norm.name, step=50)
        np.testing.assert_allclose(found, (W * solution).sum((1, 2)) / lengths, rtol=1e-7)
    np.testing.assert_allclose(
        data["length"].sel(run=run, step=50), np.linalg.norm(W, axis=(1, 2)), rtol=1e-12
    )


def test_a_penalty_ranks_runs_oppositely_by_the_two_measures(data):
    end = data.sel(step=STEPS).mean("instance")
    free, penalized = end.sel(run="KQ"), end.sel(run="KQ with decay")
    assert penalized["correlation"].sel(norm="nuclear") > free["correlation"].sel(norm="nuclear")
    assert penalized["margin_ratio"] < free["margin_ratio"]


def test_attention_saturates_sooner_with_keys_and_queries(data):
    probability = data["probability"].sel(step=100).mean("instance")
    assert probability.sel(run="KQ") > 0.99 > 0.8 > probability.sel(run="W")


@pytest.mark.slow
def test_published_numbers():
    data, _ = compute(FIGURE, size="paper", as_published=True)
    mean = data.mean("instance")
    at = mean["correlation"].sel(step=1000)
    assert at.sel(run="W", norm="frobenius") == pytest.approx(0.992, abs=0.004)
    assert at.sel(run="W", norm="nuclear") == pytest.approx(0.862, abs=0.005)
    assert at.sel(run="KQ with decay", norm="nuclear") == pytest.approx(0.995, abs=0.003)
    assert at.sel(run="KQ as published", norm="nuclear") == pytest.approx(0.995, abs=0.003)
    assert at.sel(run="KQ", norm="nuclear") == pytest.approx(0.978, abs=0.006)
    ratio = mean["margin_ratio"].sel(step=1000)
    assert ratio.sel(run="KQ with decay") == pytest.approx(0.93, abs=0.01)
    assert ratio.sel(run="KQ") == pytest.approx(0.99, abs=0.01)
    assert (abs(mean["globally_optimal"] - 0.735) <= 0.085).all()
    distance = 1 - data["correlation"].sel(run="W", norm="frobenius", step=5000)
    assert distance.median() < 5e-4
    assert mean["length"].sel(run="W as published", step=2000) == pytest.approx(119, abs=2)
