"""Maps and lines of averages: what a reader sees of values, intervals and of what is missing."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attractor import plots
from attractor.maps import plots as map_plots
from attractor.support.errors import InvalidInputError


def averages(shape=(3, 4), kind="probability", missing=False, **axes):
    """Averages that rise along both axes."""
    axes = axes or {"T": [2, 4, 8], "n": [0.01, 0.1, 1, 10]}
    mean = np.linspace(0.02, 0.98, int(np.prod(shape))).reshape(shape)
    measured = np.full(shape, 20)
    if missing:
        measured[(0,) * len(shape)] = 0
        measured[(-1,) * len(shape)] = 15
    mean = np.where(measured > 0, mean, np.nan)
    found = {"mean": mean, "low": mean - 0.1, "high": mean + 0.1, "measured": measured,
             "trials": np.full(shape, 20)}  # fmt: skip
    return xr.Dataset(
        {name: (tuple(axes), values) for name, values in found.items()},
        axes,
        {"of": "as_predicted", "description": "whether it is predicted", "kind": kind,
         "confidence": 0.95, "interval": "Wilson", "instances": 20, "seeds": 1, "at": "d = 4"},
    )  # fmt: skip


@pytest.fixture(autouse=True)
def style():
    with plots.style():
        yield
    plt.close("all")


def words(figure):
    """Every text of a figure that shows."""
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(plt.Text) if text.get_visible()]


def test_cells_lie_where_the_values_are():
    figure = map_plots.phase_map_figure(averages(), "n", "T")
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    edges = np.asarray(axes.collections[0].get_coordinates())
    assert edges[0, :, 0] == pytest.approx(10 ** np.array([-2.5, -1.5, -0.5, 0.5, 1.5]))
    assert edges[:, 0, 1] == pytest.approx(2 ** np.array([0.5, 1.5, 2.5, 3.5]))
    values = np.asarray(axes.collections[0].get_array()).reshape(3, 4)
    assert values == pytest.approx(averages()["mean"].values)


def test_several_measures_are_named_without_their_axis():
    names = ["initial_agreement", "gradient_agreement"]
    data = averages((2, 4), kind="number", measure=names, n=[1, 2, 3, 4])
    lines = words(map_plots.phase_lines_figure(data, "n", lines="measure"))
    assert {"initial agreement", "gradient agreement", "measure", "mean"} <= set(lines)
    data = averages((2, 3, 4), measure=names, T=[1, 2, 3], n=[1, 2, 3, 4])
    maps = words(map_plots.phase_map_figure(data, "n", "T", panels="measure"))
    assert {"initial agreement", "gradient agreement", "probability"} <= set(maps)


def test_places_lie_on_the_scale_of_their_axis_and_arrows_point_beyond_it():
    data = averages((4,), kind="place", n=[0.01, 0.1, 1, 10])
    none, never = -np.inf, np.inf
    for name, values in (
        ("mean", [none, 3.0, 50.0, never]),
        ("low", [none, 2.0, 40.0, 90.0]),
        ("high", [none, 4.0, never, never]),
    ):
        data[name] = ("n", values)
    data.attrs |= {"places": np.array([1.0, 10, 100]), "description": "log_time from which on"}
    figure = map_plots.phase_lines_figure(data, "n")
    axes = figure.axes[0]
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "log time from which on"
    assert axes.get_ylim() == pytest.approx((10**-0.5, 10**2.5))
    marks = {line.get_marker(): line for line in axes.lines if len(line.get_xdata())}
    assert marks["v"].get_xydata().tolist() == [[0.01, 1.0]]
    assert marks["^"].get_xydata().tolist() == [[10.0, 100.0]]
    assert marks["o"].get_ydata().tolist() == [1.0, 3.0, 50.0, 100.0]
    lines = next(text for text in words(figure) if "intervals" in text).splitlines()
    assert "arrows: beyond what was measured" in " ".join(lines)
    assert max(map(len, lines)) < 80  # of 4 inches


def test_even_numbers_have_an_even_scale_in_any_order():
    data = averages(n=[0.3, 0.1, 0.2], T=[1, 2, 3, 4], shape=(3, 4))
    axes = map_plots.phase_map_figure(data, "n", "T").axes[0]
    assert axes.get_xscale() == "linear"
    assert axes.get_xlim() == pytest.approx((0.05, 0.35))
    columns = np.asarray(axes.collections[0].get_array()).reshape(4, 3)
    assert columns == pytest.approx(data["mean"].values[[1, 2, 0]].T)


def test_contours_are_drawn_at_the_levels():
    axes = map_plots.phase_map_figure(averages(), "n", "T", levels=[0.25, 0.75, 3.0]).axes[0]
    contours = next(one for one in axes.collections if hasattr(one, "levels"))
    assert contours.levels == pytest.approx([0.25, 0.75])
    heights = [path.vertices for path in contours.get_paths()]
    assert all(len(points) for points in heights)
    none = map_plots.phase_map_figure(averages(), "n", "T", levels=[]).axes[0]
    assert not any(hasattr(one, "levels") for one in none.collections)


def test_names_make_a_table_of_numbers():
    data = averages(rule=["plain", "sign"], n=[2, 4, 32], shape=(2, 3))
    figure = map_plots.phase_map_figure(data, "n", "rule")
    shown = words(figure)
    assert {"plain", "sign", "0.02", "0.98"} <= set(shown)
    assert not any(hasattr(one, "levels") for one in figure.axes[0].collections)


def test_the_width_of_intervals_has_a_panel_of_its_own():
    figure = map_plots.phase_map_figure(averages(), "n", "T")
    widths = np.asarray(figure.axes[1].collections[0].get_array())
    assert widths == pytest.approx(np.full((3, 4), 0.2))
    assert "width of the 95 % interval" in words(figure)


def test_what_is_missing_is_counted_and_marked():
    figure = map_plots.phase_map_figure(averages(missing=True), "n", "T")
    note = next(text for text in words(figure) if "missing" in text)
    assert "25 of 240 trials are missing" in note and "over 20 data sets" in note
    axes = figure.axes[0]
    hatched = [one for one in axes.collections if one.get_hatch()]
    dots = [one for one in axes.collections if isinstance(one, type(axes.scatter([], [])))]
    assert len(hatched) == 1
    assert [tuple(place) for one in dots for place in one.get_offsets().data] == [(10, 8)]
    whole = map_plots.phase_map_figure(averages(), "n", "T")
    assert any("no trial is missing" in text for text in words(whole))


def test_panels_share_their_scales():
    data = averages(T=[2, 4, 8], n=[1, 2, 3, 4], d=[5, 6, 7, 8, 9], shape=(3, 4, 5))
    figure = map_plots.phase_map_figure(data, "n", "T", panels="d")
    titles = [text for text in words(figure) if text.startswith("$d$ = ")]
    assert titles == [f"$d$ = {d}" for d in data["d"].values]
    images = [axes.collections[0] for axes in figure.axes if axes.get_title(loc="left")]
    assert {image.get_clim() for image in images} == {(0.0, 1.0)}


def test_lines_have_bands_and_hollow_points_where_trials_are_missing():
    data = averages(missing=True)
    figure = map_plots.phase_lines_figure(data, "n", lines="T")
    axes = figure.axes[0]
    lines = [line for line in axes.lines if line.get_linestyle() == "-"]
    assert len(lines) == len(axes.collections) == 3
    for line, mean in zip(lines, data["mean"].values, strict=True):
        assert line.get_ydata() == pytest.approx(mean, nan_ok=True)
    hollow = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert sorted(len(line.get_xdata()) for line in hollow) == [0, 1, 1]
    band = axes.collections[1].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(data["low"].values[1].min())
    assert {"2", "4", "8", "$T$"} <= set(words(figure))


def test_half_way_points_are_marked_with_their_intervals():
    data = averages()
    halves = xr.Dataset(
        {"half": ("T", [2.0, 3.0, np.nan]), "half_low": ("T", [1.5, -9.0, np.nan]),
         "half_high": ("T", [2.5, np.inf, np.nan])}
    )  # fmt: skip
    figure = map_plots.phase_lines_figure(data, "n", lines="T", transitions=halves)
    axes = figure.axes[0]
    marks = [line for line in axes.lines if line.get_marker() == "D"]
    assert [line.get_xdata()[0] for line in marks] == [2, 3]
    bars = [line for line in axes.lines if list(line.get_ydata()) == [0.5, 0.5]]
    assert list(bars[0].get_xdata()) == [1.5, 2.5]
    assert list(bars[1].get_xdata()) == list(axes.get_xlim())
    with pytest.raises(InvalidInputError, match="transitions"):
        map_plots.phase_lines_figure(data, "n", lines="T", transitions=halves.isel(T=0))


def test_everything_fits_into_the_figure(tmp_path):
    """Long names of measures, and panels, are where words run out of room."""
    data = averages(T=[2, 4, 8], n=[1, 2, 3, 4], d=[5, 6, 7], shape=(3, 4, 3))
    data.attrs["description"] = "whether some matrix selects the optimal token of every sequence"
    for figure in (
        map_plots.phase_map_figure(data, "n", "T", panels="d"),
        map_plots.phase_lines_figure(data, "n", lines="T", panels="d"),
    ):
        figure.draw_without_rendering()
        frame = figure.bbox
        for text in figure.findobj(plt.Text):
            if text.get_visible() and text.get_text() and text.axes is None:
                box = text.get_window_extent()
                assert frame.x0 <= box.x0 and box.x1 <= frame.x1 + 1, text.get_text()
        for axes in figure.axes:
            for label in (axes.xaxis.label, axes.yaxis.label):
                box = label.get_window_extent()
                assert not label.get_text() or (
                    frame.y0 <= box.y0 and box.y1 <= frame.y1 + 1 and box.x1 <= frame.x1 + 1
                ), label.get_text()


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"x": "n", "y": "m"}, "y: 'm' is not known"),
        ({"x": "n", "y": "n"}, "its axes are T, n, and n, n are drawn"),
        ({"x": "n", "y": "T", "panels": "d"}, "panels: 'd' is not known"),
    ],
)
def test_axes_that_are_not_there_are_refused(axes, words):
    with pytest.raises(InvalidInputError) as refused:
        map_plots.phase_map_figure(averages(), **axes)
    assert words in str(refused.value)


def test_data_of_another_kind_are_refused():
    with pytest.raises(InvalidInputError, match="it has no mean"):
        map_plots.phase_map_figure(xr.Dataset({"x": ("n", [1.0])}), "n", "T")
    many = averages(rule=[f"rule {k}" for k in range(9)], n=[1, 2], shape=(9, 2))
    with pytest.raises(InvalidInputError, match="rule has 9 names"):
        map_plots.phase_lines_figure(many, "n", lines="rule")


def test_numbers_that_crowd_below_one_lie_by_their_distance_from_it():
    data = averages(n=[0.9, 0.99, 0.999, 0.9999], T=[1, 2, 3], shape=(4, 3))
    axes = map_plots.phase_map_figure(data, "n", "T").axes[0]
    steps = np.diff(axes.get_xticks())
    assert steps == pytest.approx(np.log(10) * np.ones(3))
    assert [text.get_text() for text in axes.get_xticklabels()][1] == "0.99"


@pytest.mark.long
def test_panels_stand_in_rows_of_nearly_one_length_with_labels_below_each_column():
    data = averages(n=[1, 2], T=[1, 2], d=list(range(1, 8)), shape=(2, 2, 7))
    figure = map_plots.phase_map_figure(data, "n", "T", panels="d")
    figure.draw_without_rendering()
    shown = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in shown][3:5] == ["$d$ = 4", "$d$ = 5"]
    first_row = {round(axes.get_position().y0, 3) for axes in shown[:4]}
    assert len(first_row) == 1
    assert round(shown[4].get_position().y0, 3) not in first_row
    labeled = [axes for axes in figure.axes if axes.get_xlabel()]
    assert len(labeled) == 4
    assert all(axes.get_xticklabels()[0].get_visible() for axes in labeled)
