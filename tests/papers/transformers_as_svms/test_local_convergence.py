"""Convergence to the solution for the tokens attended to, by both measures."""

import numpy as np
import pytest
import xarray as xr

from attractor.datasets import unit_tokens
from attractor.geometry import Frobenius, Nuclear
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import attended_tokens
from attractor.papers import get_figure
from attractor.papers.drawing import compute
from attractor.papers.transformers_as_svms.descent import descent
from attractor.papers.transformers_as_svms.figures.local_convergence import SHAPE, measured
from attractor.training import train

FIGURE = get_figure("transformers-as-svms/local-convergence")
RECORDED = [0, 50, 200]


@pytest.fixture(scope="module")
def run():
    tokens, head = unit_tokens(*SHAPE, seeds=4)
    return train(tokens, head, steps=RECORDED[-1], record=RECORDED, **descent("W"))


@pytest.mark.parametrize("step", RECORDED)
@pytest.mark.parametrize("norm", [Frobenius(), Nuclear()])
def test_correlations_are_those_with_the_solution_of_the_step_itself(run, step, norm):
    data = measured(run, "reached at step").sel(norm=norm.name, step=step)
    W = run.W(step)[:, 0]
    problem = MarginProblem.from_selection(run.tokens, attended_tokens(run.tokens, W))
    solution = solve(problem, norm)
    lengths = np.linalg.norm(W, axis=(1, 2)) * np.linalg.norm(solution.W, axis=(1, 2))
    products = (W * solution.W).sum((1, 2))
    np.testing.assert_allclose(data["correlation"], products / lengths, rtol=1e-7)
    np.testing.assert_allclose(data["length"], np.linalg.norm(W, axis=(1, 2)), rtol=1e-12)


def test_the_margin_ratio_is_in_the_norm_that_training_descends(run):
    data = measured(run, "reached at end").isel(step=-1)
    W = run.W()[:, 0]
    problem = MarginProblem.from_selection(run.tokens, attended_tokens(run.tokens, W))
    solution = solve(problem, Frobenius())
    ratio = problem.margins(W).min(1) / np.linalg.norm(W, axis=(1, 2)) * solution.value
    np.testing.assert_allclose(data["margin_ratio"], ratio, rtol=1e-7)


def test_the_selection_of_the_end_is_not_that_of_the_start(run):
    own, later = measured(run, "reached at step"), measured(run, "reached at end")
    at_start = {"step": 0, "norm": "frobenius"}
    assert (later["correlation"].sel(at_start) < own["correlation"].sel(at_start)).all()
    xr.testing.assert_allclose(later.isel(step=-1), own.isel(step=-1))


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
