import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from attractor import InvalidInputError, plots
from attractor.plots.design.roles import SEQUENCES

KEYS = np.array([[[1.0, 2.0], [-1.0, 0.5], [0.0, 0.0]], [[2.0, -1.0], [0.5, 0.5], [3.0, 1.0]]])


@pytest.fixture
def axes():
    return Figure().subplots()


def points(axes, marker, color=None):
    """All points drawn with a marker."""
    found = [
        line.get_xydata()
        for line in axes.lines
        if line.get_marker() == marker and (color is None or same_color(line.get_color(), color))
    ]
    return np.concatenate([np.empty((0, 2)), *found])


def test_optimal_tokens_are_stars_and_the_others_have_the_marker_of_their_sequence(axes):
    plots.plane_tokens(axes, KEYS, optimal=[0, 2])
    (first, circle), (second, square) = SEQUENCES[:2]
    np.testing.assert_array_equal(points(axes, "*", first), KEYS[0, :1])
    np.testing.assert_array_equal(points(axes, "*", second), KEYS[1, 2:])
    np.testing.assert_array_equal(points(axes, circle, first), KEYS[0, 1:])
    np.testing.assert_array_equal(points(axes, square, second), KEYS[1, :2])


def test_ties_are_all_stars_and_padding_is_not_drawn(axes):
    mask = np.array([[True, True, False], [True, True, True]])
    optimal = np.array([[True, True, True], [False, False, False]])
    plots.plane_tokens(axes, KEYS, optimal=optimal, mask=mask)
    np.testing.assert_array_equal(points(axes, "*"), KEYS[0, :2])
    assert sum(len(line.get_xdata()) for line in axes.lines) == mask.sum()


def test_selected_tokens_get_a_ring(axes):
    plots.plane_tokens(axes, KEYS[1:], selected=[1])
    rings = [line for line in axes.lines if line.get_fillstyle() == "none"]
    np.testing.assert_array_equal(rings[0].get_xydata(), KEYS[1, 1:2])


def test_every_sequence_has_one_entry_in_the_legend(axes):
    plots.plane_tokens(axes, KEYS, optimal=[0, 2], labels=["one", "two"])
    assert axes.get_legend_handles_labels()[1] == ["one", "two"]


def test_a_sequence_of_stars_alone_has_an_entry_too(axes):
    plots.plane_tokens(axes, KEYS[:, :1], optimal=[0, 0], labels=["one", "two"])
    assert axes.get_legend_handles_labels()[1] == ["one", "two"]


def test_names_stand_away_from_the_origin(axes):
    plots.plane_tokens(axes, KEYS[:1], names=[["a", "b", "c"]])
    assert [text.get_text() for text in axes.texts] == ["a", "b", "c"]
    assert axes.texts[0].get_ha() == "left"
    assert axes.texts[1].get_ha() == "right"


@pytest.mark.parametrize("ratio", [None, 0.5, 2.0])
def test_the_frame_holds_all_points_and_the_origin_in_equal_units(axes, ratio):
    plots.frame(axes, KEYS, [[9.0, 9.5]], ratio=ratio)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert left < -1 and right > 9 and bottom < -1 and top > 9.5
    assert axes.get_aspect() == 1
    if ratio:
        assert (top - bottom) / (right - left) == pytest.approx(ratio)


def test_the_origin_is_in_the_frame_of_points_far_from_it(axes):
    plots.frame(axes, [[5.0, 5.0], [6.0, 7.0]])
    assert axes.get_xlim()[0] < 0 and axes.get_ylim()[0] < 0


def test_ticks_of_equal_axes_are_as_far_apart(axes):
    plots.frame(axes, [[-8.0, -3.0], [14.0, 14.0]], ratio=0.75)
    (step, *steps), (other, *others) = np.diff(axes.get_xticks()), np.diff(axes.get_yticks())
    np.testing.assert_allclose([*steps, other, *others], step)


def test_points_that_are_not_finite_do_not_count(axes):
    plots.frame(axes, [[1.0, 1.0], [np.nan, 2.0], [np.inf, 0.0]])
    assert axes.get_xlim()[1] < 1.2


def test_unequal_units_fill_a_flat_frame(axes):
    plots.frame(axes, [[-7.0, -0.1]], equal=False, ratio=0.6)
    assert axes.get_aspect() == "auto"
    assert axes.get_box_aspect() == 0.6
    assert np.ptp(axes.get_ylim()) < 0.2


@pytest.mark.parametrize("points", [[[0.0, 0.0]], np.empty((0, 2)), [[np.nan, 1.0]]])
def test_a_frame_of_nothing_is_refused(axes, points):
    with pytest.raises(InvalidInputError, match="points: there is none but the origin"):
        plots.frame(axes, points)


def test_tokens_of_another_dimension_are_refused(axes):
    with pytest.raises(InvalidInputError, match=r"keys: its shape is \(2, 3, 3\)"):
        plots.plane_tokens(axes, np.zeros((2, 3, 3)))
