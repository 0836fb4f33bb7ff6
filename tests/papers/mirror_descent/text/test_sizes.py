"""What a size of the text figures is made of."""

import dataclasses

import numpy as np
import pytest

from attractor.papers.figure import Request
from attractor.papers.mirror_descent import texts as module
from attractor.papers.mirror_descent.classifiers.experiment import CONTENDERS
from attractor.papers.mirror_descent.texts import SIZES, task_of
from attractor.support.errors import InvalidInputError

from .test_reviews import NOUNS, WORDS

TINY = {
    "reviews": {"train": 0.5, "validation": 0.2, "test": 0.3},
    "given_split": {"train": None, "validation": 4, "test": None},
    "vocabulary": 120,
}


@pytest.mark.parametrize("size", SIZES)
def test_every_optimizer_and_guess_is_a_contender(size):
    settings = SIZES[size]
    assert set(settings["optimizers"]) <= set(CONTENDERS)
    assert set(settings["compared"]) <= set(settings["optimizers"])
    assert set(settings.get("guesses", {})) <= set(CONTENDERS)


def test_the_last_model_is_the_one_looked_at():
    request = Request("quick", SIZES["quick"])
    assert task_of(request).config.width == 32
    assert task_of(request, "width 16").config.width == 16


def test_reviews_of_the_user_take_the_place_of_those_installed(tmp_path, monkeypatch):
    pytest.importorskip("tokenizers")
    monkeypatch.setattr(module, "sentiment_words", lambda threshold: WORDS)
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for label, word in (("pos", "wonderful"), ("neg", "boring")):
            folder = tmp_path / "aclImdb" / part / label
            folder.mkdir(parents=True)
            for number in range(10):
                text = f"A {word} {rng.choice(NOUNS)}, says critic {part} {number}."
                (folder / f"{number}_1.txt").write_text(text)
    request = Request("small", SIZES["small"] | TINY, source=tmp_path)
    task = task_of(request)
    assert [len(task.data.train), len(task.data.validation), len(task.data.test)] == [16, 4, 20]
    assert task.schedule.batch == 10 and task.schedule.guesses["p = 2"] == 0.03
    with pytest.raises(InvalidInputError, match="data: this size is of made-up texts"):
        task_of(dataclasses.replace(request, settings=SIZES["quick"]))
