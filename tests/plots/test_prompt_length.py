import numpy as np
import pytest

from attractor import plots
from attractor.prompt import AttentionHead, Gaussian
from attractor.prompt.length import error_quantiles, phase_diagram, prompt_length, required_length


@pytest.fixture(scope="module")
def found():
    queries = np.array([[-1.0], [1.0], [1.0], [2.0], [2.0]])
    return prompt_length(AttentionHead(np.eye(1), np.eye(1)), Gaussian.isotropic(1), queries)


def test_lengths_that_reach_the_error_are_marked(found):
    with plots.style():
        data = error_quantiles(found, np.geomspace(1, 1e6, 121))
        figure = plots.error_by_length_figure(data, 0.1)
    left = figure.axes[0]
    marks = [line.get_xdata()[0] for line in left.lines if line.get_marker() in "os"]
    np.testing.assert_allclose(marks, required_length([1, 2], 0.1), rtol=1e-3)
    assert [text.get_text() for text in left.texts] == ["530", "3,200"]
    assert left.get_xscale() == left.get_yscale() == "log"


def test_the_head_is_marked_in_the_phase_diagram(found):
    with plots.style():
        data = phase_diagram(found, np.geomspace(0.1, 4, 5), np.geomspace(1, 1e5, 11))
        figure = plots.prompt_phase_figure(
            data, horizon=found.horizon, error=0.1, lengths=[100, 1e9]
        )
    axes = figure.axes[0]
    dots = next(line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_array_equal(dots.get_xydata(), [[100, 1]])
    assert axes.get_ylim() == pytest.approx((0.1 / found.horizon, 4 / found.horizon))
    assert {0.1, 0.2, 0.5, 1, 2} <= {float(f"{tick:.3g}") for tick in axes.get_yticks()}


def test_the_histogram_counts_every_query(found):
    with plots.style():
        axes = plots.score_deviation_figure(found.score_deviation).axes[0]
    assert sum(bar.get_height() for bar in axes.patches) == 5
    assert axes.texts[0].get_text() == "median 1"
    with plots.style():
        plots.score_deviation_figure(np.zeros(3))
