"""Parts of a corpus that theory applies to: the largest realizable one, and conflicting labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment

from attractor.corpora.corpus import Corpus, frequent_tokens
from attractor.corpora.samples import MOST_ENTRIES, frequent_samples, samples_alone
from attractor.corpora.structures.occurrences import (
    Collocation,
    Occurrences,
    Prefixes,
    among,
    contexts_in_portions,
    distinct,
    first_occurrences,
    portions,
    ranges,
    stretches_in_portions,
)
from attractor.corpora.structures.orders import QueryGraphs, relations
from attractor.corpora.structures.structure import with_unknown
from attractor.support.checks import check_kinds
from attractor.support.errors import InvalidInputError

_Stretches = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Pairs, and the samples, from one to another, whose contexts have their token."""


def agreeing_samples(
    corpus: Corpus, kept: Int[np.ndarray, "n"], explaining: Int[np.ndarray, "samples"]
) -> Bool[np.ndarray, "samples"]:
    """Samples that agree with a choice of optimal tokens for each query; others are not asked.

    Of each query the tokens that explain samples are tried, those that explain most first, and
    each is taken if the samples that it lets agree weigh more than those that it stops. A sample
    agrees where the one optimal token of its context is the one that explains its label.

    All queries are asked side by side. A token is in the contexts of a sentence from its first
    place on, so that a stretch of samples stands for them, and no context is written out.

    Args:
        corpus: The corpus.
        kept: The samples to ask, in increasing order.
        explaining: The token that explains the label of each sample; it is in the context.
    """
    agree = np.ones(len(corpus.positions), dtype=bool)
    first, last, queries = corpus.first[kept], corpus.positions[kept], corpus.queries[kept]
    several = Occurrences(corpus).count(queries, first, last) < last + 1 - first
    samples = kept[several]
    samples = samples[np.argsort(corpus.queries[samples], kind="stable")]
    if len(samples):
        agree[samples] = _Choice(corpus, samples, explaining).agreeing()
    return agree


class _Choice:
    """Samples in the order of their queries and places, and the pairs that are tried.

    A pair is a query and a token that explains some of its samples. Samples of one query and
    sentence are a group, of contexts that are prefixes; else each sample is a group of its own.
    """

    def __init__(
        self, corpus: Corpus, samples: Int[np.ndarray, "n"], explaining: Int[np.ndarray, "samples"]
    ) -> None:
        size = corpus.vocabulary_size
        self._corpus, self._samples = corpus, samples
        self._places, self._queries = corpus.positions[samples], corpus.queries[samples]
        self._sentences, self._weights = corpus.sentence_of[self._places], corpus.weights[samples]
        key = self._queries * size + explaining[samples]
        self._pairs, self._own = np.unique(key, return_inverse=True)
        worth, query = np.bincount(self._own, self._weights), self._pairs // size
        order = np.lexsort((self._pairs, -worth, query))
        self._turn = np.empty(len(order), dtype=np.int64)
        self._turn[order] = np.arange(len(order)) - np.searchsorted(query, query)
        new = np.ones(len(samples), dtype=bool)
        if corpus.context_length is None:
            new[1:] = (np.diff(self._queries) != 0) | (np.diff(self._sentences) != 0)
        self._groups = np.flatnonzero(new)
        self._ends = np.append(self._groups[1:], len(samples))
        self._keys = self._queries * len(corpus.tokens) + self._places
        self._prefixes = Prefixes(corpus)
        first = np.flatnonzero(first_occurrences(corpus))
        key = corpus.sentence_of[first] * size + corpus.tokens[first]
        order = np.argsort(key)
        self._known, self._first = key[order], first[order]

    @property
    def _lengths(self) -> Int[np.ndarray, "groups"]:
        """Tokens to write out of the longest context of each group."""
        last = self._places[self._ends - 1]
        if self._corpus.context_length is None:
            return self._prefixes.counts(last)
        return last + 1 - self._corpus.first[self._samples]

    def agreeing(self) -> Bool[np.ndarray, "n"]:
        """Which samples agree with the tokens that are taken."""
        optimal = np.zeros(len(self._samples), dtype=np.int64)  # optimal tokens in the context
        explained = np.zeros(len(self._samples), dtype=bool)  # by one of them
        for pair, low, high in self._stretches():
            order = np.lexsort((low, self._turn[pair]))
            turns = np.flatnonzero(np.diff(self._turn[pair[order]])) + 1
            for now in np.split(order, turns):
                lengths = (high - low)[now]
                sample, tried = ranges(low[now], lengths), np.repeat(pair[now], lengths)
                mine = self._own[sample] == tried
                gained = mine & (optimal[sample] == 0)
                lost = ~mine & (optimal[sample] == 1) & explained[sample]
                change = self._weights[sample] * (gained.astype(float) - lost)
                which = np.cumsum(np.append(False, np.diff(tried) != 0))
                taken = (np.bincount(which, change) > 0)[which]
                optimal[sample[taken]] += 1
                explained[sample[taken & mine]] = True
        return (optimal == 1) & explained

    def _stretches(self) -> Iterator[_Stretches]:
        """The stretches of samples whose contexts have the token of a pair, some queries at a time.

        Of prefixes either the tokens of contexts are looked up among those that are tried, or the
        other way round, whichever is less.
        """
        size, prefixes = self._corpus.vocabulary_size, self._corpus.context_length is None
        queries, begin = np.unique(self._queries[self._groups], return_index=True)
        groups = np.diff(np.append(begin, len(self._groups)))
        first, last = np.searchsorted(self._pairs, [queries * size, (queries + 1) * size])
        written = np.add.reduceat(self._lengths, begin)
        looked_up = (last - first) * groups if prefixes else written
        for some in portions(np.minimum(written, looked_up)):
            write = np.arange(some.start, some.stop)[(written <= looked_up)[some]]
            look = np.arange(some.start, some.stop)[(written > looked_up)[some]]
            found = [*self._of_contexts(ranges(begin[write], groups[write]))]
            # Every pair of a query with every group of it.
            group = ranges(begin[look], groups[look])
            tried = np.repeat(last[look] - first[look], groups[look])
            pair = ranges(np.repeat(first[look], groups[look]), tried)
            found.append(self._of_pairs(pair, np.repeat(group, tried)))
            pair, low, high = map(np.concatenate, zip(*found, strict=True))
            yield pair, low, high

    def _of_contexts(self, groups: Int[np.ndarray, "n"]) -> Iterator[_Stretches]:
        """Those of groups, by the tokens of their contexts."""
        corpus, last = self._corpus, self._places[self._ends[groups] - 1]
        if corpus.context_length is None:
            portion = self._prefixes.in_portions(last)
        else:
            portion = stretches_in_portions(corpus.first[self._samples[groups]], last)
        for number, place in portion:
            group = groups[number]
            key = self._queries[self._groups[group]] * corpus.vocabulary_size + corpus.tokens[place]
            there = among(key, self._pairs)
            pair = np.searchsorted(self._pairs, key[there])
            if corpus.context_length is None:
                yield self._from(pair, group[there], place[there])
            else:
                once = distinct(group[there] * len(self._pairs) + pair)
                group, pair = np.divmod(once, len(self._pairs))
                yield pair, group, group + 1

    def _of_pairs(self, pair: Int[np.ndarray, "n"], group: Int[np.ndarray, "n"]) -> _Stretches:
        """Those of pairs and groups, by the first place of the token in the sentence."""
        size = self._corpus.vocabulary_size
        key = self._sentences[self._groups[group]] * size + self._pairs[pair] % size
        there = among(key, self._known)
        place = self._first[np.searchsorted(self._known, key[there])]
        return self._from(pair[there], group[there], place)

    def _from(
        self, pair: Int[np.ndarray, "n"], group: Int[np.ndarray, "n"], place: Int[np.ndarray, "n"]
    ) -> _Stretches:
        """The samples of groups from a place of their sentence on."""
        query = self._queries[self._groups[group]]
        low = np.searchsorted(self._keys, query * len(self._corpus.tokens) + place)
        high = self._ends[group]
        some = low < high
        return pair[some], low[some], high[some]


class CorpusPart(Corpus):
    """Some samples of a corpus, over the tokens that they use; no context is written out."""

    def __init__(self, whole: Corpus, samples: Int[np.ndarray, "n"]) -> None:
        """Takes some samples, in increasing order."""
        first, last = whole.first[samples], whole.positions[samples]
        edges = np.zeros(len(whole.tokens) + 1, dtype=np.int64)
        np.add.at(edges, first, 1)
        np.add.at(edges, last + 2, -1)  # behind the label
        used = np.cumsum(edges[:-1]) > 0
        begins = used & ~np.append(False, used[:-1])
        begins[whole.starts[:-1]] = used[whole.starts[:-1]]
        place = np.cumsum(used) - 1
        tokens, names, _ = frequent_tokens(whole.tokens[used], whole.vocabulary, None)
        super().__init__(
            tokens,
            np.append(place[begins], len(tokens)),
            names,
            context_length=whole.context_length,
            every_prefix=False,
            counts=whole.counts[whole.sentence_of[begins]],
        )
        vars(self)["positions"] = place[last]


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


@dataclass(frozen=True, eq=False, repr=False)
class ConflictingPart:
    """Samples that prefer a token of their own context, and the graphs of what they prefer.

    Under each query an edge leads from the token that a sample prefers to every other token of its
    context; labels that conflict make cycles. Source: *Mechanics of Next Token Prediction with
    Self-Attention* (arXiv 2403.08081), token-priority graphs and their strongly connected
    components.

    Attributes:
        corpus: The whole corpus.
        preferred: The preferred token of each sample; -1 for the samples that are left out.
        explained: Whether the preferred token is the one that explains the label, rather than the
            label itself.
        graphs: The graphs of the samples that are left.
    """

    corpus: Corpus
    preferred: Int[np.ndarray, "samples"]
    explained: bool
    graphs: QueryGraphs

    @property
    def samples(self) -> Int[np.ndarray, "n"]:
        """The samples that prefer a token of their context."""
        return np.flatnonzero(self.preferred >= 0)

    @property
    def share(self) -> float:
        """Their share of the corpus, by weight."""
        weights = self.corpus.weights
        return float(weights[self.samples].sum() / weights.sum())

    @property
    def cyclic_share(self) -> float:
        """The share of relations that lie on cycles."""
        return float(self.graphs.cyclic.mean()) if len(self.graphs.edges) else 0.0

    @cached_property
    def components(self) -> Int[np.ndarray, "components"]:
        """Sizes of the components of several tokens, largest first."""
        sizes = np.sort(self.graphs.component_sizes())[::-1]
        return sizes[sizes > 1]

    @property
    def dimension(self) -> int:
        """The dimension of the cyclic subspace, for linearly independent embeddings."""
        return int((self.components - 1).sum())

    def for_training(self, work: int) -> tuple[Corpus, float]:
        """The distinct samples with their preferred token as label; the most frequent ones.

        Args:
            work: The most work of a step of training, as ``frequent_samples`` counts it.

        Returns:
            The samples, and their share of all that prefer a token of their context.
        """
        chosen = self.samples
        if not len(chosen):
            raise InvalidInputError(
                "corpus", "no sample prefers a token of its context", "Give longer contexts"
            )
        return frequent_samples(self.corpus, work, chosen, self.preferred)

    def summary(self) -> dict[str, Any]:
        """The part as plain values of JSON."""
        queries = np.unique(self.graphs.edges[self.graphs.cyclic, 0])
        return {
            "preferred": "explaining token" if self.explained else "label",
            "share": self.share,
            "relations": len(self.graphs.edges),
            "cyclic_relations": int(self.graphs.cyclic.sum()),
            "cyclic_share": self.cyclic_share,
            "queries_with_cycles": len(queries),
            "components": len(self.components),
            "largest_component": int(self.components.max(initial=0)),
            "cyclic_dimension": self.dimension,
        }


def conflicting_part(corpus: Corpus, collocation: Collocation) -> ConflictingPart:
    """The samples that prefer a token of their own context.

    A sample prefers the token that explains its label, or the label itself; of both readings the
    one is taken that more of the corpus allows.

    Args:
        corpus: The corpus.
        collocation: Its collocation.
    """
    explaining = collocation.explaining(corpus)
    there = Occurrences(corpus).count(corpus.labels, corpus.first, corpus.positions) > 0
    own = np.where(there, corpus.labels, -1)
    explained = bool(corpus.weights[explaining >= 0].sum() >= corpus.weights[own >= 0].sum())
    preferred = explaining if explained else own
    graphs = QueryGraphs(relations(corpus, preferred), corpus.vocabulary)
    return ConflictingPart(corpus, preferred, explained, graphs)
