import numpy as np
import pytest

from attractor.heads import HeadMonitor, WatchedHead
from attractor.heads.plots import heads_figure


@pytest.fixture(scope="module")
def records():
    """Two heads at four steps, one of which was not measured once."""
    rng = np.random.default_rng(0)
    probe = rng.normal(size=(4, 5, 6)), rng.normal(size=(4, 6))
    heads = [WatchedHead(name, lambda W: W, probe) for name in ("first", "second")]
    monitor = HeadMonitor(heads, every=1, budget=None)
    for step in range(4):
        monitor(step, rng.normal(size=(6, 6)))
    data = monitor.to_xarray()
    data["margin_ratio"][1, 0] = np.nan  # as where a record was postponed
    return data


def test_every_head_has_a_curve_in_every_panel(records):
    figure = heads_figure(records)
    weight, ratio, norm, changes = figure.axes
    np.testing.assert_allclose(
        weight.lines[0].get_ydata(),
        records["selected_probability"][:, 0].mean(("sequence", "query")),
    )
    assert ratio.lines[0].get_xdata().tolist() == [0, 2, 3]
    assert ratio.lines[1].get_xdata().tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(norm.lines[1].get_ydata(), records["norm"].values[:, 1])
    assert norm.get_yscale() == "log"
    assert changes.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["first", "second"]


def overlapping(figure):
    """Labels of axes that lie on another text once a figure is drawn."""
    figure.draw_without_rendering()
    labels = [label for axes in figure.axes for label in (axes.xaxis.label, axes.yaxis.label)]
    others = [tick for axes in figure.axes for tick in axes.get_yticklabels()]
    others += [text for legend in figure.legends for text in legend.get_texts()]
    seen = {text: text.get_window_extent() for text in labels + others if text.get_text()}
    return [
        (one.get_text(), other.get_text())
        for one in labels
        for other in seen
        if one in seen and one is not other and seen[one].overlaps(seen[other])
    ]


@pytest.mark.parametrize("heads", [1, 8, 72])
def test_nothing_lies_on_anything_else_however_many_heads_there_are(records, heads):
    chosen = records.isel(head=np.arange(heads) % 2)
    chosen["head"] = [f"{place // 12}.{place % 12}" for place in range(heads)]
    figure = heads_figure(chosen)
    assert overlapping(figure) == []
    if heads > 8:
        shown = figure.axes[1].images[0].get_array()
        assert shown.shape == (heads, 4)
        assert shown.mask[::2, 1].all() and not shown.mask[1::2].any()
        names = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
        assert names[:3] == ["0.0", "0.3", "0.6"]
