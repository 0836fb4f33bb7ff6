"""Words with a polarity, as people rated them."""

from __future__ import annotations

import re
from typing import Any

from attractor.models.datasets.installed import installed_file
from attractor.support.checks import as_number
from attractor.support.errors import FileFormatError, InvalidInputError

_DISTRIBUTION, _PACKAGE, _LEXICON = "vaderSentiment", "vaderSentiment", "vader_lexicon.txt"
_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*")
_STRONGEST = 4.0
_LARGEST = 2**24


class SentimentWords(dict[str, float]):
    """The polarity of each word, from -4 to 4.

    Attributes:
        settings: The package and version the words are from, and the threshold.
    """

    def __init__(self, polarities: dict[str, float], settings: dict[str, Any]) -> None:
        super().__init__(polarities)
        self.settings = settings


def sentiment_words(threshold: float = 0.0) -> SentimentWords:
    """The words of the VADER lexicon whose polarity is at least ``threshold`` either way.

    A polarity is the mean of ten people's ratings from -4, most negative, to 4 (Hutto and Gilbert
    2014). The lexicon is read from the package vaderSentiment (extra ``text``, MIT license), whose
    code is not run. Only words of letters are taken, perhaps with an apostrophe or a hyphen
    inside; emoticons, phrases and digits are left out.

    Args:
        threshold: The least absolute polarity.

    Raises:
        InvalidInputError: If the package is missing, or the threshold is not in [0, 4].
        FileFormatError: If the file is damaged.
    """
    if not 0 <= as_number(threshold) <= _STRONGEST:
        raise InvalidInputError(
            "threshold", f"got {threshold!r}", "Give a number from 0, for all words, to 4"
        )
    file, version = installed_file(
        _DISTRIBUTION,
        _PACKAGE,
        _LEXICON,
        argument="threshold",
        remedy="Run `pip install 'attractor[text]'`",
    )
    with file.open("rb") as stream:
        content = stream.read(_LARGEST)
    polarities = {}
    for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), 1):
        word, *entries = line.split("\t")
        if not _WORD.fullmatch(word):
            continue
        polarities[word] = _polarity(entries, f"{file}, line {number:,}")
    settings = {
        "source": f"package {_DISTRIBUTION}",
        "version": version,
        "license": "MIT",
        "threshold": float(threshold),
    }
    strong = {word: value for word, value in polarities.items() if abs(value) >= threshold}
    return SentimentWords(strong, settings)


def _polarity(entries: list[str], where: str) -> float:
    try:
        value = float(entries[0])
    except (IndexError, ValueError):
        value = float("nan")
    if not -_STRONGEST <= value <= _STRONGEST:
        raise FileFormatError(f"{where}: there is no polarity from -4 to 4. The file is damaged.")
    return value
