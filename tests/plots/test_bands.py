import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from attractor import InvalidInputError, plots

STEPS = np.arange(0, 50, 2)


@pytest.fixture
def axes():
    return Figure().subplots()


@pytest.fixture
def values(rng):
    numbers = 2 + rng.standard_normal((3, len(STEPS), 4))
    return xr.DataArray(numbers, dims=("instance", "step", "seed"), coords={"step": STEPS})


def edges(axes):
    """Lower and upper edge of the band."""
    return [line.get_ydata() for line in axes.lines[-2:]]


def trials(values):
    return values.transpose("step", ...).values.reshape(len(STEPS), -1)


def test_mean_and_standard_deviation_over_all_trials(axes, values):
    plots.band(axes, values, "step", center="mean", label="runs")
    mean, deviation = trials(values).mean(1), trials(values).std(1, ddof=1)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), mean, rtol=1e-12)
    np.testing.assert_allclose(edges(axes), [mean - deviation, mean + deviation], rtol=1e-12)
    assert axes.get_legend_handles_labels()[1] == ["runs"]


def test_median_and_percentiles_over_all_trials(axes, values):
    plots.band(axes, values, "step")
    np.testing.assert_allclose(axes.lines[0].get_ydata(), np.median(trials(values), 1), rtol=1e-12)
    np.testing.assert_allclose(
        edges(axes), np.quantile(trials(values), [0.1, 0.9], axis=1), rtol=1e-12
    )


def test_trials_are_drawn_faintly_as_many_as_asked_for(axes, values):
    plots.band(axes, values, "step", individuals=5)
    faint = [line for line in axes.lines if line.get_alpha() == 0.35]
    assert len(faint) == 5
    np.testing.assert_array_equal(faint[3].get_ydata(), trials(values)[:, 3])


def test_each_step_counts_the_trials_that_it_has(axes, values):
    partial = values.where((values.step < 20) | (values.instance == 0))
    plots.band(axes, partial, "step", center="mean")
    alone = values.isel(instance=0).values[-1]
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(alone.mean())
    assert edges(axes)[1][-1] == pytest.approx(alone.mean() + alone.std(ddof=1))


def test_zero_has_no_place_on_a_logarithmic_axis_only(axes, values):
    plots.band(axes, values, "step")
    assert axes.lines[0].get_xdata()[0] == 0
    axes.clear()
    axes.set_xscale("log")
    plots.band(axes, values, "step")
    assert axes.lines[0].get_xdata()[0] == 2


def test_an_edge_below_zero_stays_on_a_logarithmic_axis(axes, values):
    positive = np.exp(0.9 * values)
    axes.set_yscale("log")
    plots.band(axes, positive, "step", center="mean")
    mean, deviation = trials(positive).mean(1), trials(positive).std(1, ddof=1)
    below = mean <= deviation
    assert below.any() and not below.all()
    np.testing.assert_allclose(edges(axes)[0][below], positive.min(), rtol=1e-12)
    np.testing.assert_allclose(edges(axes)[0][~below], (mean - deviation)[~below], rtol=1e-12)


def test_one_trial_has_no_band(axes, values):
    plots.band(axes, values.isel(instance=[0], seed=[0]), "step", center="mean")
    assert len(axes.lines) == 1 and not axes.collections


def test_what_runs_along_nothing_or_has_no_such_center_is_refused(axes, values):
    with pytest.raises(InvalidInputError, match=r"along.*instance, step, seed"):
        plots.band(axes, values, "radius")
    with pytest.raises(InvalidInputError, match="center"):
        plots.band(axes, values, "step", center="mode")
