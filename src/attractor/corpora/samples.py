"""The distinct samples of a corpus, as rows that attention is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.parts.fingerprints import Fingerprints
from attractor.support.checks import check_kinds, one_or_several
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_shaped
from attractor.tokens import Tokens

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
