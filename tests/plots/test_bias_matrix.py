import numpy as np
import pytest
import xarray as xr
from matplotlib.patches import Rectangle

from attractor import maps, plots
from attractor.maps import BiasMatrix

NORMS = ["frobenius", "l_inf", "schatten_1.5"]


@pytest.fixture
def matrix():
    """Two optimizers, one of them with fewer steps recorded and no norm of its own."""
    random = np.random.default_rng(0)
    ends = np.array([[0.98, 0.5, 0.7], [0.3, 0.4, 0.6]])[..., None]
    curves = ends[..., None] - random.uniform(0, 0.02, (2, 3, 6, 1)) - 0.5 / np.arange(1, 6)
    steps = np.tile(10.0 ** np.arange(5), (2, 1))
    steps[1, :2], curves[1, ..., :2] = np.nan, np.nan
    dims = ("optimizer", "norm", "instance")
    return BiasMatrix(
        xr.Dataset(
            {
                "margin_ratio": (dims, curves[..., -1]),
                "margin_ratio_halfway": (dims, curves[..., -2]),
                "trained": (("optimizer", "instance"), np.ones((2, 6), bool)),
                "movement": (("optimizer", "instance"), np.full((2, 6), 0.05)),
                "margin_ratio_curve": ((*dims, "record"), curves),
                "step": (("optimizer", "record"), steps),
                "own_norm": ("optimizer", ["frobenius", ""]),
                "compared": ("norm", [True, True, False]),
            },
            {"optimizer": ["first", "second"], "norm": NORMS, "instance": np.arange(6)},
        )
    )


def test_every_median_is_printed_and_the_own_norm_outlined(matrix, tmp_path):
    with plots.style():
        figure = maps.plots.bias_matrix_figure(matrix)
        plots.save_figure(figure, tmp_path, "matrix")
    axes = figure.axes[0]
    ratios = matrix.data["margin_ratio"]
    texts = [text.get_text() for text in axes.texts if text.get_text()]
    medians, ends = ratios.median("instance").values.ravel(), np.sort(ratios.values).reshape(6, 6)
    assert texts[::2] == [f"{value:.3f}" for value in medians]
    # Of six values with 95 %: the smallest and the largest
    assert texts[1::2] == [f"{one[0]:.3f} to {one[-1]:.3f}" for one in ends]
    squares = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    (outline,) = [one for one in squares if not one.get_hatch()]
    np.testing.assert_allclose(outline.get_center(), [0, 0], atol=1e-12)
    assert len(squares) == 7  # the ratios still rise: all are hatched
    assert (tmp_path / "matrix.png").stat().st_size > 5000


def test_a_panel_for_each_optimizer_with_its_own_steps(matrix):
    with plots.style():
        figure = maps.plots.ratio_curves_figure(matrix)
    first, second = figure.axes
    assert (first.get_title(loc="left"), second.get_title(loc="left")) == ("first", "second")
    assert [len(line.get_xdata()) for line in first.lines] == [5, 5]
    assert [len(line.get_xdata()) for line in second.lines] == [3, 3]
    thick = [max(axes.lines, key=lambda line: line.get_linewidth()) for axes in (first, second)]
    medians = matrix.data["margin_ratio_curve"].median("instance")
    for line, number, norm in zip(thick, (0, 1), ("frobenius", "l_inf"), strict=True):
        expected = medians.sel(norm=norm)[number].values
        np.testing.assert_allclose(line.get_ydata(), expected[np.isfinite(expected)])


def test_a_ratio_that_is_not_defined_is_drawn_as_a_dash(matrix):
    matrix.data["margin_ratio"][1, 1] = np.nan
    with plots.style():
        figure = maps.plots.bias_matrix_figure(matrix)
    assert "-" in [text.get_text() for text in figure.axes[0].texts]
