"""Gradient flow over the logarithm of time: beside the flow itself, and gradient descent."""

import numpy as np
import pytest

import attractor as at
from attractor.maps.sweeps import Grid, built_in
from attractor.maps.sweeps.experiments import train_and_verify
from attractor.maps.sweeps.experiments.flow_and_verify import flow_and_verify, run
from attractor.support.errors import InvalidInputError

SIZE = {"n": 3, "T": 4, "d": 5}
INSTANCES = np.array([2, 5, 6])
SEEDS = range(3, 5)
TIMES = [2.0, 5.0, 20.0]


@pytest.fixture(scope="module")
def followed():
    return run({"initial_scale": 6.0}, INSTANCES, SEEDS, log_times=TIMES, **SIZE)


@pytest.mark.long
def test_measures_are_those_of_the_flow_at_each_time(followed):
    tokens, head = at.datasets.unit_tokens(3, 4, 5, seeds=INSTANCES.tolist())
    flow = at.gradient_flow(tokens, head, log_time=20.0, record=TIMES, seeds=2, seed=3, initial=6.0,
                            weights="all")  # fmt: skip
    verdict = at.verify(flow, selection="reached at step").data
    for name in ("margin_ratio", "correlation", "selected_probability"):
        expected = verdict[name].transpose("instance", "seed", ...)
        assert np.allclose(followed[name], expected, rtol=1e-9, atol=0), name
    attended = flow.data["attended"].transpose("instance", "seed", ...).to_numpy()
    best = at.optimal_tokens(tokens, head).index[:, None, None, :, None]
    assert np.array_equal(followed["selection_agreement"], (attended == best).mean((-1, -2)))
    assert set(followed) == set(flow_and_verify(log_times=TIMES).measures)
    assert {array.shape for array in followed.values()} == {(3, 2, 3)}


@pytest.mark.long
def test_small_steps_follow_the_flow_and_large_ones_do_not(followed):
    """The time of gradient descent is the sum of its steps: routes of one time agree."""
    given = {"optimizer": "gradient descent", "initial_scale": 6.0, **SIZE}
    share = ("initial_agreement", "selection_agreement", "gradient_agreement")
    at_time = {name: followed[name][..., 1] for name in share}  # t = e^5
    differ = {}
    for rate in (0.1, 1.0, 140.0):
        point = {"learning_rate": rate, "steps": round(np.exp(5) / rate)}
        found = train_and_verify.run(point, INSTANCES, SEEDS, **given)
        assert np.allclose(found["log_time"], 5, atol=0.07)
        differ[rate] = max(np.abs(found[name] - at_time[name]).max() for name in share)
        close = np.abs(found["training_loss"] - followed["training_loss"][..., 1]).max()
        assert (close < 3e-3) == (rate < 100)
    assert differ[0.1] == differ[1.0] == 0 < differ[140.0]


def test_a_flow_from_zero_has_no_selection_of_its_start():
    found = run({"initial_scale": 0.0}, INSTANCES, SEEDS, log_times=[5, 20], **SIZE)
    assert np.isnan(found["initial_agreement"]).all()
    assert np.array_equal(found["margin_ratio"][:, 0], found["margin_ratio"][:, 1])  # no seeds


@pytest.mark.long
def test_a_time_so_early_that_nothing_moved_is_the_start():
    found = run({"parameterization": "KQ", "initial_scale": 30.0}, INSTANCES, SEEDS,
                log_times=[-5.0, 1.0], **SIZE)  # fmt: skip
    assert (found["initial_agreement"] == 1).all() and (found["settled"] == 1).all()
    assert not found["status"].any()


@pytest.mark.parametrize(
    ("axes", "settings", "argument"),
    [
        ({}, {}, "log_times"),
        ({}, {"log_times": []}, "log_times"),
        ({}, {"log_times": [3, 2]}, "log_times"),
        ({}, {"log_times": [2, float("inf")]}, "log_times"),
        ({}, {"log_times": [2], "steps": 5}, "steps"),
        ({}, {"log_times": [2], "tolerance": 1.0}, "tolerance"),
        ({"optimizer": ["adam"]}, {"log_times": [2]}, "axes['optimizer']"),
        ({"initial_scale": [0.0]}, {"log_times": [2], "parameterization": "KQ"}, "initial"),
        ({"loss": ["cross_entropy"]}, {"log_times": [2]}, "labels"),
        ({"geometry": ["l_0"]}, {"log_times": [2]}, "geometry"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_any_work(axes, settings, argument):
    with pytest.raises(InvalidInputError) as refused:
        built_in("flow_and_verify", **settings).check_grid(Grid(axes, instances=1))
    assert refused.value.argument == argument
