import importlib.util
import sys

import pytest

from attractor.models.datasets import reviews
from attractor.models.datasets.reviews import sentiment_words
from attractor.support.errors import FileFormatError, InvalidInputError


def given_lexicon(monkeypatch, folder, content):
    (folder / "reviews.txt").write_text(content)
    monkeypatch.setattr(reviews, "installed_file", lambda *_, **__: (folder / "reviews.txt", "1.0"))


def test_words_at_least_so_strong(monkeypatch, tmp_path):
    given_lexicon(
        monkeypatch,
        tmp_path,
        ":)\t2.0\t0.1\t[2]\ngood\t1.9\t0.9\t[2]\nwell-made\t0.5\t1\t[1]\ndon't\t-2.5\t1\t[3]\n"
        "(8\t1\nto do\t3\t1\n\n",
    )
    assert sentiment_words() == {"good": 1.9, "well-made": 0.5, "don't": -2.5}
    strong = sentiment_words(threshold=1.9)
    assert strong == {"good": 1.9, "don't": -2.5}
    assert strong.settings["version"] == "1.0" and strong.settings["threshold"] == 1.9


@pytest.mark.parametrize("content", ["good\t1\nbad\n", "bad\tx\t1\n", "bad\t-9\t1\n", "bad\tnan\n"])
def test_refuses_a_damaged_file(monkeypatch, tmp_path, content):
    given_lexicon(monkeypatch, tmp_path, content)
    with pytest.raises(FileFormatError, match=r"reviews.txt, line \d: "):
        sentiment_words()


@pytest.mark.parametrize("threshold", [-1, 4.1, float("nan"), True])
def test_refuses_a_threshold_out_of_range(threshold):
    with pytest.raises(InvalidInputError, match=r"^threshold:"):
        sentiment_words(threshold)


def test_missing_package_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInputError, match=r"pip install 'attractor\[text\]'"):
        sentiment_words()


@pytest.mark.installed("vaderSentiment")
def test_the_package_is_read_and_not_run():
    words = sentiment_words(2.5)
    assert words["excellent"] > 2.5 and words["horrible"] == -2.5
    assert not {"the", ":)", "good"} & set(words)
    assert "vaderSentiment" not in sys.modules
