import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor import plots


def test_patches_are_drawn_where_their_pixels_are():
    axes = Figure().subplots()
    plots.image_with_patches(axes, np.zeros((8, 8)), predicted=0, reached=6, grid=4)
    reached, predicted = axes.patches
    assert reached.get_xy() == (3.5, 1.5)  # patch 6: row 1, column 2; pixels are centered
    assert (reached.get_width(), reached.get_height()) == (2, 2)
    assert predicted.get_linestyle() != reached.get_linestyle()


def test_frequencies_are_percent_of_images():
    axes = Figure().subplots()
    plots.patch_frequency(axes, xr.DataArray([0, 0, 0, 3], dims="image"), 2, most=1.0)
    assert [text.get_text() for text in axes.texts] == ["75", "0", "0", "25"]
