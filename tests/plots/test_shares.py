import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from attractor import InvalidInputError, papers, plots

OUTCOMES = ["globally_optimal", "locally_optimal", "neither", "not_settled"]


@pytest.fixture
def axes():
    return Figure().subplots()


@pytest.fixture
def counts():
    return xr.DataArray(
        [[25, 65, 0], [50, 34, 0], [24, 1, 0], [1, 0, 0]],
        dims=("outcome", "d"),
        coords={"outcome": OUTCOMES, "d": [2, 4, 50]},
    )


def test_bars_of_a_value_stack_to_one_in_the_colors_of_their_roles(axes, counts):
    papers.plots.stacked_shares(axes, counts, "d")
    for outcome, bars, expected in zip(OUTCOMES, axes.containers, counts.values, strict=True):
        assert all(
            same_color(bar.get_facecolor(), plots.line_style(outcome)["color"]) for bar in bars
        )
        np.testing.assert_allclose([bar.get_height() for bar in bars], expected / [100, 100, 1])
    tops = [bar.get_y() + bar.get_height() for bar in axes.containers[-1]]
    np.testing.assert_allclose(tops, [1, 1, 0])  # nothing was counted at d = 50
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "4", "50"]
    assert axes.get_legend_handles_labels()[1][0] == "globally optimal"


def test_counts_are_written_where_there_is_room(axes, counts):
    papers.plots.stacked_shares(axes, counts, "d")
    assert sorted(text.get_text() for text in axes.texts) == ["24", "25", "34", "50", "65"]


def test_bars_that_share_a_value_stand_side_by_side_with_their_names(axes, counts):
    papers.plots.stacked_shares(axes, counts, "d", slot=(0, 2), name="W")
    papers.plots.stacked_shares(axes, counts, "d", slot=(1, 2), name="KQ", label=False)
    left, right = axes.containers[0][0], axes.containers[4][0]
    assert left.get_x() + left.get_width() <= right.get_x()
    assert left.get_x() + right.get_x() + right.get_width() == pytest.approx(0)
    assert len(axes.get_legend_handles_labels()[1]) == 4
    names = [text.get_text() for text in axes.texts]
    assert names.count("W") == names.count("KQ") == 2


@pytest.mark.parametrize("wrong", [-1, 0.5])
def test_what_is_no_count_is_refused(axes, counts, wrong):
    with pytest.raises(InvalidInputError, match="counts"):
        papers.plots.stacked_shares(axes, counts * 0 + wrong, "d")


def test_intervals_are_those_of_wilson():
    fraction, low, high = papers.plots.wilson([0, 7, 20], [20, 20, 20])
    np.testing.assert_allclose(fraction, [0, 0.35, 1])
    z, share, n = 1.959963984540054, np.array([0, 0.35, 1]), 20
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    np.testing.assert_allclose([low, high], [middle - half, middle + half], atol=1e-12)


def test_of_no_trials_nothing_is_known():
    assert np.isnan(papers.plots.wilson([0], [0])).all()


@pytest.mark.parametrize(("successes", "trials"), [([3], [2]), ([-1], [2]), ([0.5], [2])])
def test_more_successes_than_trials_are_refused(successes, trials):
    with pytest.raises(InvalidInputError, match="successes"):
        papers.plots.wilson(successes, trials)


def test_a_fraction_is_drawn_with_its_intervals(axes):
    successes = xr.DataArray([2, 0, 20], dims="d", coords={"d": [2, 5, 75]})
    look = plots.ordered_line_styles(1)[0] | {"linestyle": "--"}
    papers.plots.fraction_curve(
        axes, successes, xr.DataArray([20, 0, 20], dims="d"), "d", look=look
    )
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.1, np.nan, 1])
    assert axes.lines[0].is_dashed()
    spans = np.array([path.vertices[:, 1] for path in axes.collections[0].get_paths()])
    _, low, high = papers.plots.wilson([2, 20], [20, 20])
    np.testing.assert_allclose(spans[[0, -1]], np.transpose([low, high]), atol=1e-12)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "5", "75"]


def test_a_shift_moves_points_sideways_and_all_stay_in_view(axes):
    successes = xr.DataArray([2, 20], dims="d", coords={"d": [2, 75]})
    look = plots.ordered_line_styles(1)[0]
    for shift in (-3.6, 3.6):
        papers.plots.fraction_curve(
            axes, successes, 20, "d", look=look, shift=shift, categorical=False
        )
    left, right = (line.get_transform().transform((2, 0.1))[0] for line in axes.lines)
    assert right - left == pytest.approx(0.1 * axes.figure.dpi)
    assert left > axes.bbox.x0
    assert axes.lines[1].get_transform().transform((75, 1))[0] < axes.bbox.x1
