import numpy as np
import pytest
import scipy.stats
import xarray as xr
from hypothesis import given, settings, strategies as st

from attractor.analysis.bias import median_interval
from attractor.analysis.bias.answer import answer, smallest_sample

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


def test_a_ratio_above_one_says_that_norm_and_dual_norm_do_not_belong_together():
    found = answer(row({"own": 1.25, "frobenius": 0.93}))
    assert found.outcome == "not settled" and "none can exceed one" in found.reason
    assert "dual norm" in found.remedy


def test_solutions_that_are_not_certified_settle_nothing():
    data = row({"own": 0.99, "frobenius": 0.93})
    gaps = np.full((2, COUNT), 1e-10)
    assert answer(data.assign(gap=(("norm", "instance"), gaps))).outcome == "maximizes"
    gaps[0, 3] = 0.35
    found = answer(data.assign(gap=(("norm", "instance"), gaps)))
    assert (found.outcome, found.norm, found.more_steps) == ("not settled", "", False)
    assert "problems in own are solved to a certified relative gap of 0.35 only" in found.reason


def test_two_that_cannot_be_told_apart_are_not_settled():
    data = row({"frobenius": 0.985, "l_3": 0.984})
    data["margin_ratio"][1] = data["margin_ratio"].values[1, ::-1]
    found = answer(data)
    assert (found.outcome, found.norm) == ("not settled", "")
    assert "cannot be distinguished from l_3" in found.reason


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


def test_twenty_values_have_the_sixth_and_the_fifteenth():
    values = np.random.default_rng(0).permutation(20.0 + np.arange(20))
    assert median_interval(values) == (29.5, 25.0, 34.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_coverage_is_enough_and_could_not_be_less(count, confidence):
    found = median_interval(np.arange(1.0, count + 1), confidence)
    below = scipy.stats.binom.cdf(np.arange(count + 1), count, 0.5)
    if np.isinf(found.low):
        assert 1 - 2 * below[0] < confidence  # not even the range would do
        assert count < smallest_sample(confidence)
        return
    place = int(found.low)
    assert found.high == count + 1 - place
    assert 1 - 2 * below[place - 1] >= confidence - 1e-12
    if place + 1 <= count // 2:
        assert 1 - 2 * below[place] < confidence


@pytest.mark.parametrize("draw", ["standard_cauchy", "standard_exponential"])
def test_it_covers_the_median_of_skewed_and_heavy_tailed_samples(draw):
    median = {"standard_cauchy": 0.0, "standard_exponential": np.log(2)}[draw]
    samples = getattr(np.random.default_rng(1), draw)((2000, 20))
    found = [median_interval(sample) for sample in samples]
    covered = np.mean([one.low <= median <= one.high for one in found])
    assert 0.945 < covered < 0.975  # 0.9586 in theory


def test_missing_values_are_left_out():
    values = np.array([3.0, np.nan, 1.0, 2.0])
    assert median_interval(values, 0.5) == median_interval(np.array([1.0, 2.0, 3.0]), 0.5)
    assert np.isnan(median_interval(np.array([np.nan])).median)


def test_below_saturation_nothing_is_said_of_norms():
    data = row({"frobenius": 0.5, "l_3": 0.4})
    assert answer(data).outcome == "none of these"
    data["smallest_margin"] = ("instance", np.full(COUNT, 0.3))
    found = answer(data)
    assert found.outcome == "not settled" and found.more_steps and found.larger_steps
    assert "attention is not saturated" in found.reason and "0.3 in the median" in found.reason
    assert str(found).endswith("Raise the step, or take many more steps")
    data["smallest_margin"] = ("instance", np.full(COUNT, 6.0))
    assert answer(data).outcome == "none of these"


def test_steps_uphill_maximize_nothing():
    data = row({"l_inf": 0.985, "l_3": 0.9})
    data["loss_rise"] = ("instance", np.full(COUNT, -0.4))
    assert answer(data).norm == "l_inf"
    data["loss_rise"][:] = 0.3
    found = answer(data)
    assert (found.outcome, found.norm) == ("not settled", "")
    assert "30 % higher than at the start" in found.reason and "subtracted" in found.remedy


def test_what_has_not_left_its_start_has_not_begun():
    data = row({"frobenius": 0.5, "l_3": 0.4}, movement=1e-9)
    data["displacement"] = ("instance", np.full(COUNT, 0.02))
    found = answer(data)
    assert (found.outcome, found.norm) == ("has not begun", "")
    assert "W has changed by 2 % of its size" in found.reason
    assert found.larger_steps and not found.more_steps
    data["trained"][:] = False  # which rounding stopped: nothing is known of the start then
    assert answer(data).outcome == "not settled"
    near = row({"frobenius": 0.985, "l_3": 0.9})
    near["displacement"] = ("instance", np.full(COUNT, 0.02))
    assert answer(near).norm == "frobenius"  # as from a start that is a solution
