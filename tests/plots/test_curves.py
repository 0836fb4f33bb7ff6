import numpy as np
import pytest
from matplotlib.figure import Figure

from attractor import plots


@pytest.fixture
def axes():
    return Figure().subplots()


def test_line_is_the_median_over_trials_and_step_zero_is_left_out(axes, data):
    plots.band_curve(axes, data.loss)
    line = axes.lines[0]
    np.testing.assert_array_equal(line.get_xdata(), data.step[1:])
    np.testing.assert_allclose(
        line.get_ydata(), data.loss.median(("instance", "seed"))[1:], rtol=1e-12
    )
    assert axes.get_xscale() == "log"


def test_band_holds_eight_trials_in_ten(axes, data):
    plots.band_curve(axes, data.loss)
    edges = axes.collections[0].get_paths()[0].vertices[:, 1]
    first = data.loss.isel(step=1).values
    assert np.isclose(edges, np.quantile(first, 0.1)).any()
    assert np.isclose(edges, np.quantile(first, 0.9)).any()


def test_trials_without_a_number_are_left_out(axes, data):
    values = data.correlation.where(data.instance >= 3)
    plots.band_curve(axes, values)
    expected = data.correlation.isel(instance=slice(3, None)).median(("instance", "seed"))[1:]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), expected, rtol=1e-12)


def test_a_single_trial_has_no_band(axes, data):
    plots.band_curve(axes, data.loss.isel(instance=[0]))
    assert len(axes.collections) == 0


def test_says_so_where_no_trial_has_a_number(axes, data):
    plots.margin_ratio(axes, data * np.nan)
    assert axes.texts[0].get_text() == "no trial has this number"


def test_ratio_past_one_by_rounding_does_not_stretch_the_logarithmic_axis(axes, data):
    before = (1 - data["margin_ratio"]).isel(step=slice(1, -1)).min()
    data["margin_ratio"][..., -1] = 1 + 1e-15
    plots.margin_ratio_shortfall(axes, data)
    assert axes.get_yscale() == "log"
    assert axes.get_ylim()[0] > before / 10


def test_steps_without_a_number_are_left_out(axes, data):
    plots.band_curve(axes, data.loss.where(data.step >= 5))
    assert axes.lines[0].get_xdata().min() >= 5


@pytest.mark.parametrize(
    "draw",
    [
        plots.margin_ratio,
        plots.margin_ratio_shortfall,
        plots.correlation,
        plots.correlation_shortfall,
        plots.selected_probability,
        plots.unselected_probability,
        plots.norm_growth,
        plots.loss,
    ],
)
def test_axes_are_labeled(axes, data, draw):
    draw(axes, data, label="n = 6")
    assert axes.get_xlabel() == "iteration"
    assert axes.get_ylabel()
    assert "n = 6" in axes.get_legend_handles_labels()[1]


@pytest.mark.parametrize(
    ("axis", "label", "scale"),
    (
        ("radius", "radius", "log"),
        ("time", "time", "log"),
        ("logarithmic_time", "natural logarithm of the time", "linear"),
    ),
)
def test_curves_run_along_what_was_recorded(axes, data, axis, label, scale):
    plots.band_curve(axes, data.loss.rename(step=axis))
    assert axes.get_xlabel() == label
    assert axes.get_xscale() == scale
    shown = len(data.step) - (scale == "log")  # zero has no place on a logarithmic axis
    assert len(axes.lines[0].get_xdata()) == shown
