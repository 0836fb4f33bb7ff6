"""Local convergence of normalized gradient descent, *Transformers as Support Vector Machines*.

A hundred random data sets, n = 6 sequences of T = 8 unit tokens in R^10, step 0.1, each recorded
matrix held against the margin problem of the selection it holds at that very step.
"""

from pathlib import Path

import numpy as np
import pytest

import attractor as at

ARRAYS = Path(__file__).parents[1] / "data" / "unit_tokens_6_8_10.npz"
STEPS = [0, 1000, 2000, 5000, 20_000]


def trained(steps, record):
    arrays = np.load(ARRAYS)
    first = slice(0, 100)
    tokens = at.Tokens(arrays["keys"][first], arrays["queries"][first], arrays["labels"][first])
    head = at.LinearHead(arrays["v"][first])
    step = at.normalized_gradient_descent(0.1)
    return at.train(tokens, head, step, steps=steps, record=record)


@pytest.fixture(scope="module")
def verdicts(optimized):
    run = trained(20_000, STEPS)
    reads = {
        step: at.verify(
            at.Trajectory(**(vars(run) | {"data": run.data.sel(step=slice(0, step))})),
            selection="reached at step",
        )
        for step in STEPS[1:]
    }
    return run, reads


def test_correlation_at_1000_steps(verdicts):
    mean = float(verdicts[1][1000].correlation.mean())
    assert mean == pytest.approx(0.992, abs=0.004)


@pytest.mark.parametrize(("step", "distance", "optimal"), [(5000, 5e-4, 97), (20_000, 5e-5, 100)])
def test_convergence_past_the_point_where_plain_arithmetic_stalls(
    verdicts, step, distance, optimal
):
    verdict = verdicts[1][step]
    assert float((1 - verdict.correlation).median()) < distance
    assert int(verdict.locally_optimal.sum()) >= optimal
    assert bool(verdict.feasible.all())
    assert verdict.errors == []


def test_a_later_selection_lowers_the_number_because_tokens_still_switch(verdicts):
    run, reads = verdicts
    tokens = run.tokens
    later = at.attended_tokens(tokens, run.W(2000)[:, 0])
    early = at.Trajectory(**(vars(run) | {"data": run.data.sel(step=slice(0, 1000))}))
    against_later = at.verify(early, selection=later).correlation.values.ravel()
    against_own = reads[1000].correlation.values.ravel()
    switched = ~(at.attended_tokens(tokens, run.W(1000)[:, 0]).mask == later.mask).all((-1, -2, -3))
    assert 0 < switched.sum() < 20
    np.testing.assert_allclose(against_later[~switched], against_own[~switched], rtol=1e-9)
    assert against_later[switched].mean() < against_own[switched].mean()
    assert 0.980 < against_later.mean() < against_own.mean()


def test_the_angle_falls_like_one_over_the_step(verdicts):
    run, _ = verdicts
    verdict = at.verify(run)
    median = (1 - verdict.data["correlation"]).median(("instance", "seed"))
    exponent = np.log(median.sel(step=20_000) / median.sel(step=5000)) / np.log(4)
    assert float(exponent) == pytest.approx(-2, abs=0.3)


@pytest.mark.slow
def test_nothing_stalls_at_a_norm_of_ten_thousand():
    verdict = at.verify(trained(100_000, [20_000, 100_000]))
    distance = (1 - verdict.data["correlation"]).median(("instance", "seed"))
    assert float(verdict.data["norm"].isel(step=-1).median()) > 9_000
    assert float(distance.sel(step=100_000)) < float(distance.sel(step=20_000)) / 10
    assert int(verdict.locally_optimal.sum()) == 100
