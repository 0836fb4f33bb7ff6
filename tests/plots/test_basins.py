import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attractor import maps, plots
from attractor.maps.plots.basins import selection_colors
from attractor.plots.design.roles import tint

BLUE, ORANGE = plots.COLORS["blue"], plots.COLORS["orange"]


def selections(names, best="0"):
    count = len(names)
    return {
        "solution": (("selection", "row", "column"), np.eye(2)[np.arange(count) % 2][..., None]),
        "solution_norm": ("selection", 1.0 + np.arange(count)),
        "locally_optimal": ("selection", np.ones(count, dtype=bool)),
        "globally_optimal": ("selection", np.array([name == best for name in names])),
    }


@pytest.fixture
def plane():
    """Six cells: four of token 0, one of token 1 and one of none."""
    return xr.Dataset(
        {
            "basin": (("second", "first"), [[0, 0, 1], [0, 0, -1]]),
            **selections(["0", "1"]),
            "direction": (("axis", "row", "column"), np.eye(2)[..., None]),
            "center": (("row", "column"), np.zeros((2, 1))),
            "keys": (("sequence", "key_token", "row"), [[[0.5, 0.5], [-0.5, 0.2], [0, 0]]]),
            "mask": (("sequence", "key_token"), [[True, True, False]]),
            "optimal": (("sequence", "key_token"), [[True, False, False]]),
        },
        coords={"first": [-2.0, 0, 2], "second": [-1.0, 1], "selection": ["0", "1"]},
        attrs={"optimizer": "normalized gradient descent"},
    )


def shares(counts, names):
    total = sum(counts)
    share = np.array(counts) / total
    return xr.Dataset(
        {
            "basin": ("start", np.repeat([*range(len(names)), -1], counts)),
            **selections(names),
            "count": ("outcome", counts),
            "share": ("outcome", share),
            "low": ("outcome", share * 0.9),
            "high": ("outcome", share * 0.9 + 0.1),
        },
        coords={"selection": names, "outcome": [*names, "not settled"]},
        attrs={"confidence": 0.95, "interval": "Wilson", "optimizer": "sign descent"},
    )


def at_centers(image, shape):
    """The colors of an image at the centers of cells."""
    pixels = np.asarray(image.get_array())
    fine = len(pixels) // shape[0]
    return [
        [to_hex(color) for color in row] for row in pixels[fine // 2 :: fine, fine // 2 :: fine]
    ]


def legend_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_cells_have_the_color_of_their_selection(plane):
    axes = Figure().subplots()
    maps.plots.basin_map_axes(axes, plane)
    (image,) = axes.images
    shown = at_centers(image, (2, 3))
    pale = {BLUE: tint(BLUE, 0.5), ORANGE: tint(ORANGE, 0.5)}
    assert shown[0] == [pale[BLUE], pale[BLUE], pale[ORANGE]]
    assert shown[1][:2] == [pale[BLUE]] * 2 and shown[1][2] not in pale.values()
    assert image.get_extent() == [-3, 3, -2, 2]
    assert axes.get_xlim() == (-3, 3) and axes.get_ylim() == (-2, 2)


def test_boundaries_are_rounded_off_by_less_than_a_cell_and_no_cell_vanishes(plane):
    first, second = np.arange(30) - 14.5, np.arange(20) - 9.5
    beyond = 0.4 * first[None, :] + 1 > second[:, None]
    basin = beyond.astype(int)
    basin[17, 3] = 1  # a cell alone
    axes = Figure().subplots()
    data = plane.drop_dims(["first", "second"]).assign(basin=(("second", "first"), basin))
    maps.plots.basin_map_axes(axes, data.assign_coords(first=first, second=second))
    shown = np.array(at_centers(axes.images[0], basin.shape)) == tint(ORANGE, 0.5)
    assert shown[17, 3]
    distance = (0.4 * first[None, :] + 1 - second[:, None]) / np.hypot(0.4, 1)
    assert np.abs(distance[(shown != basin) & (np.abs(first) < 13)]).max(initial=0) < 0.5


def test_starts_without_a_selection_are_hatched(plane):
    axes = Figure().subplots()
    maps.plots.basin_map_axes(axes, plane)
    (hatched,) = [one for one in axes.collections if one.hatches[0]]
    (path,) = hatched.get_paths()
    np.testing.assert_allclose(path.get_extents().get_points(), [[1, 0], [3, 2]], atol=0.4)
    settled = plane.assign(basin=plane["basin"].clip(0))
    axes = Figure().subplots()
    maps.plots.basin_map_axes(axes, settled)
    assert not any(one.hatches[0] for one in axes.collections)


def test_the_legend_names_tokens_and_their_parts(plane):
    axes = Figure().subplots()
    maps.plots.basin_map_axes(axes, plane)
    assert legend_of(axes) == [
        "token 0, globally optimal: 66.7 %",
        "token 1, locally optimal: 16.7 %",
        "not settled: 16.7 %",
        "margin solution of each",
        "optimal token",
    ]


def test_tokens_and_rays_lie_on_the_plane_of_a_prompt(plane):
    axes = Figure().subplots()
    maps.plots.basin_map_axes(axes, plane)
    drawn = [line.get_xydata().tolist() for line in axes.lines]
    assert [[0.5, 0.5]] in drawn and [[-0.5, 0.2]] in drawn  # the padded one is not
    assert [[0, 0], [3, 0]] in drawn and [[0, 0], [0, 2]] in drawn
    for other in (plane.assign(center=plane["center"] + 1), plane.drop_vars("keys")):
        axes = Figure().subplots()
        maps.plots.basin_map_axes(axes, other)
        assert [[0.5, 0.5]] not in [line.get_xydata().tolist() for line in axes.lines]
        assert axes.get_xlabel() == "start along the margin solution of\ntoken 0"
        assert axes.get_ylabel() == "start along what is left of that of\ntoken 1"


def test_solutions_outside_the_plane_have_no_ray(plane):
    tilted = plane.drop_vars(["keys", "mask", "optimal", "solution", "direction", "center"]).assign(
        solution=(("selection", "row", "column"), [[[1.0], [2], [0]], [[0], [1], [1]]]),
        direction=(("axis", "row", "column"), [[[1.0], [0], [0]], [[1], [1], [0]]]),
        center=(("row", "column"), np.zeros((3, 1))),
    )
    axes = Figure().subplots()
    maps.plots.basin_map_axes(axes, tilted)
    (ray,) = axes.lines
    np.testing.assert_allclose(ray.get_xydata(), [[0, 0], [-1, 2]])  # -1 u + 2 v


def test_a_selection_has_the_same_color_in_every_picture(plane):
    counted = shares([10, 0, 30, 5], ["1", "2", "3"])
    colors = selection_colors(plane, counted)
    assert colors["0"] == BLUE
    assert len(set(colors.values())) == 4
    (right,) = maps.plots.basin_shares_figure(counted, colors=colors).axes
    bars = [bar.get_facecolor()[:3] for bar in right.patches]
    np.testing.assert_allclose(bars[1], to_rgb(tint(colors["1"], 0.15)), atol=0.01)


def test_more_selections_than_colors_share_gray():
    names = [str(number) for number in range(9)]
    colors = selection_colors(shares([1, 2, 3, 4, 5, 6, 7, 8, 9, 0], names))
    gray = {name for name, color in colors.items() if color == plots.COLORS["gray"]}
    assert gray == {"1", "2", "3", "4"}  # the least frequent; 0 is optimal
    assert colors["0"] == BLUE


def test_bars_are_shares_with_their_intervals_most_frequent_first():
    (axes,) = maps.plots.basin_shares_figure(shares([10, 30, 60], ["0", "1,2"])).axes
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [bar.get_width() for bar in bars] == pytest.approx([0.3, 0.1, 0.6])
    assert bars[2].get_hatch() and not bars[0].get_hatch()
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["tokens 1,2, locally optimal", "token 0, globally optimal", "not settled"]
    ends = [line.get_segments()[0][:, 0].tolist() for line in axes.collections]
    assert ends[0] == pytest.approx([0.27, 0.37])


def test_rare_selections_share_a_bar():
    counted = shares([100] + [1] * 12 + [0], [str(i) for i in range(13)])
    (axes,) = maps.plots.basin_shares_figure(counted).axes
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert len(labels) == 11 and labels[-1] == "3 other selections"
    assert axes.patches[-1].get_width() == pytest.approx(3 / 112)


@pytest.mark.long
def test_figures_can_be_saved(plane, tmp_path):
    with plots.style():
        plots.save_figure(maps.plots.basin_map_figure(plane), tmp_path, "map")
        figure = maps.plots.basin_shares_figure(shares([10, 30, 0], ["0", "1"]))
        plots.save_figure(figure, tmp_path, "shares")
    assert {path.name for path in tmp_path.iterdir()} == {
        "map.png", "map.svg", "shares.png", "shares.svg",
    }  # fmt: skip
    assert "Wilson" in figure.get_supxlabel()
