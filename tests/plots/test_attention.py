import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from attractor import plots


def test_predicted_tokens_are_ringed_on_their_cell():
    axes = Figure().subplots()
    weights = xr.DataArray(np.eye(3, 4), dims=("sequence", "token"))
    plots.attention_map(axes, weights, xr.DataArray([0, -1, 2], dims="sequence"))
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), [[0, 0], [2, 2]])
    np.testing.assert_array_equal(axes.images[0].get_array(), np.eye(3, 4))


def test_long_data_sets_are_cut_to_what_can_be_read():
    axes = Figure().subplots()
    weights = xr.DataArray(np.full((100, 5), 0.2), dims=("sequence", "token"))
    plots.attention_map(axes, weights, xr.DataArray(np.zeros(100, int), dims="sequence"))
    assert axes.images[0].get_array().shape == (24, 5)
    assert len(axes.lines[0].get_xydata()) == 24
