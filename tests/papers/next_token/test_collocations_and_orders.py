"""The illustration of a corpus: that of the paper, and a user's own."""

import numpy as np
import pytest

from attractor.papers import get_figure
from attractor.papers.drawing import compute, draw
from attractor.plots import style
from attractor.support.errors import InvalidInputError

FIGURE = get_figure("next-token/collocations-and-orders")


def words_of(figure):
    """The words in boxes, panel by panel."""
    return [[text.get_text() for text in axes.texts] for axes in figure.axes]


def test_the_example_has_the_collocation_and_the_orders_of_the_paper():
    data, _ = compute(FIGURE)
    names = data["token"].values
    follows = dict(zip(names, names[data["follower"].values], strict=True))
    assert follows == {"dogs": "chase", "chase": "cats", "cats": ".", ".": "dogs"}
    orders = {tuple(names[relation]) for relation in data["relation"].values}
    assert orders == {
        ("dogs", "dogs", "."),
        ("chase", "chase", "dogs"),
        ("cats", "cats", "dogs"),
        ("cats", "cats", "chase"),
        (".", "cats", "."),
    }
    assert all(reading.agrees for reading in FIGURE.readings(data))


def test_it_draws_every_token_in_its_class():
    data, _ = compute(FIGURE)
    with style():
        figure = FIGURE.draw(data)
    sentences, chain, *queries = words_of(figure)
    assert sentences == "dogs chase cats . chase cats . cats . . . dogs chase".split()
    assert chain == ["dogs", "chase", "cats", ".", "dogs"]
    # contexts with what follows, then the order from the top down, then what is in no relation
    assert queries[0] == [*". dogs chase".split(), "dogs", ".", "chase", "cats"]
    assert queries[2] == [*"chase cats .".split(), *"dogs chase cats .".split(),
                          "cats", "dogs", "chase", "."]  # fmt: skip
    for axes in figure.axes[2:]:
        width, height = axes.get_xlim()[1], axes.get_ylim()[1]
        for text in axes.texts:
            assert 0 < text.get_position()[0] < width and 0 < text.get_position()[1] < height


def test_a_corpus_of_the_user_is_drawn_with_what_the_theory_does_not_explain(tmp_path):
    file = tmp_path / "corpus.txt"
    animals = " ".join(f"animal{number:02}" for number in range(20))
    file.write_text(f"costs $5\n$5 now\nnow\nit costs $5 now\n{animals} costs $5 now\nnow costs\n")
    drawn = draw(FIGURE, tmp_path / "figures", source=file)
    agrees = {reading.text.split(":")[0]: reading.agrees for reading in drawn.readings}
    assert not agrees["collocation"]
    with style():
        figure = FIGURE.draw(drawn.data)
    every = [word for words in words_of(figure) for word in words]
    assert "\N{HORIZONTAL ELLIPSIS}" in every  # a context that is too long
    assert any(word.startswith("+") for word in every)
    assert any(r"\$5" in axes.get_title(loc="left") for axes in figure.axes)
    classes = np.unique(drawn.data["relation"].sel(role="query"))
    assert set(classes) == set(drawn.data["query"].values)


def test_a_corpus_without_relations_says_what_is_missing(tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_text("a b\nc d\n")
    with pytest.raises(InvalidInputError, match="no context has a token that explains"):
        compute(FIGURE, source=file)
