import matplotlib
import pytest
from matplotlib.figure import Figure
from PIL import Image

from attractor import plots


def test_the_style_holds_inside_the_block_only():
    before = dict(matplotlib.rcParams)
    with plots.style():
        assert matplotlib.rcParams["axes.spines.top"] is False
    assert dict(matplotlib.rcParams) == before


def test_the_same_figure_is_saved_as_the_same_bytes(tmp_path, data):
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        with plots.style():
            plots.save_figure(plots.direction_figure({"run": data}), folder, "figure")
    for file in ("figure.svg", "figure.png"):
        first, second = ((tmp_path / name / file).read_bytes() for name in ("first", "second"))
        assert first == second
    assert Image.open(tmp_path / "first" / "figure.png").width == 1440


@pytest.mark.parametrize(("highest", "ticks"), [(90, 8), (499, 8), (5e5, 2)])
def test_minor_ticks_do_not_run_together_over_many_decades(tmp_path, highest, ticks):
    with plots.style():
        axes = Figure().subplots()
        axes.set(xscale="log", xlim=(highest, 0.5))  # from right to left
        plots.save_figure(axes.figure, tmp_path, "axis")
    assert sum(1 < place < 10 for place in axes.xaxis.get_minorticklocs()) == ticks
