import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import attractor
from attractor import corpora, heads, maps, plots, prompts
from attractor.results import Plotted

SOURCE = Path(attractor.__file__).parent


class Drawn(Plotted):
    _plots = "attractor.prompts.plots"

    def _picture(self):
        lengths = np.geomspace(1, 1e4, 5)
        error = ("quantile", "length"), np.ones((3, 5))
        return "error_by_length_figure", xr.Dataset(
            {"error": error, "output_error": error}, {"length": lengths}
        )


def test_a_result_draws_what_it_names_with_options_of_that_function():
    figure = Drawn().plot()
    assert figure.axes[0].get_xlabel().startswith("tokens in the prompt")
    with pytest.raises(TypeError, match="color"):
        Drawn().plot(color="red")


def test_results_name_functions_that_draw():
    pattern = re.compile(r'"(\w+_figure)"')
    named = {
        name
        for path in SOURCE.rglob("*.py")
        if "plots" not in path.parts
        for name in pattern.findall(path.read_text())
    }
    assert {"solution_figure", "trajectory_figure", "heads_figure", "bias_matrix_figure"} <= named
    rooms = (plots, *(room.plots for room in (corpora, heads, maps, prompts)))
    assert named <= {name for room in rooms for name in room.__all__}
