import numpy as np

from attractor.monitor import HeadMonitor, WatchedHead
from attractor.plots import style
from attractor.plots.heads import heads_figure


def test_every_head_has_a_curve_in_every_panel():
    rng = np.random.default_rng(0)
    probe = rng.normal(size=(4, 5, 6)), rng.normal(size=(4, 6))
    heads = [WatchedHead(name, lambda W: W, probe) for name in ("first", "second")]
    monitor = HeadMonitor(heads, every=1, budget=None)
    for step in range(4):
        monitor(step, rng.normal(size=(6, 6)))
    data = monitor.to_xarray()
    data["margin_ratio"][1, 0] = np.nan  # as where a record was postponed
    with style():
        figure = heads_figure(data)
        figure.draw_without_rendering()
    ratio, norm, changes = figure.axes
    assert ratio.lines[0].get_xdata().tolist() == [0, 2, 3]
    assert ratio.lines[1].get_xdata().tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(norm.lines[1].get_ydata(), data["norm"].values[:, 1])
    assert changes.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["first", "second"]
