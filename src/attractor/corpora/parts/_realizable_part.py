"""The largest realizable part of a corpus that can be found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.frequent_samples import samples_alone
from attractor.corpora.optimal_choice import agreeing_samples
from attractor.corpora.parts.corpus_part import CorpusPart
from attractor.corpora.samples import MOST_ENTRIES
from attractor.corpora.structures._collocation import Collocation
from attractor.corpora.structures.assumptions import with_unknown
from attractor.corpora.structures.occurrences import (
    among,
    contexts_in_portions,
    distinct,
    first_occurrences,
    portions,
    ranges,
)
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError

_LARGEST_MATCHING = 4 * 10**7


@dataclass(frozen=True, eq=False)
class RealizablePart:
    """A realizable part of a corpus.

    Attributes:
        shared: The part, over the tokens that it uses, in sentences that its samples share.
        samples: Which samples of the whole corpus it consists of.
        share: Its share of the corpus, by weight.
        removed: The share of the corpus removed for each assumption, in this order.
    """

    shared: CorpusPart
    samples: Int[np.ndarray, "n"]
    share: float
    removed: dict[str, float]

    @cached_property
    def corpus(self) -> Corpus:
        """The part with its samples as contexts of their own.

        Raises:
            InvalidInputError: If the contexts are too long to be written out.
        """
        part = self.shared
        if part.context_tokens > MOST_ENTRIES:
            raise InvalidInputError(
                "corpus",
                f"the {len(self.samples):,} contexts of the part have {part.context_tokens:,} "
                "tokens in all",
                "Give a context_length, or shorter sentences",
            )
        return samples_alone(part, np.arange(len(self.samples)), part.weights)


def realizable_part(corpus: Corpus) -> RealizablePart:
    """Removes samples until the rest is realizable, as few as a good heuristic can.

    The collocation is the injective one, among the followers of one-token contexts, whose pairs
    explain most samples: an assignment problem, solved exactly. Samples that it does not explain,
    or with tokens without a collocation, are removed. Then optimal tokens are chosen query by
    query, greedily, each if it keeps more weight than it costs, and the samples that contradict the
    choice are removed. The rest is realizable, but not always the largest realizable part.

    Raises:
        InvalidInputError: If no context has a single token, or there are too many tokens to assign.
    """
    check_kinds(corpus=(corpus, Corpus))
    found = _best_collocation(corpus)
    weights, total = corpus.weights, float(corpus.weights.sum())
    removed = {}

    def drop(kept: Bool[np.ndarray, "samples"], name: str, good: np.ndarray) -> np.ndarray:
        removed[name] = float(weights[kept & ~good].sum() / total)
        return kept & good

    alone = corpus.first == corpus.positions
    follows = found.next_token[corpus.queries] == corpus.labels
    known = ~with_unknown(corpus, found) & (~alone | follows)
    kept = drop(np.ones(len(weights), dtype=bool), "collocation", known)
    explaining = found.explaining(corpus)
    kept = drop(kept, "labels explained", explaining >= 0)
    agreeing = agreeing_samples(corpus, np.flatnonzero(kept), explaining)
    kept = drop(kept, "orders without confused tokens", agreeing)
    samples = np.flatnonzero(kept)
    share = float(weights[samples].sum() / total)
    return RealizablePart(CorpusPart(corpus, samples), samples, share, removed)


def _best_collocation(corpus: Corpus) -> Collocation:
    """The injective collocation whose pairs explain most samples."""
    size = corpus.vocabulary_size
    alone = corpus.first == corpus.positions
    pairs = distinct(corpus.queries[alone] * size + corpus.labels[alone])
    token, label = np.divmod(pairs, size)
    tokens, row = np.unique(token, return_inverse=True)
    labels, column = np.unique(label, return_inverse=True)
    if not len(tokens):
        raise InvalidInputError(
            "corpus", "no context consists of a single token", "Give whole sentences"
        )
    if len(tokens) * len(labels) > _LARGEST_MATCHING:
        raise InvalidInputError(
            "corpus",
            f"{len(tokens):,} tokens stand alone, with {len(labels):,} labels",
            "Give a smaller vocabulary",
        )
    from scipy.optimize import linear_sum_assignment

    gain = np.zeros((len(tokens), len(labels)))
    gain[row, column] = _explained(corpus, pairs)
    chosen = linear_sum_assignment(gain, maximize=True)
    real = gain[chosen] > 0
    next_token = np.full(size, -1)
    next_token[tokens[chosen[0][real]]] = labels[chosen[1][real]]
    return Collocation(next_token, np.zeros(0, dtype=np.int64), corpus.vocabulary)


def _explained(corpus: Corpus, pairs: Int[np.ndarray, "pairs"]) -> Float[np.ndarray, "pairs"]:
    """The weight of the samples that each ``token * V + label`` would explain."""
    found = np.zeros(len(pairs))
    samples = np.arange(len(corpus.positions))
    if corpus.context_length is None:
        found, samples = _explained_by_sentences(corpus, pairs)
    for sample, place in contexts_in_portions(corpus, samples):
        stated = corpus.tokens[place] * corpus.vocabulary_size + corpus.labels[sample]
        pair = np.searchsorted(pairs, stated)
        there = among(stated, pairs)
        once = distinct(sample[there] * len(pairs) + pair[there])
        sample, pair = np.divmod(once, len(pairs))
        found += np.bincount(pair, corpus.weights[sample], len(pairs))
    return found


def _explained_by_sentences(
    corpus: Corpus, pairs: Int[np.ndarray, "pairs"]
) -> tuple[Float[np.ndarray, "pairs"], Int[np.ndarray, "rest"]]:
    """The same for sentences with fewer pairs than tokens of contexts, and the other samples.

    A token is in the contexts of a sentence from where it occurs first: there each of its labels is
    counted.
    """
    size, total = corpus.vocabulary_size, len(corpus.tokens)
    token, label = np.divmod(pairs, size)
    begin = np.searchsorted(token, np.arange(size + 1))
    place = np.flatnonzero(first_occurrences(corpus))
    counts = np.diff(begin)[corpus.tokens[place]]
    written = np.bincount(
        corpus.sentence_of[corpus.positions], corpus.positions + 1 - corpus.first, corpus.sentences
    )
    few = np.bincount(corpus.sentence_of[place], counts, corpus.sentences) < written
    chosen = few[corpus.sentence_of[place]]
    place, counts = place[chosen], counts[chosen]
    labels = np.sort(corpus.labels * total + corpus.positions)
    found = np.zeros(len(pairs))
    for portion in portions(counts):
        pair = ranges(begin[corpus.tokens[place[portion]]], counts[portion])
        first = np.repeat(place[portion], counts[portion])
        sentence = corpus.sentence_of[first]
        low = np.searchsorted(labels, label[pair] * total + first)
        high = np.searchsorted(labels, label[pair] * total + corpus.starts[sentence + 1] - 1)
        found += np.bincount(pair, (high - low) * corpus.counts[sentence], len(pairs))
    return found, np.flatnonzero(~few[corpus.sentence_of[corpus.positions]])
