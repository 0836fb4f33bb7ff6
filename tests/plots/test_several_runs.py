import numpy as np
import pytest
import xarray as xr

from attractor import plots
from attractor.plots.several_runs import panels_of_runs


@pytest.fixture
def runs(data):
    few = data.isel(instance=slice(3))
    return lambda count: {f"lr = {number}": few * (1 - number / 50) for number in range(count)}


def test_few_runs_share_panels_and_many_have_rows_of_their_own(runs):
    together = plots.training_figure(runs(3))
    assert len(together.axes) == 4 and len(together.legends[0].get_texts()) == 3
    assert "bars" in together.get_supxlabel() and "3 trials a line" in together.get_supxlabel()
    apart = plots.training_figure(runs(5))
    assert len(apart.axes) == 20 and not apart.legends
    names = [axes.get_ylabel() for axes in apart.axes[::4]]
    assert [name.replace("\N{NO-BREAK SPACE}", " ") for name in names] == list(runs(5))
    assert "gray: the other rows" in apart.get_supxlabel()


def test_rows_have_one_scale_and_every_median(runs):
    panels = plots.direction_figure(runs(4)).axes[2::4]
    assert len({axes.get_ylim() for axes in panels}) == 1
    drawn = [
        {tuple(np.asarray(line.get_ydata())) for line in axes.lines if len(line.get_xdata()) > 2}
        for axes in panels
    ]
    own = [
        tuple(np.asarray(line.get_ydata()))
        for axes in panels
        for line in axes.lines
        if not str(line.get_label()).startswith("_")
    ]
    assert len(own) == 4 and all(set(own) <= lines for lines in drawn)


def test_of_very_many_runs_some_are_drawn_and_it_is_said():
    def draw(axes, data, *, label, look):
        axes.plot(data["step"], data["norm"], label=label, **look)

    many = {str(number): xr.Dataset({"norm": ("step", [0, number])}) for number in range(30)}
    figure = panels_of_runs([draw], many, columns=1, height=2, trials="3 trials a line")
    assert [axes.get_ylabel() for axes in figure.axes[:3]] == ["0", "3", "5"]
    assert len(figure.axes) == 12 and figure.axes[-1].get_ylabel() == "29"
    assert "12 of 30 runs are drawn" in figure.get_supxlabel()


def test_bars_of_different_runs_stand_apart(runs):
    figure = plots.training_figure(runs(3))
    places = [
        {segment[0][0] for segment in bars.get_segments()} for bars in figure.axes[3].collections
    ]
    assert len(places) == 3 and all(len(one) >= 5 for one in places)
    assert not (places[0] & places[1] or places[0] & places[2] or places[1] & places[2])
