import numpy as np
import pytest
from matplotlib.figure import Figure

from attractor import plots
from attractor.support.errors import InvalidInputError

IMAGES, NUMBERS = [np.zeros((2, 4, 4)), np.zeros((3, 4, 4))], [[0, 1], [0, 1, 2]]


@pytest.fixture
def axes():
    return Figure().subplots()


def draw_patches(**changes):
    names = ["small", "large"]
    given = {"images": IMAGES, "predicted": NUMBERS, "reached": NUMBERS, "row_names": names}
    return plots.patches_figure(grid=2, **(given | changes))


def test_lists_of_arrays_go_side_by_side_row_by_row():
    assert len(draw_patches().axes) == 6
    with pytest.raises(InvalidInputError, match=r"^predicted: the shape is \(1,\). Give \(2,\)"):
        draw_patches(predicted=NUMBERS[:1])
    with pytest.raises(InvalidInputError, match=r"^reached: the shape is \(2,\). Give \(3,\)"):
        draw_patches(reached=[[0, 1], [0, 1]])
    with pytest.raises(InvalidInputError, match=r"^row_names: "):
        draw_patches(row_names=["small"])
    with pytest.raises(InvalidInputError, match=r"^reached: .* Give integers from 0 to 3"):
        draw_patches(reached=[[0, 4], [0, 1, 2]])


def test_a_function_that_two_packages_offer_is_checked_once():
    assert plots.frame is plots.plane.frame
    assert not hasattr(
        plots.frame.__wrapped__.__wrapped__, "__wrapped__"
    )  # own settings, and checks


def test_a_generator_is_read_once(axes):
    panels = [*Figure().subplots(1, 2)]
    plots.panel_letters(panel for panel in panels)
    assert all(panel.get_title(loc="left") for panel in panels)
    axes.plot([0, 1], label="curve")
    legend = plots.shared_legend(axes.figure, (panel for panel in [axes]))
    assert [text.get_text() for text in legend.get_texts()] == ["curve"]
    with pytest.raises(InvalidInputError, match=r"^panels: "):
        plots.panel_letters(panel for panel in ["no panel"])


@pytest.mark.parametrize(
    ("argument", "value", "right"),
    [
        ("values", None, "DataArray"),
        ("label", 3, "str"),
        ("axes", Figure(), "Axes"),
    ],
)
def test_what_is_of_no_kind_is_named_with_what_would_be(axes, argument, value, right):
    with pytest.raises(InvalidInputError, match=f"^{argument}: .*Give .*{right}"):
        given = {"axes": axes, "values": _rate().data["values"]}
        plots.band_curve(**(given | {argument: value}))


@pytest.mark.parametrize("look", [{}, {"color": "red", "hue": 3}, {"linewidth": 2}])
def test_a_look_is_properties_of_a_line(axes, look):
    with pytest.raises(InvalidInputError, match=r"^look: .* color"):
        plots.band_curve(axes, _rate().data["values"], look=look)


def _rate():
    from attractor.analysis.rates import fit_rate

    steps = np.arange(1, 101)
    return fit_rate(steps, np.stack([1 / steps, 2 / steps]))
