"""``Corpus``: sentences of tokens, which prefixes of them are samples, and smaller vocabularies."""

from __future__ import annotations

import collections
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attractor.results import Described, Rows
from attractor.support.checks import (
    check_count,
    check_flags,
    check_items,
    check_readable,
    is_whole,
    shown,
)
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_float64, as_plain

_LARGEST_VOCABULARY = 2**21
"""Three token numbers must fit into one 64-bit integer."""
_SENTENCE = (list, tuple, np.ndarray, str, range)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Corpus(Described):
    """Sentences of tokens. Every prefix with the token after it is a sample by default.

    A sample is a context ``x_1 ... x_l`` with the token that follows, its label. The last token of
    the context is the query. Sentences lie one after another in one
    array, so that no prefix is stored. Source: *Non-asymptotic Convergence of Training Transformers
    for Next-token Prediction* (arXiv 2409.17335), the data set closed under prefixes.

    Attributes:
        vocabulary: The name of every token number.
        tokens: Token numbers of all sentences, one sentence after another.
        starts: Where each sentence starts, and in the end where the last one stops.
        context_length: Number of tokens before the label that are the context; None for all.
        every_prefix: Whether every prefix of two tokens or more makes a sample of its last token,
            or only the whole sentence does.
        counts: The weight of each sentence; a positive number, one unless given.

    Example:
        >>> import attractor as at
        >>> corpus = at.corpora.Corpus.from_sentences([["a", "b", "c"], ["b", "c", "a"]])
        >>> corpus
        Corpus(2 sentences, 4 samples, 3 tokens in the vocabulary)
        >>> corpus.vocabulary
        ('a', 'b', 'c')
    """

    vocabulary: tuple[str, ...]
    tokens: Int[np.ndarray, "total"]
    starts: Int[np.ndarray, "sentences+1"]
    context_length: int | None
    every_prefix: bool
    counts: Float[np.ndarray, "sentences"]

    def __init__(
        self,
        tokens: Any,
        starts: Any,
        vocabulary: Sequence[Any] | int | None = None,
        *,
        context_length: int | None = None,
        every_prefix: bool = True,
        counts: Any = None,
    ) -> None:
        """Checks and stores sentences that lie one after another in one array.

        Args:
            tokens: Token numbers of all sentences.
            starts: Where each sentence starts, from 0, and in the end the number of all tokens.
            vocabulary: The names of the tokens, or how many there are; default: one more than the
                largest number. Names unless given are the numbers.
            context_length: See the attributes.
            every_prefix: See the attributes.
            counts: See the attributes.

        Raises:
            InvalidInputError: If numbers are not those of tokens, a sentence is empty, or there is
                no sample at all.
        """
        tokens, starts = integers("tokens", tokens), integers("starts", starts)
        if not len(tokens):
            raise InvalidInputError("tokens", "there are none", "Give at least one sentence")
        if len(starts) < 2 or starts[0] != 0 or starts[-1] != len(tokens):
            raise InvalidInputError(
                "starts",
                "they do not run from 0 to the number of tokens",
                f"Give where each sentence starts, and {len(tokens)} in the end",
            )
        if (np.diff(starts) <= 0).any():
            empty = int(np.argmax(np.diff(starts) <= 0))
            raise InvalidInputError("starts", f"sentence {empty} is empty", "Leave it out")
        names = names_of(vocabulary, int(tokens.max()) + 1)
        if tokens.min() < 0 or tokens.max() >= len(names):
            raise InvalidInputError(
                "tokens",
                f"they run from {tokens.min()} to {tokens.max()}",
                f"Give numbers from 0 to {len(names) - 1}, those of the vocabulary",
            )
        if context_length is not None:
            context_length = check_count("context_length", context_length)
        check_flags(every_prefix=every_prefix)
        if np.diff(starts).max() < 2:
            raise InvalidInputError(
                "sentences",
                "every sentence has a single token, so that nothing follows any token",
                "Give sentences of two tokens or more",
            )
        kept = {
            "vocabulary": names,
            "tokens": tokens,
            "starts": starts,
            "context_length": context_length,
            "every_prefix": bool(every_prefix),
            "counts": weights_of(counts, len(starts) - 1),
        }
        for name, value in kept.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    @classmethod
    def from_sentences(
        cls,
        sentences: Iterable[Sequence[str] | Sequence[int]],
        vocabulary: Sequence[Any] | None = None,
        **other: Any,
    ) -> Corpus:
        """A corpus of sentences that are lists of words, or of token numbers.

        Args:
            sentences: The sentences.
            vocabulary: The words in the order of their numbers; default: that of appearance.
            **other: The keyword arguments of ``Corpus``.

        Raises:
            InvalidInputError: If a word is not in the vocabulary, or as ``Corpus`` says.
        """
        listed = word_lists("sentences", sentences)
        names = None if vocabulary is None else names_given(vocabulary)
        starts = np.cumsum([0, *(len(sentence) for sentence in listed)])
        flat = [word for sentence in listed for word in sentence]
        if not any(isinstance(word, str) for word in flat):
            return cls(np.asarray(flat, dtype=object), starts, names, **other)
        known = {word: number for number, word in enumerate(names or dict.fromkeys(flat))}
        missing = next((word for word in flat if word not in known), None)
        if missing is not None:
            raise InvalidInputError(
                "sentences", f"the word {missing!r} is not in the vocabulary", "Add it there"
            )
        numbers = np.fromiter((known[word] for word in flat), np.int64, len(flat))
        return cls(numbers, starts, tuple(known), **other)

    @classmethod
    def from_samples(
        cls,
        contexts: Sequence[Sequence[str]] | Sequence[Sequence[int]],
        labels: Sequence[str] | Sequence[int],
        vocabulary: Sequence[Any] | None = None,
        **other: Any,
    ) -> Corpus:
        """A corpus of contexts with a label each, whose own prefixes are no samples.

        Args:
            contexts: A list of words or token numbers for each sample; the last is the query.
            labels: The token after each.
            vocabulary: As in ``from_sentences``.
            **other: The other keyword arguments of ``Corpus``.

        Raises:
            InvalidInputError: As ``from_sentences``, or if there is not a label for each context.
        """
        contexts = word_lists("contexts", contexts)
        if not isinstance(labels, str):  # whose letters are words
            labels = check_items("labels", labels, object)
        (labels,) = word_lists("labels", [labels])
        if len(contexts) != len(labels):
            raise InvalidInputError(
                "labels", f"there are {len(labels)} for {len(contexts)} contexts", "Give one each"
            )
        sentences: list[Any] = [
            [*context, label] for context, label in zip(contexts, labels, strict=True)
        ]
        return cls.from_sentences(sentences, vocabulary, every_prefix=False, **other)

    @property
    def vocabulary_size(self) -> int:
        """Number V of tokens in the vocabulary."""
        return len(self.vocabulary)

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> Int[np.ndarray, "sentences"]:
        """Number of tokens in each sentence, the last label included."""
        return np.diff(self.starts)

    @cached_property
    def sentence_of(self) -> Int[np.ndarray, "total"]:
        """The sentence each token lies in."""
        return np.repeat(np.arange(self.sentences), self.lengths)

    @cached_property
    def positions(self) -> Int[np.ndarray, "samples"]:
        """The place of each sample's query in ``tokens``; its label is the token after it."""
        last = self.starts[1:] - 1
        if not self.every_prefix:
            return last[self.lengths > 1] - 1
        within = np.ones(len(self.tokens), dtype=bool)
        within[last] = False
        return np.flatnonzero(within)

    @cached_property
    def first(self) -> Int[np.ndarray, "samples"]:
        """The place in ``tokens`` where the context of each sample begins."""
        begin = self.starts[self.sentence_of[self.positions]]
        if self.context_length is None:
            return begin
        return np.maximum(begin, self.positions + 1 - self.context_length)

    @cached_property
    def queries(self) -> Int[np.ndarray, "samples"]:
        """The last token of each context."""
        return self.tokens[self.positions]

    @cached_property
    def labels(self) -> Int[np.ndarray, "samples"]:
        """The token after each context."""
        return self.tokens[self.positions + 1]

    @cached_property
    def weights(self) -> Float[np.ndarray, "samples"]:
        """The weight of each sample."""
        return self.counts[self.sentence_of[self.positions]]

    @property
    def context_tokens(self) -> int:
        """Number of tokens in all contexts together: what writing out every prefix would take."""
        return int((self.positions + 1 - self.first).sum())

    def context(self, sample: int) -> Int[np.ndarray, "length"]:
        """The token numbers of a context."""
        sample = check_count("sample", sample, 0, len(self.positions) - 1)
        return self.tokens[self.first[sample] : self.positions[sample] + 1]

    def words(self, sample: int, most: int = 12) -> str:
        """A sample in words: ``a b c -> d``; of a long context the last words."""
        most = check_count("most", most)
        numbers = self.context(sample)
        shown = " ".join(self.vocabulary[number] for number in numbers[-most:])
        dots = "... " if len(numbers) > most else ""
        return f"{dots}{shown} -> {self.vocabulary[self.labels[sample]]}"

    def _summary(self) -> tuple[str, Rows]:
        shown = [self.words(sample) for sample in range(min(3, len(self.positions)))]
        return "Corpus", [
            ("sentences", f"{self.sentences:,}"),
            ("samples", f"{len(self.positions):,}, such as {'; '.join(shown)}"),
            ("tokens in contexts", f"{self.context_tokens:,}"),
            ("vocabulary", f"{self.vocabulary_size:,} tokens"),
        ]

    def __repr__(self) -> str:
        return (
            f"Corpus({self.sentences:,} sentences, {len(self.positions):,} samples, "
            f"{self.vocabulary_size:,} tokens in the vocabulary)"
        )


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
    array = as_plain(argument, values)
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
    """The weight of each sentence."""
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


MOST_TRAINED = 101
"""The largest vocabulary trained on: a hundred tokens, and the one that all others become."""
STEPS = 900
"""Steps of each stage of training, as published."""
OTHER = "<other>"
"""The name of the token that all rare ones become."""


def frequent_tokens(
    tokens: Int[np.ndarray, "total"],
    names: Sequence[str],
    most: int | None,
    weights: Float[np.ndarray, "total"] | None = None,
) -> tuple[Int[np.ndarray, "total"], tuple[str, ...], Int[np.ndarray, "kept"]]:
    """Numbers the most frequent tokens anew, and gives all others one number together.

    Of equally frequent tokens those with the smaller number are kept. Kept tokens stay in their
    order; tokens that do not occur are dropped.

    Args:
        tokens: Token numbers.
        names: The name of every number.
        most: Number of tokens that keep their names; None for all that occur.
        weights: The weight of each place.

    Returns:
        The new numbers, their names, and the old number of each token kept. Where other tokens
        were left, they have the last number, with the name ``OTHER``.

    Raises:
        InvalidInputError: If ``most`` is not a positive integer.
    """
    if most is not None:
        check_count("vocabulary", most)
    frequency = np.bincount(tokens, weights, minlength=len(names))
    order = np.argsort(-frequency, kind="stable")
    occurring = int(np.count_nonzero(frequency))
    kept = np.sort(order[:occurring][:most])
    number = np.full(len(names), len(kept), dtype=tokens.dtype)
    number[kept] = np.arange(len(kept), dtype=tokens.dtype)
    new_names = [str(names[old]) for old in kept.tolist()]
    if len(kept) < occurring:
        other = OTHER
        while other in new_names:
            other = f"<{other}>"
        new_names.append(other)
    return number[tokens], tuple(new_names), kept


def with_frequent_tokens(
    corpus: Corpus, most: int | None
) -> tuple[Corpus, Int[np.ndarray, "kept"]]:
    """The corpus in which all but the most frequent tokens are one token.

    Args:
        corpus: The corpus.
        most: Number of tokens that keep their names.

    Returns:
        The corpus, and the old number of each token kept.
    """
    weights = np.repeat(corpus.counts, corpus.lengths)
    tokens, names, kept = frequent_tokens(corpus.tokens, corpus.vocabulary, most, weights)
    return replace(corpus, tokens=tokens, vocabulary=names), kept


def with_context_length(corpus: Corpus, context_length: int | None) -> Corpus:
    """The corpus whose contexts are the last few tokens before each label; None for all."""
    return replace(corpus, context_length=context_length)
