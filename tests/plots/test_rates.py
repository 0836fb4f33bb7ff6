import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from attractor import plots
from attractor.analysis import fit_rate
from attractor.plots.design.look import REACHED
from attractor.plots.design.roles import role_of

FITTED = role_of("fitted").color
STEPS = np.unique(np.rint(np.geomspace(1, 10_000, 60)))


@pytest.fixture
def axes():
    return Figure().subplots()


@pytest.fixture
def curves(rng):
    return 3 * STEPS ** rng.normal(-1, 0.1, size=(5, 1))


def drawn(axes, color, thick=False):
    return [
        line
        for line in axes.lines
        if same_color(line.get_color(), color) and (line.get_linewidth() > 1) == thick
    ]


def drawn_rate(rate):
    return plots.rates_figure([rate]).axes[0]


def legend(axes):
    return " ".join(text.get_text() for text in axes.get_legend().get_texts())


def test_trials_are_light_and_their_geometric_mean_is_bold(curves):
    axes = drawn_rate(fit_rate(STEPS, curves, quantity="1 - correlation"))
    trials, (mean,) = drawn(axes, REACHED), drawn(axes, REACHED, thick=True)
    assert len(trials) == 5
    np.testing.assert_allclose(trials[2].get_ydata(), curves[2], rtol=1e-10)
    np.testing.assert_allclose(mean.get_ydata(), np.exp(np.log(curves).mean(0)), rtol=1e-10)
    np.testing.assert_allclose(mean.get_xdata(), STEPS, rtol=1e-12)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "step"
    assert axes.get_ylabel() == "1 \N{MINUS SIGN} correlation"


def test_the_line_has_the_slope_it_names_and_its_fan_the_interval(curves):
    rate = fit_rate(STEPS, curves)
    axes = drawn_rate(rate)
    (line,) = drawn(axes, FITTED, thick=True)
    slope = np.diff(np.log(line.get_ydata())) / np.diff(np.log(line.get_xdata()))
    np.testing.assert_allclose(slope, rate.slope, rtol=1e-8)
    fan = np.log(axes.collections[0].get_paths()[0].vertices)
    right = fan[np.isclose(fan[:, 0], fan[:, 0].max())]
    height = right[:, 1].max() - right[:, 1].min()
    half_width = (line.get_xdata()[-1] / line.get_xdata()[0]) ** 0.5
    assert height == pytest.approx((rate.high - rate.low) * np.log(half_width), rel=0.05)
    text = legend(axes).replace("\N{MINUS SIGN}", "-")
    assert rate.slope_text() in text
    assert rate.interval_text() in text


def test_halves_that_disagree_are_drawn_and_no_number_is():
    rate = fit_rate(STEPS, np.exp(-STEPS / 2000) * np.linspace(1, 2, 3)[:, None])
    axes = drawn_rate(rate)
    first, second = drawn(axes, FITTED, thick=True)
    for line, part in ((first, "first half"), (second, "second half")):
        slope = np.diff(np.log(line.get_ydata())) / np.diff(np.log(line.get_xdata()))
        np.testing.assert_allclose(slope, rate.parts[part].mean, rtol=1e-8)
    assert first.get_xdata()[-1] < second.get_xdata()[0]
    assert "not settled" in legend(axes)
    assert not any(character.isdigit() for character in legend(axes))


def test_logarithms_are_drawn_as_they_are():
    log_time = np.geomspace(10, 1e5, 40)
    rate = fit_rate(
        log_time, 1 - log_time, abscissa_is_log=True, values_are_logs=True, abscissa="k"
    )
    axes = drawn_rate(rate)
    (mean,) = drawn(axes, REACHED, thick=True)
    np.testing.assert_allclose(mean.get_xdata(), log_time)
    np.testing.assert_allclose(mean.get_ydata(), (1 - log_time) / np.log(10))
    assert axes.get_xlabel() == "log k"
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    assert np.isfinite(axes.get_xlim()).all()


def test_what_is_not_defined_is_said():
    axes = drawn_rate(fit_rate(STEPS, np.zeros((3, len(STEPS)))))
    assert "3 not positive" in axes.texts[0].get_text()
    assert not axes.lines


@pytest.mark.long
def test_a_figure_has_a_panel_for_every_rate(curves, tmp_path):
    rates = [fit_rate(STEPS, curves), fit_rate(STEPS, curves[:1]), fit_rate(STEPS, 0 * curves)]
    with plots.style():
        figure = plots.rates_figure(rates)
        plots.save_figure(figure, tmp_path, "rates")
    assert len(figure.axes) == 3
    assert (tmp_path / "rates.png").stat().st_size > 10_000
