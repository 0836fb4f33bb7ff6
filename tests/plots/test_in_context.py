import numpy as np
import pytest
import xarray as xr

from attractor import plots, prompts

LENGTHS = [64.0, 256.0, np.inf]


@pytest.fixture
def data():
    """Three runs of two seeds, made up."""
    steps = np.array([0, 1, 10, 100])
    curve = np.exp(-steps / 50)[None, None] * np.array([[[3.0]], [[2.0]], [[1.0]]])
    risk = np.repeat(curve, 2, axis=1)
    heads = {name: (("run", "seed", "step", "head"), k * risk[..., None])
             for k, name in enumerate(("value_label", "key_query_norm", "balance"))}  # fmt: skip
    return xr.Dataset(
        {"risk": (("run", "seed", "step"), risk), **heads},
        {
            "step": steps,
            "attention": ("run", ["softmax", "linear", "softmax"]),
            "length": ("run", LENGTHS),
            "verdict": ("run", ["on the plateau: unfinished", "settled", "settled"]),
        },
    )


def test_a_curve_for_each_length_and_the_flow_over_it(data):
    times = np.array([0.0, 0.5, 1.0])
    flow = xr.Dataset(
        {name: ("time", times) for name in
         ("risk", "value_label", "key_query_norm", "balance")}, {"time": times}
    )  # fmt: skip
    with plots.style():
        figure = prompts.plots.lengths_figure(data, time_of_step=0.01, flow=flow)
    risk = figure.axes[0]
    assert len(risk.lines) == 4
    np.testing.assert_allclose(risk.lines[0].get_xdata(), [0.01, 0.1, 1.0])  # no place for step 0
    np.testing.assert_allclose(risk.lines[1].get_ydata(), data["risk"][1, 0, 1:])
    assert risk.lines[1].get_linestyle() == "--"
    np.testing.assert_allclose(risk.lines[3].get_ydata(), times)
    labels = [text.get_text() for text in figure.legends[0].texts]
    assert labels == ["64 tokens", "256 tokens", "infinite prompts", "linear",
                      "flow, infinite prompts"]  # fmt: skip


def test_unfinished_runs_are_hollow(data):
    references = xr.Dataset(
        {"linear": ("length", [0.5, 0.2]), "ridge": ("length", [0.1, 0.05])},
        {"length": [64, 256]},
    )
    with plots.style():
        figure = prompts.plots.experiment_figure(data, references, 0.1)
    marks = {line.get_label(): line for line in figure.axes[0].lines}
    hollow, filled = marks["softmax, unfinished"], marks["linear, settled"]
    assert hollow.get_markerfacecolor() == "white" != filled.get_markerfacecolor()
    assert hollow.get_xdata().tolist() == [64]  # the infinite one has no place on the axis
    np.testing.assert_allclose(hollow.get_ydata(), 2 * data["risk"][0, 0, -1] + 0.1)
    np.testing.assert_allclose(marks["ridge regression"].get_ydata(), [0.3, 0.2])
    with plots.style():
        noiseless = prompts.plots.experiment_figure(data, references * 0, 0.0)
    assert "ridge regression" not in {line.get_label() for line in noiseless.axes[0].lines}
