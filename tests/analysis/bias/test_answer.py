import numpy as np
import pytest
import xarray as xr

from attractor.analysis.bias.answer import answer

COUNT = 12


def row(ends, changes=None, *, trained=None, movement=0.5, spread=0.004, count=COUNT):
    """Runs whose ratios end around some values after having changed by some amounts."""
    noise = spread * np.linspace(-1, 1, count)
    end = np.array(list(ends.values()))[:, None] + noise
    before = end - np.array([(changes or {}).get(name, 0.0) for name in ends])[:, None]
    dims = ("norm", "instance")
    return xr.Dataset(
        {
            "margin_ratio": (dims, end),
            "margin_ratio_halfway": (dims, before),
            "trained": ("instance", np.ones(count, bool) if trained is None else trained),
            "movement": ("instance", np.full(count, movement)),
        },
        {"norm": list(ends), "instance": np.arange(count)},
    )


def test_a_clear_winner_is_named():
    found = answer(row({"l_1": 0.6, "spectral": 0.985, "frobenius": 0.9}))
    assert (found.outcome, found.norm, found.data_sets) == ("maximizes", "spectral", COUNT)
    assert "0.9850" in found.reason and "0.9000 in frobenius" in found.reason


def test_two_that_cannot_be_told_apart_are_not_settled():
    data = row({"frobenius": 0.985, "l_3": 0.984})
    data["margin_ratio"][1] = data["margin_ratio"].values[1, ::-1]
    found = answer(data)
    assert (found.outcome, found.norm) == ("not settled", "")
    assert "cannot be told from l_3" in found.reason


def test_a_small_paired_lead_is_enough_where_every_data_set_agrees():
    assert answer(row({"frobenius": 0.985, "l_3": 0.984})).norm == "frobenius"


def test_below_the_threshold_it_depends_on_whether_the_ratio_still_moves():
    ends = {"frobenius": 0.9, "l_3": 0.8}
    assert answer(row(ends)).outcome == "none of these"
    for change, words in ((0.03, "it still rises, by 0.0300"), (-0.03, "it still falls, by 0.03")):
        found = answer(row(ends, {"frobenius": change}))
        assert found.outcome == "not settled"
        assert words in found.reason
    other = answer(row(ends, {"l_3": 0.1}))
    assert other.outcome == "not settled"
    assert "in l_3 it still rises" in other.reason
    assert answer(row(ends, {"l_3": -0.1})).outcome == "none of these"


def test_a_slow_change_counts_by_what_it_comes_to_when_the_weights_have_doubled():
    ends, change = {"frobenius": 0.9, "l_3": 0.8}, {"frobenius": 0.002}
    assert answer(row(ends, change)).outcome == "none of these"
    slow = answer(row(ends, change, movement=0.06))
    assert slow.outcome == "not settled"
    # Weights that hardly move any more do not make every last digit count.
    assert answer(row(ends, {"frobenius": 1e-6}, movement=1e-5)).outcome == "none of these"


def test_a_shrinking_lead_is_not_settled():
    ends = {"frobenius": 0.985, "l_3": 0.975}
    assert answer(row(ends, {"l_3": 0.005})).norm == "frobenius"
    found = answer(row(ends, {"l_3": 0.02}))
    assert found.outcome == "not settled"
    assert "the lead of frobenius over l_3 shrinks" in found.reason


def test_a_falling_ratio_is_not_settled():
    ends = {"frobenius": 0.975, "l_3": 0.7}
    assert answer(row(ends, {"frobenius": -0.002})).norm == "frobenius"
    found = answer(row(ends, {"frobenius": -0.02}))
    assert found.outcome == "not settled"
    assert "falls" in found.reason


@pytest.mark.parametrize("how", ["status", "rest", "undefined"])
def test_runs_that_ended_early_are_left_out(how):
    ends = {"frobenius": 0.985, "l_3": 0.9}
    for bad, outcome in ((2, "maximizes"), (4, "not settled")):
        data = row(ends)
        if how == "status":
            data["trained"][:bad] = False
        elif how == "rest":
            data["movement"][:bad] = 1e-9
        else:
            data["margin_ratio"][0, :bad] = np.nan
        found = answer(data)
        assert found.outcome == outcome
        assert found.data_sets == COUNT - bad


def test_too_few_data_sets():
    ends = dict.fromkeys("abcdef", 0.5) | {"frobenius": 0.99}
    assert answer(row(ends, count=8)).norm == "frobenius"
    found = answer(row(ends, count=7))
    assert found.outcome == "not settled"
    assert "8 would do" in found.reason


def test_a_norm_without_numbers_is_not_compared():
    data = row({"frobenius": 0.99, "l_3": 0.5, "nuclear": 0.6})
    data["margin_ratio"][2] = np.nan
    assert answer(data).norm == "frobenius"
