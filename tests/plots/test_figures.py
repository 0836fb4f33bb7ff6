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
