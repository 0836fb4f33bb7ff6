import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from attractor import InvalidInputError, plots
from attractor.plots.design.roles import tint

angles = st.floats(-np.pi, np.pi)


@pytest.fixture
def axes():
    axes = Figure().subplots()
    axes.set(xlim=(-2, 3), ylim=(-1, 4))
    return axes


def on_the_edge(point):
    x, y = point
    inside = -2 - 1e-9 <= x <= 3 + 1e-9 and -1 - 1e-9 <= y <= 4 + 1e-9
    return inside and min(abs(x + 2), abs(x - 3), abs(y + 1), abs(y - 4)) < 1e-9


@settings(max_examples=40, deadline=None)
@given(angle=angles, size=st.sampled_from([1e-200, 1.0, 1e200]))
def test_a_ray_goes_from_the_origin_to_the_edge(angle, size):
    axes = Figure().add_axes((0, 0, 1, 1), xlim=(-2, 3), ylim=(-1, 4))
    direction = size * np.array([np.cos(angle), np.sin(angle)])
    begin, end = plots.ray(axes, direction, "frobenius").get_xydata()
    np.testing.assert_allclose(begin, 0, atol=1e-12)
    assert on_the_edge(end)
    np.testing.assert_allclose(end / np.hypot(*end), direction / size, atol=1e-9)


def test_a_ray_follows_the_frame(axes):
    line = plots.ray(axes, [1, 1], "nuclear")
    plots.frame(axes, [[10.0, 6.0]], margin=0)
    np.testing.assert_allclose(line.get_xydata(), [[0, 0], [6, 6]])
    axes.set_ylim(-1, 7)
    np.testing.assert_allclose(line.get_xydata(), [[0, 0], [7, 7]])


def test_a_ray_begins_at_the_edge_of_a_frame_without_the_origin(axes):
    axes.set_xlim(1, 3)
    np.testing.assert_allclose(plots.ray(axes, [1, 1], "nuclear").get_xydata(), [[1, 1], [3, 3]])
    assert len(plots.ray(axes, [-1, 1], "nuclear", name="hidden").get_xydata()) == 0
    assert not axes.texts[-1].get_visible()


def test_a_ray_is_a_pale_line_of_its_role_and_has_no_say_in_the_limits(axes):
    limits = axes.dataLim.frozen().bounds
    line = plots.ray(axes, [1, 2], "nuclear", label="solution")
    assert same_color(line.get_color(), tint(plots.line_style("nuclear")["color"]))
    assert line.is_dashed()
    assert not plots.ray(axes, [1, 2], "frobenius").is_dashed()
    assert axes.get_legend_handles_labels()[1] == ["solution"]
    assert axes.dataLim.bounds == limits
    assert plots.ray(axes, [1, 2], "nuclear", linewidth=7).get_linewidth() == 7


@pytest.mark.parametrize("direction", [(1, 0.2), (-1, 0.2), (0.2, 1), (-0.2, -1)])
@pytest.mark.parametrize("other_side", [False, True])
def test_the_name_of_a_ray_is_inside_the_frame_beside_its_end(axes, direction, other_side):
    line = plots.ray(axes, direction, "frobenius", name="name", other_side=other_side)
    axes.figure.draw_without_rendering()
    box = axes.transData.inverted().transform(axes.texts[-1].get_window_extent())
    (left, bottom), (right, top) = box
    assert left > -2.01 and right < 3.6 and bottom > -1.4 and top < 4.01
    end = line.get_xydata()[1]
    assert np.hypot(*(box.mean(0) - end)) < 1
    x, y = box.mean(0)
    across = y - end[1] if abs(direction[0]) > abs(direction[1]) else x - end[0]
    assert (across < 0) == other_side


@settings(max_examples=40, deadline=None)
@given(angle=angles, x=st.floats(-1.9, 2.9), y=st.floats(-0.9, 3.9))
def test_a_separating_line_is_orthogonal_and_goes_from_edge_to_edge(angle, x, y):
    axes = Figure().add_axes((0, 0, 1, 1), xlim=(-2, 3), ylim=(-1, 4))
    normal = np.array([np.cos(angle), np.sin(angle)])
    ends = plots.separating_line(axes, normal, [x, y], "frobenius").get_xydata()
    assert on_the_edge(ends[0]) and on_the_edge(ends[1])
    np.testing.assert_allclose(ends @ normal, np.dot([x, y], normal), atol=1e-9)


def test_a_separating_line_outside_the_frame_is_not_drawn(axes):
    assert len(plots.separating_line(axes, [1, 0], [9, 0], "frobenius").get_xydata()) == 0


def test_the_mid_margin_point_is_halfway_to_the_runner_up():
    keys = np.array([[3.0, 9.0], [0.0, 0.0], [1.0, -5.0]])
    np.testing.assert_array_equal(plots.mid_margin_point(keys, [1, 0], 0), [2, 2])
    np.testing.assert_array_equal(plots.mid_margin_point(keys, [-2, 0], 1), [0.5, -2.5])


@pytest.mark.parametrize("direction", [(0, 0), (np.nan, 1), (np.inf, 1), (1, 2, 3), ((1, 2),)])
def test_what_is_no_direction_is_refused(axes, direction):
    with pytest.raises(InvalidInputError, match="direction"):
        plots.ray(axes, direction, "frobenius")
    with pytest.raises(InvalidInputError, match="normal"):
        plots.separating_line(axes, direction, [0, 0], "frobenius")
