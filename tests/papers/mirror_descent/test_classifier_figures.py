"""Figures of trained classifiers, drawn from made-up numbers."""

import numpy as np
import pytest
import xarray as xr

from attractor.papers.ledger.packs import get_figure
from attractor.papers.mirror_descent.classifiers.experiment import CONTENDERS

NAMES = [*CONTENDERS]
SIZES = {
    "optimizer": len(NAMES), "seed": 3, "epoch": 4, "try": 3, "matrix": 3, "block": 2, "bin": 60,
    "compared": 4,
}  # fmt: skip
BY_SEED = ("optimizer", "seed")
VARIABLES = {
    "test_accuracy": BY_SEED,
    "validation_accuracy": (*BY_SEED, "epoch"),
    "tried_rate": ("optimizer", "try"),
    "tried_accuracy": ("optimizer", "try"),
    "hoyer": (*BY_SEED, "matrix", "block"),
    "share_of_weights": (*BY_SEED, "matrix", "bin"),
    "attention": (*BY_SEED, "block"),
    "attention_by_frequency": (*BY_SEED, "block"),
    "attention_by_chance": BY_SEED,
    "rescaled_attention": BY_SEED,
}


def made_up(*models):
    rng = np.random.default_rng(0)
    sizes = SIZES | {"model": len(models)}
    all_of = VARIABLES | {"accuracy_by_model": ("model", "compared", "seed")}
    variables = {
        name: (over, rng.random([sizes[each] for each in over]) / 2 + 0.3)
        for name, over in all_of.items()
    }
    variables["at_edge"] = ("optimizer", [False] * len(NAMES))
    variables["learning_rate"] = ("optimizer", variables["tried_rate"][1][:, 1])
    coordinates = {
        "optimizer": NAMES, "seed": range(3), "epoch": range(1, 5), "block": [1, 2],
        "matrix": ["queries", "keys", "values"], "bin": 0.01 * np.arange(60),
        "compared": NAMES[:4], "model": list(models),
    }  # fmt: skip
    attributes = {"chance": 0.5, "test_examples": 2000, "images": "digits"}
    return xr.Dataset(variables, coordinates, attributes)


@pytest.mark.parametrize("models", [("width 16", "width 32"), ("2 blocks",)])
def test_accuracy_by_size_is_shown_where_there_are_several(models):
    figure, data = get_figure("mirror-descent/text-generalization"), made_up(*models)
    panels = figure.draw(data).axes
    assert len(panels) == 2 + len(models)
    words = figure.caption(data)
    assert ("By size of the model: width 16 p = 1.1" in words) == (len(models) > 1)
    assert f"({'c' if len(models) > 1 else 'b'}; rings: chosen" in words


def test_the_published_reading_is_drawn_hollow_beside_the_other():
    figure, data = get_figure("mirror-descent/text-generalization"), made_up("2 blocks")
    data["as_published_accuracy"] = data["test_accuracy"] + 0.01
    (legend,) = figure.draw(data).legends
    assert {"chosen by validation", "highest of all epochs on the test set", *NAMES} == {
        words.get_text() for words in legend.get_texts()
    }
    assert "Hollow: the published reading" in figure.caption(data)


@pytest.mark.parametrize(
    ("name", "panels"), [("text-selection", 3), ("weight-sparsity", 6), ("vision", 6)]
)
def test_every_optimizer_has_its_place(name, panels):
    figure, data = get_figure(f"mirror-descent/{name}"), made_up("2 blocks")
    drawn = figure.draw(data).axes
    assert len(drawn) == panels
    labels = {label.get_text() for axes in drawn for label in axes.get_xticklabels()}
    assert set(NAMES) <= labels
    assert all(each in figure.caption(data) for each in ("p = 1.1", "Muon"))


def sentences(share, top):
    """Two sentences of three words; how much attention the telling words get, by optimizer.

    The third model of p = 3 is at chance and attends to nothing else than the telling word.
    """
    attention = np.full((3, 3, 2, 3), np.nan)
    attention[..., 0, :2] = 0.1
    attention[..., 0, 2] = np.array(share)[:, None]
    attention[..., 1, :] = top
    attention[2, 2, 0] = [0, 0, 1]
    accuracy = np.full((3, 3), 0.8)
    accuracy[2, 2] = 0.5
    return xr.Dataset(
        {
            "word_attention": ((*BY_SEED, "sentence", "word"), attention),
            "test_accuracy": (BY_SEED, accuracy),
            "text": (("sentence", "word"), [["this", "is", "good"], ["it", "is", ""]]),
            "sign": (("sentence", "word"), [[0, 0, 1], [0, 0, 0]]),
            "share_by_chance": ("sentence", [0.25, 0.0]),
        },
        {"optimizer": ["p = 1.1", "p = 2", "p = 3"], "seed": range(3)},
        {"chance": 0.5, "test_examples": 2000, "texts": "film reviews"},
    )


def test_shares_of_words_are_means_over_models_that_have_learned():
    figure = get_figure("mirror-descent/attended-words")
    data = sentences([0.5, 0.3, 0.05], [0.2, 0.2, np.nan])
    first, second, order = figure.readings(data)
    assert first.value == pytest.approx(2) and second.value == pytest.approx(1.2)
    assert order.agrees and order.value == pytest.approx(0.2)
    words = figure.caption(data)
    assert "(1 of 9 have not)" in words and "p = 3 0.050" in words  # not the one at chance
    assert "bold one: p = 1.1 1.0 +- 0.0, p = 2 1.0 +- 0.0, p = 3 0.0 +- 0.0" in words
    assert "leaves out zero" in words and "by chance 0.250" in words


def test_every_word_is_written_for_every_exponent_and_telling_ones_are_bold():
    figure = get_figure("mirror-descent/attended-words")
    *tables, _ = figure.draw(sentences([0.5, 0.3, 0.05], [0.2, 0.2, np.nan])).axes
    assert len(tables) == 3
    for axes in tables:
        written = {text.get_text(): text.get_fontweight() for text in axes.texts}
        assert list(written) == ["this", "is", "good", "it"]
        assert written["good"] == "bold" and written["this"] == "normal"
    dark, pale = (axes.patches[2].get_facecolor()[0] for axes in tables[::2])
    assert dark < pale
    lines = [axes.lines[0].get_xdata() for axes in tables]
    assert lines[0][0] > lines[2][0]  # good is underlined for p = 1.1, this for p = 3


def test_the_published_order_is_read_off_the_numbers():
    figure, data = get_figure("mirror-descent/text-selection"), made_up("2 blocks")
    data["rescaled_attention"][:2] = [[0.3] * 3, [0.4] * 3]
    *_, order = figure.readings(data)
    assert not order.agrees and order.value == pytest.approx(-0.1)
    data["attention"][0] = 2 * data["attention_by_chance"][0]
    assert figure.readings(data)[0].agrees and figure.readings(data)[0].value == pytest.approx(2)


def test_a_try_of_huge_loss_leaves_the_others_apart():
    data = made_up("2 blocks")
    data["tried_accuracy"][1, 2] = -5800.0
    panels = get_figure("mirror-descent/vision").draw(data).axes
    (rates,) = (axes for axes in panels if "search" in axes.get_title() + axes.get_title("left"))
    low, high = rates.get_ylim()
    assert -0.2 < low <= 0 and 0.7 < high < 1.2
