import numpy as np
import pytest
from made_audit import made_audit, made_control, made_curves

from attractor import plots
from attractor.heads import plots as head_plots
from attractor.heads.audit.result import BEATS_NULLS, by_clearness, heads, name


def draw(figure, audit):
    with plots.style():
        return figure(audit.data)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_the_map_shows_every_head():
    audit = made_audit(3, 5)
    axes = draw(head_plots.audit_map_figure, audit).axes[0]
    found = heads(audit.data)
    numbers = [text for text in texts(axes) if text.startswith((".", "1"))]
    assert len(numbers) == sum(one["accuracy"] is not None for one in found) == 14
    assert f"{found[0]['accuracy']:.2f}".removeprefix("0") == numbers[0]
    assert "offset -1" in texts(axes) and "-" in texts(axes)
    framed = [patch for patch in axes.patches if not patch.get_fill()]
    assert len(framed) == sum(one["learnable"] in BEATS_NULLS for one in found)
    shade = axes.images[0].get_array()
    assert shade.mask.sum() == 1 and shade.shape == (3, 5)


def test_letters_on_dark_cells_are_white():
    axes = draw(head_plots.audit_map_figure, made_audit(3, 5)).axes[0]
    number = next(text for text in axes.texts if text.get_text() == ".97")
    assert number.get_color() == "white"


@pytest.mark.parametrize(("shape", "written"), [((1, 1), 2), ((2, 16), 32), ((2, 40), 0)])
def test_numbers_and_words_are_written_where_there_is_room(shape, written):
    axes = draw(head_plots.audit_map_figure, made_audit(*shape)).axes[0]
    assert len(texts(axes)) == written


def test_heads_that_were_not_audited_stay_white():
    audit = made_audit(2, 3)
    audit.data["capture"][0, 1] = ""
    axes = draw(head_plots.audit_map_figure, audit).axes[0]
    white = [patch for patch in axes.patches if patch.get_facecolor()[:3] == (1, 1, 1)]
    assert any(patch.get_xy() == (0.5, -0.5) for patch in white)


def test_dots_stand_in_the_order_of_clearness_before_their_bands():
    audit = made_audit(2, 4)
    axes = draw(head_plots.audit_accuracy_figure, audit).axes[0]
    ordered = [one for one in by_clearness(heads(audit.data)) if one["accuracy"] is not None]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(map(name, ordered))
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(
        [dot.get_ydata()[0] for dot in dots], [o["accuracy"] for o in ordered]
    )
    filled = [dot.get_markerfacecolor() != "white" for dot in dots]
    assert filled == [one["learnable"] in BEATS_NULLS for one in ordered]
    band = axes.collections[0].get_segments()[0][:, 1]
    one = ordered[0]
    draws = audit.data["accuracy_null"].sel(layer=one["layer"], head=one["head"], null="rotation")
    np.testing.assert_allclose(band, [draws.min(), draws.max()])


def test_the_control_counts_what_was_found():
    control = made_control()
    figure = head_plots.margin_control_figure(control)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts] == [
        "24 of 24 found", "23 of 24 found", "0 of 24 found",
    ]  # fmt: skip
    dots = [line for line in axes.get_lines() if line.get_marker() in ("o", "D")]
    np.testing.assert_array_equal(
        np.sort(dots[0].get_xdata()), np.sort(control["margin_ratio"][0, :, 0])
    )
    assert len(dots) == 6


def test_without_any_test_pictures_are_drawn():
    left = ["accuracy", "accuracy_low", "accuracy_high", "accuracy_null", "p", "p_together", "q"]
    audit = made_audit(1, 2)
    bare = audit.data.drop_vars(left)
    with plots.style():
        assert not [
            t for t in texts(head_plots.audit_map_figure(bare).axes[0]) if t.startswith(".")
        ]
        assert len(head_plots.audit_accuracy_figure(bare).axes) == 1


def test_curves_stand_before_their_bands_a_panel_a_head():
    curves = made_curves([(3, 6, 12)] * 6 + [(4, 8, 16)])
    with plots.style():
        figure = head_plots.audit_curves_figure(curves)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert len(shown) == 7 and len(figure.axes) == 8
    assert [axes.get_title(loc="left") or axes.get_title() for axes in shown][:2] == [
        "0.0  learnable", "0.1  not told apart",
    ]  # fmt: skip
    for place, axes in enumerate(shown):
        one = curves.isel(curve=place)
        head = next(line for line in axes.lines if line.get_marker() == "o")
        np.testing.assert_allclose(
            head.get_xydata(), np.stack([one["documents"], one["accuracy"]], 1)
        )
        band = axes.collections[0].get_paths()[0].get_extents()
        assert band.y0 == pytest.approx(float(one["accuracy_null"].min()))
        assert band.y1 == pytest.approx(float(one["accuracy_null"].max()))
        heights = {round(float(line.get_ydata()[0]), 6) for line in axes.lines}
        assert {0.05, 0.12, 0.15} < heights
        wanted = [str(count) for count in one["documents"].to_numpy()]
        assert [label.get_text() for label in axes.get_xticklabels()] == wanted
    below = [bool(axes.get_xlabel()) for axes in shown]
    assert below == [False] * 3 + [True] * 4


@pytest.mark.parametrize("count", [1, 2, 5, 6, 10])
def test_panels_fill_their_rows(count):
    with plots.style():
        figure = head_plots.audit_curves_figure(made_curves([(3, 6, 12)] * count))
    assert len(figure.axes) == count
