"""Short sentences, the same for every model, whose attention is looked at word by word."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.models.datasets import PlantedReviews, TextTokenizer
from attractor.models.datasets.reviews import FIRST, PADDING

SENTENCES = (
    "the music is +wonderful",
    "a -dull evening from start to end",
    "+charming people in a small town",
    "the plot is a -mess and the end -terrible",
    "+brilliant scenes follow a -boring start",
    "the actor is -awful but the camera +superb",
    "a +funny and +perfect story about a dog",
    "they talk in a room for two hours",
)
"""Words that tell the class are marked by their sign; all of these are in the sentiment lexicon."""
_SIGNS = {"+": 1, "-": -1}


class FixedSentences(NamedTuple):
    """Sentences as words, and as what a model reads.

    Attributes:
        words: The words, empty past the end of a sentence.
        signs: 1 at positive words, -1 at negative ones, 0 elsewhere.
        ids: Numbers of tokens.
        mask: Where they are real tokens.
        word_of_position: The word at each position, -1 where there is none.
    """

    words: np.ndarray
    signs: Int[np.ndarray, "sentence word"]
    ids: Int[np.ndarray, "sentence token"]
    mask: Bool[np.ndarray, "sentence token"]
    word_of_position: Int[np.ndarray, "sentence token"]

    @property
    def places(self) -> Bool[np.ndarray, "sentence token word"]:
        """Which positions hold which words."""
        return self.word_of_position[..., None] == np.arange(self.words.shape[1])

    @property
    def by_chance(self) -> Float[np.ndarray, "sentence"]:
        """The share of uniform attention on words that tell the class."""
        telling = (self.places & (self.signs != 0)[:, None]).any(-1)
        return telling.sum(1) / self.mask.sum(1)

    def by_word(
        self, attention: Float[np.ndarray, "sentence token"]
    ) -> Float[np.ndarray, "sentence word"]:
        """Sums attention over the pieces of each word; NaN where a sentence has no such word."""
        sums = (attention[..., None] * self.places).sum(1)
        return np.where(self.places.any(1), sums, np.nan)


def planted_sentences(reviews: PlantedReviews) -> FixedSentences:
    """The sentences in the vocabulary of made-up reviews.

    Words that tell the class stand for class words, the first of either class; all others stand
    for noise words.
    """
    words, signs = _marked()
    vocabulary, length = reviews.settings["vocabulary"], reviews.settings["length"]
    noise = np.setdiff1d(np.arange(max(FIRST, PADDING) + 1, vocabulary), reviews.class_words)
    numbers = {"": PADDING}
    for sign, of_class in ((-1, reviews.class_words[0]), (1, reviews.class_words[1]), (0, noise)):
        meant = dict.fromkeys(words[(signs == sign) & (words != "")].tolist())
        numbers |= dict(zip(meant, of_class.tolist(), strict=False))
    ids = np.full((len(words), length), PADDING)
    ids[:, 0] = FIRST
    ids[:, 1 : 1 + words.shape[1]] = np.vectorize(numbers.__getitem__, otypes=[int])(words)
    mask = ids != PADDING
    position = np.where(mask, np.arange(length) - 1, -1)
    return FixedSentences(words, signs, ids, mask, position)


def tokenized_sentences(tokenizer: TextTokenizer, length: int) -> FixedSentences:
    """The sentences as a tokenizer cuts them.

    Args:
        tokenizer: The tokenizer.
        length: Pieces of a text.
    """
    words, signs = _marked()
    texts = [" ".join(row).strip() for row in words.tolist()]
    encoded = tokenizer.encode(texts, length)
    position = np.full(encoded.ids.shape, -1)
    for row, text in enumerate(texts):
        found = tokenizer.words(text, length).word_of_position
        position[row, : len(found)] = found
    return FixedSentences(words, signs, encoded.ids, encoded.mask, position)


def _marked() -> tuple[np.ndarray, Int[np.ndarray, "sentence word"]]:
    """The words without their marks, and the marks as signs."""
    marked = [sentence.split() for sentence in SENTENCES]
    longest = max(map(len, marked))
    rows = [row + [""] * (longest - len(row)) for row in marked]
    signs = [[_SIGNS.get(word[:1], 0) for word in row] for row in rows]
    return np.array([[word.lstrip("+-") for word in row] for row in rows]), np.array(signs)
