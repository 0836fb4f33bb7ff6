"""Figures of trained classifiers, drawn from made-up numbers."""

import numpy as np
import pytest
import xarray as xr

from attractor.papers.mirror_descent.classifiers.contenders import CONTENDERS
from attractor.papers.registry import get_figure

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
    (legend,) = [axes.get_legend() for axes in figure.draw(data).axes if axes.get_legend()]
    assert "highest of all epochs" in legend.get_texts()[1].get_text()
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


def test_the_published_order_is_read_off_the_numbers():
    figure, data = get_figure("mirror-descent/text-selection"), made_up("2 blocks")
    data["rescaled_attention"][:2] = [[0.3] * 3, [0.4] * 3]
    *_, order = figure.readings(data)
    assert not order.agrees and order.value == pytest.approx(-0.1)
    data["attention"][0] = 2 * data["attention_by_chance"][0]
    assert figure.readings(data)[0].agrees and figure.readings(data)[0].value == pytest.approx(2)
