from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from attractor import InvalidInputError, plots
from attractor.plots.plane.trajectories import Arrowheads

LINE = np.linspace([0, 0], [8, 4], 41)


@pytest.fixture
def axes():
    figure = Figure(figsize=(3, 2), dpi=100)
    FigureCanvasAgg(figure)
    return figure.add_axes((0, 0, 1, 1), xlim=(-1, 10), ylim=(-1, 10))


def heads(axes):
    """Corners of all heads in data coordinates, tip first, after drawing."""
    axes.figure.canvas.draw()
    return [
        axes.transData.inverted().transform(path.vertices[:4])
        for artist in axes.collections
        if isinstance(artist, Arrowheads)
        for path in artist.get_paths()
    ]


def test_a_path_is_a_line_of_its_role_from_a_marked_start(axes):
    plots.trajectory(axes, LINE, "train_KQ", label="path")
    line, start = axes.lines
    np.testing.assert_array_equal(line.get_xydata(), LINE)
    assert same_color(line.get_color(), plots.line_style("train_KQ")["color"]) and line.is_dashed()
    np.testing.assert_array_equal(start.get_xydata(), LINE[:1])
    assert axes.get_legend_handles_labels()[1] == ["path"]
    assert heads(axes) == []


@pytest.mark.parametrize(
    ("arrows", "at"), [(10, (10, 20, 30, 40)), ([5, 35], (5, 35)), (41, ()), ([], ())]
)
def test_heads_have_their_tips_at_the_steps_asked_for(axes, arrows, at):
    plots.trajectory(axes, LINE, "train_W", arrows=arrows)
    tips = [head[0] for head in heads(axes)]
    np.testing.assert_allclose(np.reshape(tips, (-1, 2)), LINE[list(at)], atol=1e-9)


def test_heads_between_recorded_steps_are_on_the_line_between_them(axes):
    steps = np.array([0, 1, 2, 5, 40])
    plots.trajectory(axes, LINE[steps], "train_W", steps=steps, arrows=[20])
    np.testing.assert_allclose(heads(axes)[0][0], LINE[20], atol=1e-9)


def test_heads_point_along_the_curve_as_it_is_on_paper(axes):
    axes.set_ylim(-1, 100)  # units are not as long on both axes
    plots.trajectory(axes, LINE, "train_W", arrows=[20])
    (head,) = (axes.transData.transform(head) for head in heads(axes))
    along = head[0] - (head[1] + head[3]) / 2
    curve = axes.transData.transform(LINE[20]) - axes.transData.transform(LINE[0])
    assert np.dot(along, curve) == pytest.approx(np.hypot(*along) * np.hypot(*curve))
    assert np.hypot(*along) == pytest.approx(5 * 100 / 72)  # points, whatever the scale


def test_a_head_that_the_frame_would_cut_is_left_out(axes):
    plots.trajectory(axes, LINE, "train_W", arrows=[20, 40])
    axes.set_xlim(-1, LINE[40, 0] - 0.01)
    assert len(heads(axes)) == 1
    axes.set_xlim(-1, 9)
    assert len(heads(axes)) == 2


def test_a_path_that_has_not_moved_has_no_heads(axes):
    plots.trajectory(axes, np.ones((5, 2)), "train_W", arrows=1)
    assert heads(axes) == []


def test_paths_from_several_starts_share_one_entry_in_the_legend(axes):
    paths = LINE + np.array([[[0, 0]], [[0, 1]], [[0, 2]]])
    plots.trajectory(axes, paths, "train_p", arrows=20, label="training")
    assert len(axes.lines) == 3 + 1
    np.testing.assert_array_equal(axes.lines[-1].get_xydata(), paths[:, 0])
    assert len(heads(axes)) == 6
    assert axes.get_legend_handles_labels()[1] == ["training"]


def test_a_path_that_breaks_off_is_drawn_as_far_as_it_is_known(axes):
    path = LINE.copy()
    path[25:] = np.nan
    plots.trajectory(axes, path, "train_W", arrows=10)
    assert len(heads(axes)) == 2


def test_the_same_heads_are_written_to_vector_files(axes, tmp_path):
    plots.trajectory(axes, LINE, "train_W", arrows=10)
    before = heads(axes)
    axes.figure.savefig(tmp_path / "figure.svg")
    drawn = ElementTree.parse(tmp_path / "figure.svg").iter("{http://www.w3.org/2000/svg}path")
    color = plots.line_style("train_W")["color"].lower()
    filled = [path for path in drawn if f"fill: {color}" in path.get("style", "")]
    assert len(filled) == 4
    np.testing.assert_allclose(heads(axes), before)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"steps": np.arange(40)}, "steps"),
        ({"steps": np.zeros(41)}, "steps"),
        ({"arrows": 0}, "arrows"),
        ({"arrows": [41]}, "arrows"),
        ({"arrows": [-1]}, "arrows"),
    ],
)
def test_steps_that_do_not_fit_are_refused(axes, options, argument):
    with pytest.raises(InvalidInputError, match=argument):
        plots.trajectory(axes, LINE, "train_W", **options)
