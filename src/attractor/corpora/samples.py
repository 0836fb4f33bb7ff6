"""The distinct samples of a corpus, as rows that attention is trained on, and the most frequent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.structures.occurrences import among, distinct, ranges
from attractor.support.checks import check_kinds, one_or_several
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_shaped
from attractor.tokens import Tokens


class Fingerprints:
    """A 64-bit number for each context; equal for equal contexts, and nearly surely for no others.

    It is ``sum_i a(i) r(x_i)`` modulo ``2^64`` with random ``a`` and ``r``. Two different contexts
    share one with probability ``2^-58`` or less: a product is zero where the powers of two in both
    factors make up 64, ``33 / 2^64`` of all. Those of samples add a number of the label.
    """

    def __init__(self, corpus: Corpus) -> None:
        """Draws the numbers of tokens, labels and places."""
        generator = np.random.default_rng(64)

        def draw(count: int) -> np.ndarray:
            return generator.integers(0, 2**64, count, dtype=np.uint64)

        self._corpus = corpus
        of_token, self._of_label = draw(corpus.vocabulary_size), draw(corpus.vocabulary_size)
        self._by_place = draw(int(corpus.lengths.max()) + 1)
        self._value = of_token[corpus.tokens]

    @cached_property
    def contexts(self) -> np.ndarray:
        """The number of each sample's context."""
        corpus = self._corpus
        if corpus.context_length is None:
            return self._sums[corpus.positions + 1] - self._sums[corpus.first]
        *_, (_, context) = self._windows()
        return context

    def samples(self, labels: Int[np.ndarray, "samples"]) -> np.ndarray:
        """The number of each sample: its context with a label."""
        return self.contexts + self._of_label[labels]

    def with_prefix_missing(self) -> Bool[np.ndarray, "samples"]:
        """Contexts with a prefix that is not the context of any sample."""
        corpus, known = self._corpus, distinct(self.contexts)
        if corpus.context_length is None:
            begin = self._sums[corpus.starts[corpus.sentence_of]]
            lacking = np.cumsum(np.append(False, ~among(self._sums[1:] - begin, known)))
            return lacking[corpus.positions] > lacking[corpus.first]
        missing = np.zeros(len(corpus.positions), dtype=bool)
        for inside, context in self._windows():
            missing |= inside & ~among(context, known)
        return missing

    @cached_property
    def _sums(self) -> np.ndarray:
        """Sums up to every place, where contexts begin with their sentence."""
        corpus = self._corpus
        within = np.arange(len(corpus.tokens)) - corpus.starts[corpus.sentence_of]
        terms = self._value * self._by_place[within]
        return np.cumsum(np.append(np.uint64(0), terms), dtype=np.uint64)

    def _windows(self) -> Iterator[tuple[Bool[np.ndarray, "samples"], np.ndarray]]:
        """The numbers of the first tokens of contexts, one more each time, and which go on."""
        first, last = self._corpus.first, self._corpus.positions
        context = np.zeros(len(last), dtype=np.uint64)
        for offset in range(int((last - first).max()) + 1):
            place = first + offset
            term = self._value[np.minimum(place, last)] * self._by_place[offset]
            context = context + np.where(place <= last, term, np.uint64(0))
            yield place < last, context


MOST_ENTRIES = 2 * 10**8
"""Numbers in the keys of all rows: 1.6 GB."""


@dataclass(frozen=True, eq=False)
class Samples:
    """The distinct samples of a corpus, each with its frequency.

    Attributes:
        contexts: Token numbers, ``(N, T)``, padded at the end with -1.
        labels: The token after each context.
        frequencies: The share of each sample in the corpus, by weight; they sum to one.
        sample: A sample of the corpus that each is, the first.
    """

    contexts: Int[np.ndarray, "N T"]
    labels: Int[np.ndarray, "N"]
    frequencies: Float[np.ndarray, "N"]
    sample: Int[np.ndarray, "N"]

    @property
    def mask(self) -> Bool[np.ndarray, "N T"]:
        """True where a context has a token."""
        return self.contexts >= 0

    @property
    def queries(self) -> Int[np.ndarray, "N"]:
        """The last token of each context."""
        last = self.mask.sum(-1) - 1
        return np.take_along_axis(self.contexts, last[:, None], axis=1)[:, 0]

    def __len__(self) -> int:
        """Number N of distinct samples."""
        return len(self.labels)


def distinct_samples(corpus: Corpus) -> Samples:
    """The distinct samples of a corpus in the order of their first appearance.

    Raises:
        InvalidInputError: If their contexts are too long to be written out.
    """
    check_kinds(corpus=(corpus, Corpus))
    chosen, frequencies = counted_samples(corpus)
    begin, last = corpus.first[chosen], corpus.positions[chosen]
    width = int((last - begin).max()) + 1
    if len(chosen) * width > MOST_ENTRIES:
        raise InvalidInputError(
            "corpus",
            f"its {len(chosen):,} distinct contexts have up to {width:,} tokens",
            "Give a context_length, or fewer sentences",
        )
    places = begin[:, None] + np.arange(width)
    inside = places <= last[:, None]
    contexts = np.where(inside, corpus.tokens[np.minimum(places, len(corpus.tokens) - 1)], -1)
    return Samples(contexts, corpus.labels[chosen], frequencies, chosen)


def counted_samples(
    corpus: Corpus,
    samples: Int[np.ndarray, "n"] | None = None,
    labels: Int[np.ndarray, "samples"] | None = None,
) -> tuple[Int[np.ndarray, "N"], Float[np.ndarray, "N"]]:
    """The first of each distinct sample, and its frequency; no context is written out.

    Args:
        corpus: The corpus.
        samples: Which samples to look at, in increasing order; default: all.
        labels: Labels of all samples, in place of their own.
    """
    numbers = Fingerprints(corpus).samples(corpus.labels if labels is None else labels)
    weights = corpus.weights
    if samples is not None:
        numbers, weights = numbers[samples], weights[samples]
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    weights = np.bincount(inverse, weights)
    order = np.argsort(first)
    chosen, weights = first[order], weights[order]
    return chosen if samples is None else samples[chosen], weights / weights.sum()


def attention_tokens(
    samples: Samples | Sequence[Samples], embeddings: Float[np.ndarray, "*instances V d"]
) -> Tokens:
    """The rows that the attention layer reads: contexts as keys, their last tokens as queries.

    Args:
        samples: Those of one corpus, or of several, which become instances; shorter ones are
            filled up with rows of weight zero.
        embeddings: The vector of every token, for all or one for each instance.

    Raises:
        InvalidInputError: If the keys of all rows would take too much memory.
    """
    listed, several = one_or_several("samples", samples, Samples)
    size = 1 + max(int(max(each.contexts.max(), each.labels.max())) for each in listed)
    embeddings = as_shaped("embeddings", embeddings, ("...", "V", "d"))
    leads = {(), (len(listed),)} if several else {()}
    if embeddings.shape[-2] < size or embeddings.shape[:-2] not in leads:
        raise InvalidInputError(
            "embeddings", f"the shape is {embeddings.shape}", f"Give (V, d) with V >= {size}"
        )
    if isinstance(samples, Samples):
        return Tokens(**_arrays(samples, embeddings, samples.contexts.shape))
    shape = (
        max(len(each) for each in samples),
        max(each.contexts.shape[1] for each in samples),
    )
    tables = np.broadcast_to(embeddings, (len(samples), *np.shape(embeddings)[-2:]))
    _check_size(len(samples) * shape[0] * shape[1] * tables.shape[-1])
    each = [_arrays(one, table, shape) for one, table in zip(samples, tables, strict=True)]
    return Tokens(**{name: np.stack([arrays[name] for arrays in each]) for name in each[0]})


def _arrays(
    samples: Samples, embeddings: Float[np.ndarray, "V d"], shape: tuple[int, ...]
) -> dict[str, Any]:
    """Arguments of ``Tokens``, filled up to a number of rows and of tokens."""
    _check_size(shape[0] * shape[1] * embeddings.shape[-1])
    rows, width = samples.contexts.shape
    contexts = np.full(shape, -1)
    contexts[:rows, :width] = samples.contexts
    contexts[rows:, 0] = 0  # a row without weight still needs a token to attend to
    labels, weights = np.zeros(shape[0]), np.zeros(shape[0])
    labels[:rows], weights[:rows] = samples.labels, samples.frequencies
    queries = np.zeros(shape[0], dtype=np.int64)
    queries[:rows] = samples.queries
    mask = contexts >= 0
    return {
        "keys": np.where(mask[..., None], embeddings[contexts], 0.0),
        "queries": embeddings[queries],
        "labels": labels,
        "mask": mask,
        "weights": weights,
    }


def _check_size(entries: int) -> None:
    if entries > MOST_ENTRIES:
        raise InvalidInputError(
            "corpus",
            f"the keys of all contexts would be {entries:,} numbers",
            "Give a context_length, fewer sentences, or embeddings of a smaller dimension",
        )


def frequent_samples(
    corpus: Corpus,
    work: int,
    samples: Int[np.ndarray, "n"] | None = None,
    labels: Int[np.ndarray, "samples"] | None = None,
) -> tuple[Corpus, float]:
    """The distinct samples of a corpus, the most frequent of them where there are too many.

    Contexts of one token are always kept, as the collocation is theirs; a part of a realizable
    corpus that has them is realizable.

    Args:
        corpus: The corpus.
        work: The most work of a step of training: for each context the square of the longest one's
            length, for pairs of its tokens, and the size of the vocabulary, for its logits.
        samples: Which samples to choose among; default: all.
        labels: Labels of all samples, in place of their own.

    Returns:
        The samples as contexts of their own over the same vocabulary, each counted by its
        frequency; and their share of all that were chosen among, by weight.
    """
    distinct, frequencies = counted_samples(corpus, samples, labels)
    lengths = corpus.positions[distinct] + 1 - corpus.first[distinct]
    order = np.lexsort((np.arange(len(lengths)), -frequencies, lengths > 1))
    longest = np.maximum.accumulate(lengths[order])
    size = np.arange(1.0, len(order) + 1) * (longest**2 + corpus.vocabulary_size)
    count = max(int(np.searchsorted(size, work, side="right")), int((lengths == 1).sum()))
    chosen = np.sort(order[:count])
    frequencies, distinct = frequencies[chosen], distinct[chosen]
    share = float(frequencies.sum())
    own = None if labels is None else labels[distinct]
    return samples_alone(corpus, distinct, frequencies, own), share


def samples_alone(
    corpus: Corpus,
    samples: Int[np.ndarray, "n"],
    counts: np.ndarray,
    labels: Int[np.ndarray, "n"] | None = None,
) -> Corpus:
    """Some samples as contexts of their own, over the same vocabulary.

    Args:
        corpus: The corpus.
        samples: Which samples.
        counts: The weight of each.
        labels: Labels in place of their own.
    """
    first = corpus.first[samples]
    lengths = corpus.positions[samples] + 2 - first
    tokens = corpus.tokens[ranges(first, lengths)]
    if labels is not None:
        tokens[np.cumsum(lengths) - 1] = labels
    return Corpus(
        tokens,
        np.cumsum([0, *lengths]),
        corpus.vocabulary,
        every_prefix=False,
        counts=counts,
    )
