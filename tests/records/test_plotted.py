import re
from pathlib import Path

import pytest

import attractor
from attractor import plots
from attractor.records import Plotted

SOURCE = Path(attractor.__file__).parent


class Drawn(Plotted):
    def _picture(self):
        return "score_deviation_figure", [0.5, 1.0]


def test_a_result_draws_what_it_names_with_options_of_that_function():
    figure = Drawn().plot()
    assert figure.axes[0].get_xlabel().startswith("standard deviation")
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
    assert named <= set(plots.__all__)
