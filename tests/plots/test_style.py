import re

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from attractor import plots
from attractor.support.errors import InvalidInputError


def test_the_style_holds_inside_the_block_only():
    before = dict(matplotlib.rcParams)
    with plots.style():
        assert matplotlib.rcParams["axes.spines.top"] is False
    assert dict(matplotlib.rcParams) == before


def test_a_notebook_that_turns_figures_on_inside_keeps_them_on():
    before = matplotlib.is_interactive()
    try:
        with plots.style():
            matplotlib.interactive(not before)
        assert matplotlib.is_interactive() is not before
    finally:
        matplotlib.interactive(before)


@pytest.mark.long
def test_the_same_figure_is_saved_as_the_same_bytes(tmp_path, data):
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        with plots.style():
            plots.save_figure(plots.direction_figure({"run": data}), folder, "figure")
    for file in ("figure.svg", "figure.png"):
        first, second = ((tmp_path / name / file).read_bytes() for name in ("first", "second"))
        assert first == second
    assert Image.open(tmp_path / "first" / "figure.png").width == 1380


@pytest.mark.long
def test_a_saved_figure_is_as_matplotlib_saves_it_and_stays_as_it_was(tmp_path, data):
    with plots.style():
        figure = plots.direction_figure({"run": data})
        before = figure.canvas, figure.dpi, figure.get_layout_engine()
        plots.save_figure(figure, tmp_path, "ours")
        assert (figure.canvas, figure.dpi, figure.get_layout_engine()) == before
        figure.savefig(tmp_path / "theirs.png", metadata={"Software": None})
        figure.set_layout_engine("none")  # else it is laid out again, in points
        figure.savefig(tmp_path / "theirs.svg", metadata={"Date": None})
    assert (tmp_path / "ours.png").read_bytes() == (tmp_path / "theirs.png").read_bytes()
    ours, theirs = (_parts((tmp_path / f"{name}.svg").read_text()) for name in ("ours", "theirs"))
    assert ours[0] == theirs[0]
    # Laid out twice, a place halfway between two that SVG writes may go to the other one.
    np.testing.assert_allclose(ours[1], theirs[1], rtol=0, atol=2e-6)


def _parts(svg):
    """A drawing without its numbers and the names that are hashes of them; its numbers."""
    named = re.sub(r"\bp[0-9a-f]{10}\b", "", svg)
    numbers = re.compile(r"-?\d+\.\d+")
    return numbers.sub("#", named), np.array(numbers.findall(named), float)


@pytest.mark.parametrize(("highest", "ticks"), [(90, 8), (499, 8), (5e5, 2)])
def test_minor_ticks_do_not_run_together_over_many_decades(tmp_path, highest, ticks):
    with plots.style():
        axes = Figure().subplots()
        axes.set(xscale="log", xlim=(highest, 0.5))  # from right to left
        plots.save_figure(axes.figure, tmp_path, "axis")
    assert sum(1 < place < 10 for place in axes.xaxis.get_minorticklocs()) == ticks


def test_a_figure_that_cannot_be_written_is_as_it_was(tmp_path, data):
    with plots.style():
        figure = plots.direction_figure({"run": data})
        before = figure.canvas, figure.dpi, figure.get_layout_engine()
        (tmp_path / "file").write_text("no folder")
        with pytest.raises(InvalidInputError):
            plots.save_figure(figure, tmp_path / "file", "figure")
    assert (figure.canvas, figure.dpi, figure.get_layout_engine()) == before
