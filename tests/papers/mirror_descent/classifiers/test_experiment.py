"""Contenders on a text task small enough for tests, kept on disk and taken from there."""

import dataclasses

import numpy as np
import optax
import pytest

from attractor.models import ClassificationData, Examples, TextTransformerConfig, load_model
from attractor.models.datasets import planted_reviews
from attractor.papers.figure import Request
from attractor.papers.mirror_descent.classifiers import experiment as module
from attractor.papers.mirror_descent.classifiers.experiment import CONTENDERS, Contender, Schedule
from attractor.papers.mirror_descent.classifiers.styles import STYLES
from attractor.papers.mirror_descent.texts import TextTask

SETTINGS = {"seeds": 2}


@pytest.fixture(scope="module")
def task():
    found = planted_reviews(40, 20, 30, vocabulary=20, length=6, class_words=3, planted=2)
    parts = (
        Examples(part.ids, part.labels, part.mask)
        for part in (found.train, found.validation, found.test)
    )
    config = TextTransformerConfig(
        vocabulary=20, length=6, width=4, blocks=1, heads=1, hidden=4, dropout=0.0
    )
    return TextTask(
        ClassificationData(*parts),
        config,
        Schedule(2, None, 3, batch=20),
        telling=found.test.planted,
    )


@pytest.fixture(scope="module")
def kept(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    request = Request("quick", SETTINGS, shared=folder)
    return folder, module.experiment(request, task, ["p = 2"], kind="text")


def test_every_seed_is_measured_and_every_try_kept(kept):
    _, data = kept
    assert dict(data.sizes) == {
        "optimizer": 1, "seed": 2, "epoch": 2, "try": 3, "matrix": 3, "block": 1, "bin": 60,
    }  # fmt: skip
    assert data["learning_rate"].item() in data["tried_rate"].values
    assert data["test_accuracy"].notnull().all()
    assert (data["highest_test_accuracy"] >= data["test_accuracy"]).all()
    np.testing.assert_allclose(data["share_of_weights"].sum("bin"), 1)
    assert data["attention_by_chance"].max() < 1


def test_models_are_kept_and_nothing_is_trained_twice(kept, task, monkeypatch):
    folder, data = kept
    (place,) = folder.iterdir()
    assert not list(place.glob(".*"))
    model = load_model(place / "p=2-seed-1.safetensors")
    assert model.config == task.config
    monkeypatch.setattr(module, "trained", None)  # would raise if it were called
    again = module.experiment(
        Request("quick", SETTINGS, shared=folder), task, ["p = 2"], kind="text"
    )
    assert again.equals(data)


def test_other_settings_are_another_experiment(kept, task, monkeypatch):
    folder, _ = kept
    monkeypatch.setattr(module, "trained", None)
    longer = dataclasses.replace(task, schedule=Schedule(3, None, 3, batch=20))
    with pytest.raises(TypeError):
        module.experiment(Request("quick", SETTINGS, shared=folder), longer, ["p = 2"], kind="text")


def test_the_search_never_sees_the_texts_to_test_with(task, monkeypatch):
    seen = []

    class Enough(Exception):
        pass

    def stop(config, data, make, **settings):
        seen.append((data, settings["seed"]))
        raise Enough

    monkeypatch.setattr(module, "train_classifier", stop)
    with pytest.raises(Enough):
        module.trained(
            CONTENDERS["Adam"], task, seed=0, seeds=1, same_start=False, place=None,
            advance=lambda _: None,
        )  # fmt: skip
    ((data, seed),) = seen
    assert data.test is None
    assert seed >= 10_000  # not one of those reported


def test_learning_rates_found_before_are_taken(kept, task, monkeypatch):
    _, data = kept
    monkeypatch.setattr(module, "_search", None)  # would raise if it were called
    again = module.experiment(
        Request("quick", SETTINGS), task, ["p = 2"], kind="text", same_start=True, searched=data
    )
    assert again.attrs["same_start"] == 1 and data.attrs["same_start"] == 0
    for name in ("tried_rate", "tried_accuracy", "learning_rate", "at_edge"):
        assert again[name].equals(data[name])
    # Both seeds start from one model; what the first seed does is what it did before.
    np.testing.assert_array_equal(
        again["validation_accuracy"].sel(seed=0), data["validation_accuracy"].sel(seed=0)
    )


@pytest.mark.parametrize("contender", CONTENDERS.values(), ids=lambda each: each.name)
def test_contenders_are_optimizers_with_a_look_of_their_own(contender: Contender):
    assert isinstance(contender.make(contender.guess), optax.GradientTransformation)
    assert contender.name in STYLES
