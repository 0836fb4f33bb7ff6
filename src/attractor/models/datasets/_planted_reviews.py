"""Synthetic reviews: sentences of noise words with a few words that determine the class."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int32

from attractor.models.datasets.token_numbers import FIRST, PADDING
from attractor.support.checks import check_count, check_probability
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import generator

_SPECIAL = 2


class PlantedPart(NamedTuple):
    """Sentences to train on, to choose by or to test with.

    Attributes:
        ids: The words as numbers; 1 comes first in every sentence and 0 is padding.
        mask: True at words and at the first position, False at padding.
        labels: The class of each sentence, 0 or 1.
        planted: True at class words, of either class.
    """

    ids: Int32[np.ndarray, "n length"]
    mask: Bool[np.ndarray, "n length"]
    labels: Int32[np.ndarray, "n"]
    planted: Bool[np.ndarray, "n length"]


@dataclasses.dataclass(frozen=True)
class PlantedReviews:
    """Sentences whose class is determined by planted words.

    Attributes:
        train: To train on.
        validation: To choose settings and the best epoch by.
        test: To report.
        class_words: The numbers of the words that belong to class 0 and to class 1.
        settings: The arguments they were drawn with.
    """

    train: PlantedPart
    validation: PlantedPart
    test: PlantedPart
    class_words: Int32[np.ndarray, "2 words"]
    settings: dict[str, Any]


def planted_reviews(
    train: int = 1500,
    validation: int = 500,
    test: int = 2000,
    *,
    vocabulary: int = 400,
    length: int = 40,
    shortest: int | None = None,
    planted: int = 3,
    class_words: int = 30,
    misleading: float = 0.3,
    seed: int = 0,
) -> PlantedReviews:
    """Draws sentences of noise words with planted words of their class.

    A sentence begins with the class token 1. Among its other positions ``planted`` different ones
    hold words of the sentence's class, each drawn anew; with probability ``misleading`` one of
    them is of the other class instead. All others hold noise words. Half of the sentences of a
    part are of each class; an odd one out is of class 0.

    Args:
        train: Sentences to train on.
        validation: Sentences to choose by.
        test: Sentences to test with.
        vocabulary: Number of words: padding, the class token, class words, noise words.
        length: Positions of a sentence, the class token included.
        shortest: Sentence lengths are uniform from this to ``length``; None for all ``length``.
        planted: Planted words in a sentence.
        class_words: Words that belong to each class.
        misleading: The probability that one planted word is of the other class.
        seed: Same seed, same sentences; each part is the same whatever the size of the others.

    Raises:
        InvalidInputError: If an argument is no such number, or they do not fit together.
    """
    settings: dict[str, Any] = {
        "source": "planted reviews",
        "train": train,
        "validation": validation,
        "test": test,
        "vocabulary": vocabulary,
        "length": length,
        "shortest": length if shortest is None else shortest,
        "planted": planted,
        "class_words": class_words,
        "misleading": misleading,
        "seed": seed,
    }
    _check(settings)
    words = generator(seed, purpose="class words").permutation(np.arange(_SPECIAL, vocabulary))
    of_class = np.sort(words[: 2 * class_words].reshape(2, class_words), axis=1).astype(np.int32)
    noise = np.sort(words[2 * class_words :])
    lengths = (settings["shortest"], length)
    parts = [
        _part(size, of_class, noise, lengths, planted, misleading, random)
        for size, name in ((train, "train"), (validation, "validation"), (test, "test"))
        for random in [generator(seed, purpose=f"planted reviews, {name}")]
    ]
    return PlantedReviews(*parts, class_words=of_class, settings=settings)


def _part(
    size: int,
    of_class: Int[np.ndarray, "2 words"],
    noise: Int[np.ndarray, "_"],
    lengths: tuple[int, int],
    planted: int,
    misleading: float,
    random: np.random.Generator,
) -> PlantedPart:
    labels = random.permutation(np.arange(size) % 2).astype(np.int32)
    length = random.integers(lengths[0], lengths[1] + 1, size)
    positions = np.arange(lengths[1])
    mask = positions < length[:, None]
    ids = np.where(mask, random.choice(noise, mask.shape), PADDING).astype(np.int32)
    # The positions with the smallest random numbers are a draw without replacement.
    places = random.random(mask.shape)
    places[~mask | (positions == 0)] = 2
    places = np.argsort(places, axis=1)[:, :planted]
    classes = np.repeat(labels[:, None], planted, axis=1)
    misled = random.random(size) < misleading
    classes[misled, 0] = 1 - labels[misled]  # the first of the draw is at a random place
    word = random.integers(of_class.shape[1], size=classes.shape)
    np.put_along_axis(ids, places, of_class[classes, word], axis=1)
    is_planted = np.zeros(mask.shape, bool)
    np.put_along_axis(is_planted, places, True, axis=1)
    ids[:, 0] = FIRST
    return PlantedPart(ids, mask, labels, is_planted)


def _check(given: dict[str, Any]) -> None:
    """Checks the arguments, by their names."""
    least = {"train": 2, "validation": 0, "test": 0, "vocabulary": 5, "length": 2, "shortest": 2}
    least |= {"planted": 1, "class_words": 1}
    for name, smallest in least.items():
        check_count(name, given[name], smallest)
    if given["shortest"] > given["length"] or given["planted"] >= given["shortest"]:
        raise InvalidInputError(
            "planted",
            f"{given['planted']} words and the class token do not fit into sentences of "
            f"{given['shortest']} to {given['length']} positions",
            "Give longer sentences or fewer planted words",
        )
    if 2 * given["class_words"] + _SPECIAL >= given["vocabulary"]:
        raise InvalidInputError(
            "class_words",
            f"twice {given['class_words']} leave no noise words among {given['vocabulary']}",
            "Give fewer class words or a larger vocabulary",
        )
    check_probability("misleading", given["misleading"])
