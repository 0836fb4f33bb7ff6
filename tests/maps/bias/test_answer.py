import numpy as np
import pytest
import scipy.stats
import xarray as xr
from hypothesis import given, settings, strategies as st

from attractor.maps.bias import median_interval
from attractor.maps.bias.answer import answer, smallest_sample

COUNT = 12


def row(ends, changes=None, *, trained=None, movement=0.5, spread=0.002, count=COUNT):
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
    found = answer(row({"l_1": 0.6, "spectral": 0.997, "frobenius": 0.9}))
    assert (found.outcome, found.norm, found.data_sets) == ("maximizes", "spectral", COUNT)
    assert "0.9970" in found.reason and "0.9000 in frobenius" in found.reason


def test_a_ratio_above_one_says_that_norm_and_dual_norm_do_not_belong_together():
    found = answer(row({"own": 1.25, "frobenius": 0.93}))
    assert found.outcome == "not settled" and "none can exceed one" in found.reason
    assert "dual norm" in found.remedy


def test_solutions_that_are_not_certified_settle_nothing():
    data = row({"own": 0.998, "frobenius": 0.93})
    gaps = np.full((2, COUNT), 1e-10)
    assert answer(data.assign(gap=(("norm", "instance"), gaps))).outcome == "maximizes"
    gaps[0, 3] = 0.35
    found = answer(data.assign(gap=(("norm", "instance"), gaps)))
    assert (found.outcome, found.norm, found.more_steps) == ("not settled", "", False)
    assert "problems in own are solved to a certified relative gap of 0.35 only" in found.reason


def test_two_that_cannot_be_told_apart_are_not_settled():
    data = row({"frobenius": 0.997, "l_3": 0.996})
    data["margin_ratio"][1] = data["margin_ratio"].values[1, ::-1]
    found = answer(data)
    assert (found.outcome, found.norm) == ("not settled", "")
    assert "cannot be distinguished from l_3" in found.reason


def test_a_small_paired_lead_is_enough_where_every_data_set_agrees():
    assert answer(row({"frobenius": 0.997, "l_3": 0.996})).norm == "frobenius"


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


def test_a_ratio_that_stops_short_of_one_names_no_norm():
    ends = {"frobenius": 0.982, "l_3": 0.9}
    assert answer(row(ends, {"frobenius": 0.017})).norm == "frobenius"  # on its way
    for change in (0.0, 0.001, -0.001):  # of steps whose own norm is not compared
        found = answer(row(ends, {"frobenius": change}))
        assert (found.outcome, found.norm) == ("none of these", "")
        assert "closest of them is frobenius, where the median ratio is 0.9820" in found.reason
        assert "--norm" in found.remedy
    doubtful = answer(row(ends, {"frobenius": 0.0125}))
    assert doubtful.outcome == "not settled" and doubtful.more_steps
    # W grew by a fifth alone, so that a fourth of what was to come has shown
    slow = row(ends, {"frobenius": 0.0042}, movement=0.2)
    assert answer(slow).norm == "frobenius"


def with_neighbors(data, halfway, end):
    """The same runs with ratios in a norm beside the first, by their leads over it."""
    ratios = [data[name].values[0] for name in ("margin_ratio_halfway", "margin_ratio")]
    near = np.full((2, 2, 1, COUNT), np.nan)
    near[:, 0, 0] = [ratio + lead for ratio, lead in zip(ratios, (halfway, end), strict=True)]
    dims = ("norm", "nearby", "instance")
    return data.assign(
        nearby_ratio_halfway=(dims, near[0]),
        nearby_ratio=(dims, near[1]),
        nearby_norm=(("norm", "nearby"), [["l_1.92"], [""]]),
    )


def test_a_norm_beside_it_with_a_higher_ratio_is_closer():
    data = row({"frobenius": 0.998, "l_3": 0.5})
    assert answer(with_neighbors(data, -0.0005, -0.0005)).norm == "frobenius"
    found = answer(with_neighbors(data, 0.0006, 0.0006))
    assert found.outcome == "none of these"
    assert "it is higher in l_1.92, by 0.0006" in found.reason
    # Of a lead that the start gave, most goes: whether all of it does, more steps show.
    shrinking = answer(with_neighbors(data, 0.0026, 0.0016))
    assert shrinking.outcome == "not settled" and shrinking.more_steps
    assert answer(with_neighbors(data, 0.0026, 0.0012)).norm == "frobenius"


def at_tiny(data, *, moves, least, gradient):
    return data.assign(
        moves_without_gradient=moves,
        least_gradient=least,
        log_gradient_norm=("instance", np.full(COUNT, np.log(gradient))),
    )


def test_decay_and_eps_are_said_and_other_advice_is_not():
    data = row({"l_inf": 0.96, "l_3": 0.8}, {"l_inf": 0.03})
    free = answer(at_tiny(data, moves=False, least=1e-8, gradient=1e-3))
    assert free == answer(data) and free.more_steps
    for moves, least, words in ((True, 0.0, "as weight decay does"), (False, 1e-8, "to 1e-12")):
        held = answer(at_tiny(data, moves=moves, least=least, gradient=1e-12))
        assert words in held.reason and held.outcome == "not settled"
        assert not held.more_steps and not held.larger_steps and "more steps" not in str(held)
    reached = answer(at_tiny(row({"l_inf": 0.998}), moves=True, least=0.0, gradient=1e-3))
    assert reached.norm == "l_inf" and "stays bounded" in reached.reason


def test_a_shrinking_lead_is_not_settled():
    ends = {"frobenius": 0.997, "l_3": 0.987}
    assert answer(row(ends, {"l_3": 0.005})).norm == "frobenius"
    found = answer(row(ends, {"l_3": 0.02}))
    assert found.outcome == "not settled"
    assert "the lead of frobenius over l_3 shrinks" in found.reason


def test_a_falling_ratio_is_not_settled():
    ends = {"frobenius": 0.975, "l_3": 0.7}
    slowly = answer(row(ends, {"frobenius": -0.002}))
    assert slowly.outcome == "none of these" and "goes to 0.9730" in slowly.reason
    found = answer(row(ends, {"frobenius": -0.02}))
    assert found.outcome == "not settled"
    assert "falls" in found.reason


@pytest.mark.parametrize("how", ["status", "rest", "undefined"])
def test_runs_that_ended_early_are_left_out(how):
    ends = {"frobenius": 0.997, "l_3": 0.9}
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
    ends = dict.fromkeys("abcdef", 0.5) | {"frobenius": 0.998}
    assert answer(row(ends, count=8)).norm == "frobenius"
    found = answer(row(ends, count=7))
    assert found.outcome == "not settled"
    assert "8 would do" in found.reason


def test_a_norm_without_numbers_is_not_compared():
    data = row({"frobenius": 0.998, "l_3": 0.5, "nuclear": 0.6})
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
    data = row({"l_inf": 0.997, "l_3": 0.9})
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
    near = row({"frobenius": 0.997, "l_3": 0.9})
    near["displacement"] = ("instance", np.full(COUNT, 0.02))
    assert answer(near).norm == "frobenius"  # as from a start that is a solution
