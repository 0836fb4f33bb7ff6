import numpy as np

from attractor import plots


def texts(figure):
    return [figure.get_supxlabel(), *(text.get_text() for text in figure.texts)]


def test_several_runs_share_a_legend(data):
    figure = plots.direction_figure({"n = 6": data, "n = 12": data})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["n = 6", "n = 12"]
    assert len(figure.axes) == 4


def test_the_note_counts_trials_without_a_solution(data):
    partly = data.assign(margin_ratio=data.margin_ratio.where(data.instance >= 10))
    assert any(
        "40 trials, of which 30" in text for text in texts(plots.direction_figure({"": partly}))
    )
    one = data.isel(instance=[0])
    assert plots.training_figure({"": one}).get_supxlabel() == "one trial"


def test_patches_are_drawn_where_their_pixels_are():
    given = {"images": [np.zeros((1, 8, 8))], "predicted": [[0]], "reached": [[6]]}
    (axes,) = plots.patches_figure(**given, grid=4, row_names=["one"]).axes
    reached, predicted = axes.patches
    assert reached.get_xy() == (3.5, 1.5)  # patch 6: row 1, column 2; pixels are centered
    assert (reached.get_width(), reached.get_height()) == (2, 2)
    assert predicted.get_linestyle() != reached.get_linestyle()
