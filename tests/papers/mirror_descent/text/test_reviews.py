"""Reviews as a text task, on reviews made up here."""

import numpy as np
import pytest

from attractor.models.datasets import Reviews, SentimentWords, train_tokenizer
from attractor.papers.mirror_descent import texts as module
from attractor.papers.mirror_descent.classifiers.experiment import Schedule
from attractor.papers.mirror_descent.texts import reviews_task, telling_words

pytest.importorskip("tokenizers")

WORDS = SentimentWords({"wonderful": 2.7, "boring": -1.3}, {"source": "made up"})
NOUNS = ("film", "plot", "cast", "score", "ending", "script")


@pytest.fixture(scope="module")
def reviews():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    texts = tuple(
        f"The {rng.choice(NOUNS)} was {('boring', 'Wonderful')[label]}, "
        f"said critic number {number}." + " And long." * 5
        for number, label in enumerate(labels)
    )
    return Reviews(texts, labels, None, {"source": "made up"})


def test_every_piece_of_a_telling_word_is_marked(reviews):
    tokenizer = train_tokenizer(reviews.texts, vocabulary=60)  # so few that words fall to pieces
    text = "A WONDERFUL and boring film"
    (row,) = telling_words([text], tokenizer, WORDS, 30)
    cut = tokenizer.words(text, 30)
    marked = [cut.words[cut.word_of_position[place]] for place in np.flatnonzero(row)]
    assert set(marked) == {"WONDERFUL", "boring"}
    assert row.sum() > 2
    assert not row[0]  # where every text begins
    assert not row[len(cut.pieces) - 1 :].any()  # [SEP], and padding behind it


def test_words_beyond_the_cut_are_not_there(reviews):
    tokenizer = train_tokenizer(reviews.texts, vocabulary=200)
    (row,) = telling_words(["film " * 20 + "boring"], tokenizer, WORDS, 10)
    assert not row.any()


def test_the_task_learns_its_pieces_from_the_texts_to_train_on(reviews, monkeypatch):
    monkeypatch.setattr(module, "sentiment_words", lambda threshold: WORDS)
    task = reviews_task(
        Schedule(1, None, 3), {"train": 30, "validation": 10, "test": 20}, vocabulary=120,
        length=12, reviews=reviews, width=4, blocks=1, heads=1, hidden=4,
    )  # fmt: skip
    assert [len(task.data.train), len(task.data.validation), len(task.data.test)] == [30, 10, 20]
    assert task.config.vocabulary <= 120 and task.config.length == 12
    assert task.telling.shape == task.data.test.inputs.shape
    assert task.telling.any(1).all()  # each review has its word among the first
    assert task.frequencies.sum() == task.data.train.mask.sum()
    assert task.data.settings["tokenizer"]["texts"] == 30
