import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from attractor import plots
from attractor.errors import InvalidInputError
from attractor.margin import MarginProblem, solve
from attractor.selection import Selection
from attractor.tokens import Tokens


@pytest.fixture
def data(rng):
    tokens = Tokens(rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 5)))
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, [1, 0, 3]))
    return solve(problem).sensitivity().to_xarray()


def test_cells_are_lengths_of_derivatives_and_selected_tokens_are_ringed(data):
    axes = Figure().subplots()
    plots.sensitivity_map(axes, data)
    expected = np.sqrt((data["keys"].values ** 2).sum(-1))
    np.testing.assert_allclose(axes.images[0].get_array(), expected)
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), [[1, 0], [0, 1], [3, 2]])


def test_figure_names_its_scale_and_says_when_derivatives_are_one_sided(data, tmp_path):
    with plots.style():
        figure = plots.sensitivity_figure(data)
        plots.save_figure(figure, tmp_path, "sensitivity")
    assert "norm" in figure.axes[1].get_ylabel()
    assert figure.axes[0].get_title() == ""
    kinked = plots.sensitivity_figure(data.assign(differentiable=xr.DataArray(False)))
    assert "one-sided" in kinked.axes[0].get_title(loc="left")


def test_long_data_sets_are_cut_and_say_so(rng):
    tokens = Tokens(rng.normal(size=(30, 3, 40)), rng.normal(size=(30, 40)))
    problem = MarginProblem.from_selection(tokens, Selection.from_index(tokens, np.zeros(30, int)))
    figure = plots.sensitivity_figure(solve(problem).sensitivity().to_xarray())
    assert figure.axes[0].images[0].get_array().shape == (24, 3)
    assert figure.axes[0].get_title(loc="left") == "first 24 of 30 sequences"


def test_data_without_one_set_of_tokens_are_refused(data):
    bare = solve(MarginProblem(np.eye(2), np.eye(2))).sensitivity().to_xarray()
    infeasible = data.assign(keys=data["keys"] * np.nan)
    for wrong in (bare, data.expand_dims("instance"), infeasible):
        with pytest.raises(InvalidInputError, match="data"):
            plots.sensitivity_map(Figure().subplots(), wrong)
