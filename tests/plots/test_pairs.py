import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attractor import InvalidInputError, plots


def draw(height):
    def panel(axes):
        axes.plot([0, 1], [0, height], label="curve")
        axes.set(xlabel="iteration", ylabel="loss")

    return panel


def test_exact_and_as_published_share_their_axes():
    left, right = plots.beside(Figure(), draw(1), draw(5), subject="training", letters="cd")
    assert left.get_title("left") == r"$\mathbf{(c)}$ training, exact"
    assert right.get_title("left") == r"$\mathbf{(d)}$ training, as published"
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylabel() == "loss" and right.get_ylabel() == ""
    assert left.get_xlim() == right.get_xlim()
    assert left.lines[0].get_ydata()[1] == 1 and right.lines[0].get_ydata()[1] == 5


def test_without_subject_or_letters_titles_are_short():
    left, right = plots.beside(Figure(), draw(1), draw(2))
    assert (left.get_title("left"), right.get_title("left")) == ("exact", "as published")


def test_rows_of_pairs_stand_in_subfigures():
    rows = Figure().subfigures(2, 1)
    panels = [axes for row in rows for axes in plots.beside(row, draw(1), draw(2))]
    assert len(panels) == 4


def test_panel_letters_come_before_titles_or_alone():
    with plots.style():
        first, second, third = Figure().subplots(1, 3)
        second.set_title("norm")
        plots.panel_letters((first, second, third))
    assert first.get_title("left") == r"$\mathbf{(a)}$"
    assert second.get_title("left") == r"$\mathbf{(b)}$ norm"
    assert third.get_title("left") == r"$\mathbf{(c)}$"


def test_the_legend_has_every_entry_once():
    figure = Figure()
    panels = plots.beside(figure, draw(1), draw(2))
    extra = Line2D([], [], label="optimal token")
    legend = plots.shared_legend(figure, panels, handles=[extra])
    assert [text.get_text() for text in legend.get_texts()] == ["curve", "optimal token"]


def test_a_legend_wider_than_the_figure_is_broken_and_read_row_by_row():
    with plots.style():
        figure = Figure(figsize=(3.3, 2))
        axes = figure.subplots()
        names = [f"a rather long name {i}" for i in range(5)]
        for name in names:
            axes.plot([0, 1], label=name)
        legend = plots.shared_legend(figure, [axes])
        figure.draw_without_rendering()
    assert legend.get_window_extent().width <= figure.bbox.width
    assert len(figure.legends) == 1
    places = {
        text.get_text(): (-round(text.get_window_extent().y0), text.get_window_extent().x0)
        for text in legend.get_texts()
    }
    assert sorted(places, key=places.__getitem__) == names


def test_a_legend_of_nothing_is_refused():
    figure = Figure()
    with pytest.raises(InvalidInputError, match="panels"):
        plots.shared_legend(figure, [figure.subplots()])
