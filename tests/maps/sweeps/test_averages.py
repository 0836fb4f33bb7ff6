"""Averages over trials: against SciPy's intervals, and their coverage in simulation."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from attractor.maps.sweeps import average_trials
from attractor.support.errors import InvalidInputError

DIMS = ("n", "rule", "instance", "seed")


def sweep_data(numbers, flags):
    """Results with a number and a flag, over two axes of two values."""
    lengths = numbers.shape
    return xr.Dataset(
        {
            "ratio": (DIMS, numbers, {"long_name": "a ratio (1)"}),
            "found": (DIMS, flags, {"long_name": "whether it is found"}),
            "status": (DIMS, np.full(lengths, 3, np.int8)),
        },
        {"n": [2, 4], "rule": ["plain", "sign"], "instance": np.arange(lengths[2]),
         "seed": np.arange(lengths[3])},
    )  # fmt: skip


@pytest.fixture
def data(rng):
    numbers = rng.normal(size=(2, 2, 12, 1))
    flags = (rng.random((2, 2, 12, 1)) < 0.7).astype(np.int8)
    numbers[0, 0, 3] = np.nan
    flags[0, 0, :2] = -1
    flags[1, 1] = -1
    return sweep_data(numbers, flags)


def test_numbers_have_students_interval(data):
    found = average_trials(data, "ratio", ["rule", "n"], confidence=0.9)
    assert found["mean"].dims == ("rule", "n")
    for n in (2, 4):
        for rule in ("plain", "sign"):
            values = data["ratio"].sel(n=n, rule=rule).to_numpy().ravel()
            values = values[np.isfinite(values)]
            own = found.sel(n=n, rule=rule)
            answer = stats.ttest_1samp(values, 0).confidence_interval(0.9)
            assert [float(own["low"]), float(own["high"])] == pytest.approx([*answer])
            assert float(own["mean"]) == pytest.approx(values.mean())
            assert int(own["measured"]) == len(values) and int(own["trials"]) == 12


def test_flags_have_wilsons_interval_and_what_is_missing_is_counted(data):
    found = average_trials(data, "found", ["n", "rule"])
    flags = data["found"].to_numpy()[0, 0].ravel()
    answer = stats.binomtest(int((flags == 1).sum()), 10).proportion_ci(0.95, "wilson")
    own = found.sel(n=2, rule="plain")
    assert [float(own["low"]), float(own["high"])] == pytest.approx([*answer])
    assert int(own["measured"]) == 10
    lost = found.sel(n=4, rule="sign")
    assert int(lost["measured"]) == 0 and int(lost["trials"]) == 12
    assert all(np.isnan(lost[name]) for name in ("mean", "low", "high"))


def test_seeds_of_one_data_set_are_not_independent(rng):
    """Where data sets decide the outcome there are as many trials as data sets, not more."""
    decided = np.repeat((rng.random((2, 2, 30, 1)) < 0.5), 20, axis=3).astype(np.int8)
    found = average_trials(sweep_data(decided.astype(float), decided), "found", ["n", "rule"])
    alone = average_trials(
        sweep_data(decided[..., :1].astype(float), decided[..., :1]), "found", ["n", "rule"]
    )
    width, widest = found["high"] - found["low"], alone["high"] - alone["low"]
    assert np.allclose(found["mean"], alone["mean"])
    assert (np.abs(width / widest - 1) < 0.02).all()


@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_intervals_of_flags_cover_as_often_as_they_say(shared):
    """40 data sets of 5 seeds, whose own probabilities vary by much or not at all."""
    random = np.random.default_rng(5)
    draws, instances = 2000, 40
    spread = random.choice([-1, 1], (draws, instances, 1)) * shared * 0.5
    flags = (random.random((draws, instances, 5)) < 0.5 + spread).astype(np.int8)
    data = xr.Dataset(
        {"found": (("draw", "instance", "seed"), flags)},
        {"draw": np.arange(draws), "instance": np.arange(instances), "seed": np.arange(5)},
    )
    found = average_trials(data, "found", ["draw"])
    covered = ((found["low"] <= 0.5) & (0.5 <= found["high"])).mean()
    assert float(covered) == pytest.approx(0.95, abs=0.02)


def test_one_data_set_has_a_mean_and_no_interval():
    data = sweep_data(np.ones((2, 2, 1, 1)), np.ones((2, 2, 1, 1), np.int8))
    found = average_trials(data, "ratio", at={"n": 2, "rule": "sign"})
    assert float(found["mean"]) == 1 and np.isnan(found["low"]) and np.isnan(found["high"])


def test_values_are_found_as_they_are_written(data):
    by_text = average_trials(data, "ratio", ["rule"], at={"n": "4"})
    assert by_text.identical(average_trials(data, "ratio", ["rule"], at={"n": 4.0}))
    assert by_text.attrs["at"] == "n = 4"


def test_several_measures_are_an_axis(data):
    twice = data.assign(half=data["ratio"] / 2)
    found = average_trials(twice, ["half", "ratio"], ["n"], at={"rule": "sign"})
    assert found["mean"].dims == ("measure", "n") and found["measure"].values.tolist() == [
        "half", "ratio",
    ]  # fmt: skip
    for name in ("half", "ratio"):
        alone = average_trials(twice, name, ["n"], at={"rule": "sign"})
        for number in ("mean", "low", "high", "measured", "trials"):
            assert found[number].sel(measure=name).drop_vars("measure").equals(alone[number])
    assert found.attrs["of"] == "half, ratio" and found.attrs["kind"] == "number"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"of": ["ratio", "found"], "axes": ["n", "rule"]}, "some are flags, some numbers"),
        ({"of": ["ratio", "ratio"], "axes": ["n", "rule"]}, "it names a measure twice"),
        ({"of": [], "axes": ["n", "rule"]}, "of: it has 0 items"),
        ({"of": ["ratio", "fond"], "axes": ["n", "rule"]}, "of: 'fond' is not known"),
        ({"of": "ration"}, "of: 'ration' is not known. Did you mean ratio?"),
        ({"of": "status", "axes": ["n", "rule"]}, "of: status holds codes"),
        ({"of": "ratio", "axes": ["n"]}, "at: rule has 2 values: plain, sign. Give one"),
        (
            {"of": "ratio", "axes": ["n", "role"]},
            "axes: there is no axis 'role'. Did you mean rule",
        ),
        ({"of": "ratio", "axes": ["n"], "at": {"rule": "sgn"}}, "at: rule is nowhere 'sgn'. Did"),
        ({"of": "ratio", "axes": ["n", "n"]}, "names one twice"),
        ({"of": "ratio", "axes": ["n", "rule"], "confidence": 95}, "confidence"),
    ],
)
def test_what_is_not_there_is_refused(data, arguments, words):
    with pytest.raises(InvalidInputError) as refused:
        average_trials(data, **arguments)
    assert words in str(refused.value)
