"""What must be true of the arguments of a corpus, and what is said where it is not."""

from __future__ import annotations

import collections
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attractor.checks import check_count, check_items, check_readable, is_whole, shown
from attractor.errors import InvalidInputError
from attractor.precision import as_float64, as_plain

_LARGEST_VOCABULARY = 2**21
"""Three token numbers must fit into one 64-bit integer."""
_SENTENCE = (list, tuple, np.ndarray, str, range)


def word_lists(argument: str, given: Any) -> list[list[Any]]:
    """Sentences as lists; an iterator of them is read to its end."""
    many = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    if isinstance(given, np.ndarray):
        check_readable(argument, given)
    listed: list[Any] = list(given) if many else []
    if not listed or not all(isinstance(one, _SENTENCE) for one in listed):
        raise InvalidInputError(
            argument, f"{shown(given)} is no list of lists", "Give a list of words for each"
        )
    kinds = {kind for one in listed for kind in map(type, one)}
    for kind in kinds:
        if not issubclass(kind, str | int | np.integer) or kind is bool:
            raise InvalidInputError(
                argument, f"one holds a {kind.__name__}", "Give words, or token numbers"
            )
    return [list(one) for one in listed]


def integers(argument: str, values: Any) -> Int[np.ndarray, "n"]:
    """Integers in one row."""
    array = as_plain(values)
    if array.dtype == object:
        numbers = array.ravel().tolist()
        if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in numbers):
            raise InvalidInputError(argument, "not all are integers", "Give token numbers")
        if any(not -(2**63) <= n < 2**63 for n in numbers):
            raise InvalidInputError(argument, "some are too large", "Give token numbers")
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInputError(
            argument,
            f"the shape is {array.shape} and the type {array.dtype}",
            "Give one row of integers",
        )
    return array.astype(np.int64)


def names_given(vocabulary: Any) -> list[Any]:
    """Names of tokens: a sequence, or the letters of a text."""
    if isinstance(vocabulary, str):
        vocabulary = list(vocabulary)
    return check_items("vocabulary", vocabulary, Hashable, 1)


def names_of(given: Sequence[Any] | int | None, needed: int) -> tuple[str, ...]:
    """The names of tokens, given or made up from their numbers."""
    if is_whole(given):
        needed, given = check_count("vocabulary", given, 1, _LARGEST_VOCABULARY), None
    if given is not None and not isinstance(given, range):
        given = names_given(given)
    numbers = range(needed) if given is None else given
    if len(numbers) > _LARGEST_VOCABULARY:
        raise InvalidInputError(
            "vocabulary",
            f"it has {len(numbers):,} tokens",
            f"Give at most {_LARGEST_VOCABULARY:,}: let rare words share one token",
        )
    names = tuple(map(str, numbers))
    if len(set(names)) < len(names):
        twice, _ = collections.Counter(names).most_common(1)[0]
        raise InvalidInputError("vocabulary", f"{twice!r} is there twice", "Name every token once")
    return names


def weights_of(counts: Any, sentences: int) -> Float[np.ndarray, "sentences"]:
    """How often each sentence counts."""
    if counts is None:
        return np.ones(sentences)
    array = as_float64("counts", counts)
    if array.shape != (sentences,) or not (np.isfinite(array) & (array > 0)).all():
        raise InvalidInputError(
            "counts",
            f"the shape is {array.shape}, or not all are positive and finite",
            f"Give a positive number for each of the {sentences} sentences",
        )
    return array
