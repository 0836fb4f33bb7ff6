import numpy as np
import pytest
from hypothesis import given, strategies as st

from attractor.analysis import fit_rate
from attractor.support.errors import InvalidInputError

STEPS = np.unique(np.rint(np.geomspace(1, 10_000, 60)))
CURVED = np.exp(-STEPS / 2000)


def noisy(rng, curves, level=0.05):
    return curves * np.exp(level * rng.normal(size=curves.shape))


# One curve: every law is recovered.


def test_a_power_law_is_recovered_exactly():
    rate = fit_rate(STEPS, 3 * STEPS**-2.0)
    assert rate.settled
    assert rate.slope == rate.exponent == pytest.approx(-2, abs=1e-12)
    assert 0 <= rate.high - rate.low < 1e-9
    assert rate.first >= 1000
    assert rate.last == 10_000


@given(
    slope=st.floats(-5, 5).filter(lambda a: abs(a) > 1e-3),
    scale=st.floats(-30, 30),
    law=st.sampled_from(["power", "power of the logarithm", "logarithm", "exponential"]),
    is_log=st.booleans(),
)
def test_every_law_is_recovered_at_any_scale(slope, scale, law, is_log):
    x = np.linspace(3, 5, 40)
    line = {
        "power": np.log(x),
        "power of the logarithm": np.log(np.log(x)),
        "logarithm": np.log(x),
        "exponential": x,
    }[law]
    values = slope * line + scale
    if law != "logarithm":
        values = np.exp(values)
    is_log = is_log and law != "exponential"
    rate = fit_rate(np.log(x) if is_log else x, values, law=law, abscissa_is_log=is_log)
    assert rate.settled
    assert rate.slope == pytest.approx(slope, rel=1e-9, abs=1e-9)
    assert rate.low <= slope <= rate.high


def test_logarithms_of_times_and_values_beyond_floating_point_are_fitted_as_they_are():
    log_time = np.geomspace(1e3, 1e5, 50)
    against_log = fit_rate(
        log_time, log_time**-1.5, law="power of the logarithm", abscissa_is_log=True
    )
    assert against_log.slope == pytest.approx(-1.5, abs=1e-10)
    loss = fit_rate(log_time, 2 - log_time, abscissa_is_log=True, values_are_logs=True)
    assert loss.slope == pytest.approx(-1, abs=1e-10)
    assert loss.data["values"].min() < -9e4


def test_a_single_curve_has_the_interval_of_its_regression(rng):
    import scipy.stats

    values = noisy(rng, STEPS**-1.0)
    rate = fit_rate(STEPS, values)
    window = STEPS >= 1000
    expected = scipy.stats.linregress(np.log(STEPS[window]), np.log(values[window]))
    reach = scipy.stats.t.ppf(0.975, window.sum() - 2) * expected.stderr
    assert rate.slope == pytest.approx(expected.slope, rel=1e-10)
    assert (rate.high - rate.low) / 2 == pytest.approx(reach, rel=1e-8)
    assert rate.unit_name == "points"
    assert "one trial" in str(rate)


# Intervals over trials.


@pytest.mark.parametrize("units", [3, 8])
def test_the_interval_covers_the_true_exponent_as_often_as_it_says(rng, units):
    """Instances differ, seeds differ within them, and points are noisy."""
    covered = half = 0
    for _ in range(200):
        exponents = rng.normal(-1, 0.2, size=(units, 1)) + rng.normal(0, 0.1, size=(units, 4))
        curves = noisy(rng, STEPS ** exponents[..., None])
        whole = fit_rate(STEPS, curves).parts["whole window"]
        covered += whole.low <= -1 <= whole.high
        whole = fit_rate(STEPS, curves, confidence=0.5).parts["whole window"]
        half += whole.low <= -1 <= whole.high
    assert 180 <= covered <= 199  # 95 % of 200 is 190, with a standard deviation of 3
    assert 78 <= half <= 122


def test_seeds_of_one_instance_do_not_make_an_interval_narrower(rng):
    """Forty seeds of four instances know four exponents, not forty."""
    exponents = rng.normal(-1, 0.2, size=(4, 1, 1))
    curves = noisy(rng, np.broadcast_to(STEPS**exponents, (4, 40, len(STEPS))), 0.01)
    many, one = fit_rate(STEPS, curves), fit_rate(STEPS, curves[:, :1])
    assert many.high - many.low == pytest.approx(one.high - one.low, rel=0.1)
    assert (many.units, many.trials, many.unit_name) == (4, 160, "instances")
    assert "160 trials of 4 instances" in str(many)
    flat = fit_rate(STEPS, curves.reshape(-1, len(STEPS)))
    assert flat.high - flat.low < (many.high - many.low) / 4


def test_instances_weigh_the_same_however_many_seeds_are_left():
    curves = np.stack([STEPS ** np.full((3, 1), a) for a in (-1.0, -2.0)])
    curves[1, 1:] = np.nan
    assert fit_rate(STEPS, curves).parts["whole window"].mean == pytest.approx(-1.5)


def test_seeds_of_a_single_instance_are_said_to_be_that(rng):
    rate = fit_rate(STEPS, noisy(rng, np.ones((1, 5, 1)) / STEPS))
    assert (rate.units, rate.unit_name) == (5, "seeds")
    assert "5 trials of one instance" in str(rate)


# Settled or not.


def test_a_curve_that_is_no_power_law_has_not_settled_and_shows_no_number(rng):
    rate = fit_rate(STEPS, noisy(rng, np.ones((6, 1)) * CURVED, 0.02))
    assert rate.outcome == "not settled"
    assert np.isnan([rate.slope, rate.exponent, rate.low, rate.high]).all()
    text = str(rate) + repr(rate) + rate._repr_html_()
    assert "not settled" in text
    shown = rate.parts["whole window"].mean
    for digits in (1, 2, 3):
        assert f"{shown:.{digits}f}" not in text
    assert rate.slope_text() == "not settled"
    assert rate.interval_text() == ""
    first, second = rate.parts["first half"], rate.parts["second half"]
    assert first.mean > shown > second.mean
    assert first.low > second.high
    assert np.isnan(rate.to_xarray()["slope"])
    assert float(rate.to_xarray()["part_slope"][0]) == shown


def test_the_right_law_settles_where_the_wrong_one_does_not(rng):
    rate = fit_rate(STEPS, noisy(rng, np.ones((6, 1)) * CURVED, 0.02), law="exponential")
    assert rate.settled
    assert rate.low < -1 / 2000 < rate.high


def test_noise_that_hides_the_curvature_widens_the_interval_instead(rng):
    rate = fit_rate(STEPS, noisy(rng, np.ones((3, 1)) * CURVED, 3))
    assert rate.settled
    assert rate.high - rate.low > 1


def test_straight_lines_seldom_count_as_not_settled(rng):
    wrong = sum(
        not fit_rate(STEPS, noisy(rng, np.ones((8, 1)) / STEPS)).settled for _ in range(100)
    )
    assert wrong <= 5  # two independent 95 % intervals miss each other about once in 200


# The window.


def test_only_the_window_counts_and_step_zero_never_does():
    steps = np.append(0, STEPS)
    values = np.maximum(steps / 1000, 1) ** -1.5
    values[0] = np.nan
    assert fit_rate(steps, values, decades=0.9).slope == pytest.approx(-1.5, abs=1e-9)
    assert not fit_rate(steps, values, fraction=1.0).settled


def test_a_fraction_counts_usable_points():
    steps = np.append(0, STEPS)
    rate = fit_rate(steps, np.append(1, 1 / STEPS), fraction=0.5)
    assert int(rate.data["window"].sum()) == -(-len(STEPS) // 2)
    assert int(rate.data["second_half"].sum()) == -(-int(rate.data["window"].sum()) // 2)


def test_every_trial_may_have_an_abscissa_of_its_own():
    norms = np.stack([STEPS, 50 * STEPS**0.5])
    values = norms**-2.0
    rate = fit_rate(norms, values, abscissa="norm")
    np.testing.assert_allclose(rate.data["trial_slope"].sel(part="whole window"), -2, rtol=1e-10)
    windows = rate.data["window"].sum("point").values
    assert windows[1] > windows[0]
    assert rate.last == norms[0, -1]


# What cannot be fitted.


def test_curves_that_cannot_be_fitted_are_left_out_and_counted():
    good = STEPS**-1.0
    late = good.copy()
    late[-3] = -1
    early = good.copy()
    early[2] = -1
    curves = np.stack([good, 0 * STEPS, late, early, np.full_like(STEPS, np.nan), good * np.inf])
    rate = fit_rate(STEPS, curves)
    assert rate.trials == 2
    assert rate.data["trial"].values.tolist() == [0, 3]
    assert rate.left_out == {"not finite": 2, "not positive": 2}
    assert rate.slope == pytest.approx(-1)
    assert "left out 4: 2 not finite, 2 not positive" in str(rate)


@pytest.mark.parametrize(
    ("steps", "values", "reason"),
    [
        (STEPS, 0 * STEPS, "1 not positive"),
        (STEPS, np.full((3, len(STEPS)), np.nan), "3 not finite"),
        (STEPS[:5], STEPS[:5], "fewer than 6 points"),
        ([0.0], [1.0], "fewer than 6 points"),
        (np.full_like(STEPS, np.nan), STEPS, "without an abscissa"),
        (np.full_like(STEPS, 7.0), STEPS, "constant abscissa"),
        (STEPS, np.ones((0, len(STEPS))), "there is none"),
    ],
)
def test_what_is_not_defined_says_why(steps, values, reason):
    rate = fit_rate(np.asarray(steps), np.asarray(values))
    assert rate.outcome == "not defined"
    assert rate.trials == 0
    assert np.isnan(rate.slope)
    assert "not defined" in str(rate)
    assert reason in str(rate)
    assert np.isnan(rate.to_xarray()["part_slope"]).all()


def test_a_constant_has_the_slope_zero():
    rate = fit_rate(STEPS, np.full((4, len(STEPS)), 0.3))
    assert rate.settled
    assert rate.slope == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"values": np.ones((3, 2))}, "values"),
        ({"steps": np.ones((2, len(STEPS)))}, "steps"),
        ({"steps": np.ones(0), "values": np.ones(0)}, "steps"),
        ({"law": "linear"}, "power of the logarithm"),
        ({"law": "exponential", "abscissa_is_log": True}, "law"),
        ({"law": "logarithm", "values_are_logs": True}, "law"),
        ({"decades": 0.0}, "decades"),
        ({"decades": 1.0, "fraction": 0.5}, "fraction"),
        ({"fraction": 1.5}, "fraction"),
        ({"confidence": 95}, "confidence"),
    ],
)
def test_bad_input_is_refused_by_name(options, words):
    arguments = {"steps": STEPS, "values": 1 / STEPS} | options
    with pytest.raises(InvalidInputError, match=words):
        fit_rate(**arguments)


@pytest.mark.parametrize(
    ("exponents", "slope", "interval"),
    [
        ([-1.0, -1.2, -1.4], "-1.20", "[-1.70, -0.70]"),
        ([-1.0, -1.00002, -1.00004], "-1.00002", "[-1.00007, -0.99997]"),
        ([-1e-8, -2e-8, -3e-8], "-2.00e-08", "[-4.48e-08, 4.84e-09]"),
    ],
)
def test_digits_shown_are_those_the_interval_supports(exponents, slope, interval):
    rate = fit_rate(STEPS, STEPS ** np.array(exponents)[:, None])
    assert rate.slope_text() == slope
    assert rate.interval_text() == interval
