import io
import sys

import matplotlib
import numpy as np
import pytest

from attractor import plots
from attractor.plots.design.description import description
from attractor.plots.design.figure import Figure

OWN = {"font.size": 19, "xtick.direction": "in", "text.color": "red", "axes.facecolor": "black"}


@pytest.fixture(scope="module")
def data():
    import xarray as xr

    names, W = ["frobenius", "nuclear"], np.arange(18.0).reshape(2, 3, 3)
    return xr.Dataset(
        {
            "W": (("geometry", "row", "column"), W),
            "margin_ratio": (("geometry", "measured_in"), np.eye(2)),
        },
        {"geometry": names, "measured_in": names},
    )


def saved(figure, **options):
    stream = io.BytesIO()
    figure.savefig(stream, metadata={"Software": None}, **options)
    return stream.getvalue()


def test_a_figure_is_the_same_whatever_the_user_has_set_meanwhile(data):
    with plots.style():
        wanted = saved(plots.geometries_figure(data))
    with matplotlib.rc_context(OWN):
        assert saved(plots.geometries_figure(data)) == wanted
        assert matplotlib.rcParams["font.size"] == 19


def test_changes_inside_the_style_reach_figures(data):
    with plots.style():
        matplotlib.rcParams["axes.labelsize"] = 15
        changed = plots.geometries_figure(data)
    figures = {8: plots.geometries_figure(data), 15: changed}
    for size, figure in figures.items():
        assert figure.axes[2].xaxis.label.get_fontsize() == size


def test_a_notebook_shows_it_at_its_size_and_leaves_it_as_it_was(data):
    figure = plots.geometries_figure(data)
    before = figure.canvas, figure.dpi
    picture, size = figure._repr_png_()
    assert (figure.canvas, figure.dpi) == before
    assert picture.startswith(b"\x89PNG")
    width, height = (int.from_bytes(picture[k : k + 4], "big") for k in (16, 20))
    assert (width, height) == (2 * size["width"], 2 * size["height"])


def test_a_notebook_reads_its_description_aloud():
    figure = Figure(figsize=(1, 1))
    assert 'alt=""' in figure._repr_html_() and "alt" not in figure._repr_png_()[1]
    figure.description = 'above "chance" & more'
    alt = 'alt="above &quot;chance&quot; &amp; more"'
    shown = figure._repr_html_()
    assert alt in shown and f'width="{figure._repr_png_()[1]["width"]}"' in shown
    assert figure._repr_png_()[1]["alt"] == figure.description


def test_pyplot_shows_it_where_it_shows_all_figures(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib_inline.backend_inline", None)
    assert plots.geometries_figure(data)._repr_png_() is None
    assert plots.geometries_figure(data)._repr_html_() is None


def test_a_notebook_reads_out_what_is_seen(data):
    page = plots.geometries_figure(data)._repr_html_()
    assert page.startswith("<img ") and page.count("<") == 1
    words = page.partition(' alt="')[2].partition('"')[0]
    assert words.startswith("Frobenius: 3 by 3 cells from 0 to 1. nuclear: ")
    assert words.endswith(
        "solution in the norm against measured in the norm: 2 by 2 cells from 0 to 1."
    )


def test_curves_bars_and_points_are_read_out():
    with plots.style():
        left, right = Figure(figsize=(4, 2)).subplots(1, 2)
        left.plot([1, 2, 3], [np.nan, 0.25, 4], label="a < b")
        left.plot([1, 2], [7, 7], label="_hidden")
        left.fill_between([1, 2], [0, 0], [1, 1], label="a band, which has no points")
        left.set(title="(a)", xlabel="$x_1$", ylabel="loss")
        right.bar([0, 1], [2, 5])
        right.scatter([0, 1], [3, 4], label="support")
    figure = left.figure
    curve = "(a): loss against x_1: a < b from 0.25 to 4."
    bars = "2 bars from 2 to 5; support: 2 points from 3 to 4."
    assert description(figure) == f"{curve} {bars}"
    assert 'alt="(a): loss against x_1: a &lt; b' in figure._repr_html_()
    right.set_axis_off()
    assert description(figure) == curve


def test_nothing_of_it_is_cut_off(data):
    figure = plots.geometries_figure(data)
    figure.draw_without_rendering()
    tight, whole = figure.get_tightbbox(), figure.bbox_inches
    assert whole.x0 <= tight.x0 and tight.x1 <= whole.x1
    assert whole.y0 <= tight.y0 and tight.y1 <= whole.y1
