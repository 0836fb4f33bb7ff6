"""Where an average passes a level: known curves, what is out of reach, and coverage."""

import numpy as np
import pytest
import xarray as xr

from attractor.maps.sweeps import average_trials, crossings
from attractor.support.errors import InvalidInputError

PLACES = [1, 2, 4, 8, 16]


def results(curves, places=PLACES, noise=0.0, instances=6, seeds=1, random=None):
    """Curves over one axis, a point each, the same for every trial but for noise."""
    shape = (len(curves), len(places), instances, seeds)
    numbers = np.broadcast_to(np.asarray(curves, float)[:, :, None, None], shape).copy()
    if noise:
        numbers += noise * random.normal(size=(len(curves), 1, instances, 1))
    return xr.Dataset(
        {"share": (("start", "time", "instance", "seed"), numbers)},
        {"start": np.arange(len(curves)), "time": places, "instance": np.arange(instances),
         "seed": np.arange(seeds)},
    )  # fmt: skip


def test_a_curve_passes_between_two_values_on_the_scale_they_are_even_on():
    found = crossings(results([[1, 0.8, 0.2, 0.1, 0]]), "share", "time", ["start"])
    assert float(found["mean"][0]) == pytest.approx(2 * 2**0.5)  # half-way from 2 to 4
    even = results([[1, 0.8, 0.2, 0.1, 0]], [1, 2, 3, 4, 5])
    assert float(crossings(even, "share", "time", ["start"])["mean"][0]) == pytest.approx(2.5)
    near = crossings(even, "share", "time", ["start"], level=0.15)
    assert float(near["mean"][0]) == pytest.approx(3.5)


def test_what_comes_back_has_not_passed_yet_and_ends_are_infinite():
    """Falling in all: for good from 8 on; before the first value; not by the last."""
    curves = [[0.9, 0.3, 0.6, 0.4, 0], [0.4, 0.3, 0.2, 0.1, 0], [1, 0.9, 0.9, 0.3, 0.5]]
    found = crossings(results(curves), "share", "time", ["start"])
    assert found["mean"].values == pytest.approx([4 * 2**0.5, -np.inf, np.inf])
    assert found["low"].values == pytest.approx(found["mean"].values)  # trials are alike
    assert found["high"].values == pytest.approx(found["mean"].values)
    assert found.attrs["description"].endswith("mean share is below 0.5")
    up = crossings(results(1 - np.array(curves)), "share", "time", ["start"])
    assert up["mean"].values == pytest.approx(found["mean"].values)
    assert up.attrs["description"].endswith("mean share is above 0.5")


def test_of_means_that_rise_and_fall_the_side_is_named():
    """Rising in the sum, where one ends lower than it begins: each leaves the level for good."""
    curves = [[0, 0.9, 0.8, 0.2, 0.1], [0.6, 0.9, 0.9, 0.8, 0.4], [0.1, 0.4, 0.4, 0.4, 0.3]]
    found = crossings(results(curves), "share", "time", ["start"], side="below")
    assert found["mean"].values == pytest.approx([4 * 2**0.5, 8 * 2**0.75, -np.inf])
    assert found.attrs["description"].endswith("mean share is below 0.5")
    up = crossings(results(curves), "share", "time", ["start"], side="above")
    assert up["mean"].values == pytest.approx([np.inf] * 3)


def test_values_may_come_in_any_order():
    curve = np.array([[1, 0.8, 0.2, 0.1, 0]])
    order = [3, 0, 4, 2, 1]
    mixed = results(curve[:, order], [PLACES[k] for k in order])
    assert crossings(mixed, "share", "time", ["start"]).equals(
        crossings(results(curve), "share", "time", ["start"])
    )


@pytest.mark.long
def test_intervals_cover_as_often_as_they_say():
    """Every data set has its own offset; percentiles of 40 of them cover 94 % instead of 95 %."""
    random = np.random.default_rng(3)
    line = np.linspace(1, 0, 5)
    draws = results([line] * 2000, [1, 2, 3, 4, 5], noise=0.2, instances=40, random=random)
    found = crossings(draws, "share", "time", ["start"], resamples=400)
    covered = (found["low"] <= 3) & (found["high"] >= 3)
    assert float(covered.mean()) == pytest.approx(0.94, abs=0.015)
    assert np.isfinite(found["low"]).all()


def test_seeds_are_averaged_first_and_what_is_missing_is_left_out():
    data = results([[1, 0.8, 0.2, 0.1, 0]], instances=2, seeds=3)
    data["share"][:, :, 0, :2] = np.nan
    data["share"][:, :, 1, 0] = 0  # a seed of the second data set: its mean is two thirds
    found = crossings(data, "share", "time", ["start"])
    mean = average_trials(data, "share", ["start", "time"])["mean"].values[0]
    assert mean == pytest.approx(np.array([1, 0.8, 0.2, 0.1, 0]) * 5 / 6)
    expected = 2 ** (1 + (mean[1] - 0.5) / (mean[1] - mean[2]))
    assert float(found["mean"][0]) == pytest.approx(expected)
    assert int(found["measured"][0]) == 20 and int(found["trials"][0]) == 30
    data["share"][:, 1] = np.nan
    assert np.isnan(crossings(data, "share", "time", ["start"])["mean"]).all()


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"along": "tim"}, "along"),
        ({"along": "time", "of": "shar"}, "of"),
        ({"along": "time", "axes": []}, "at"),
        ({"along": "time", "level": float("nan")}, "level"),
        ({"along": "time", "resamples": 0}, "resamples"),
        ({"along": "time", "side": "left"}, "side"),
        ({"along": "start", "axes": ["time"]}, "along"),
    ],
)
def test_what_cannot_be_passed_is_refused(arguments, argument):
    flat = results([[1, 0.8, 0.2, 0.1, 0]] * 2)
    with pytest.raises(InvalidInputError) as refused:
        crossings(flat, **{"of": "share", "axes": ["start"], **arguments})
    assert refused.value.argument == argument
