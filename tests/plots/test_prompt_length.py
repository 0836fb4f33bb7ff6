import numpy as np
import pytest

from attractor import plots, prompts
from attractor.prompts import AttentionHead, Gaussian, Rademacher
from attractor.prompts.length import prompt_length

ONE = AttentionHead(np.eye(1), np.eye(1))


@pytest.mark.parametrize(("law", "curves"), [(Gaussian.isotropic(1), 1), (Rademacher(1), 2)])
def test_errors_of_half_of_the_queries_are_drawn_by_length(law, curves):
    data = prompt_length(ONE, law, np.array([[-1.0], [1.0], [2.0]])).to_xarray()
    with plots.style():
        figure = prompts.plots.error_by_length_figure(data, 0.1)
    left, right = figure.axes
    np.testing.assert_array_equal(left.lines[0].get_ydata(), data["error"].sel(quantile=0.5))
    np.testing.assert_array_equal(right.lines[0].get_ydata(), data["output_error"][1])
    assert len(right.lines) == curves + 1 and set(right.lines[-1].get_ydata()) == {0.1}
    assert left.get_xscale() == left.get_yscale() == "log"
