"""The largest realizable part of a corpus that can be found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from attractor.checks import check_kinds
from attractor.errors import InvalidInputError
from attractor.next_token._collocation import Collocation
from attractor.next_token.assumptions import with_unknown
from attractor.next_token.corpus import Corpus
from attractor.next_token.frequent_samples import samples_alone
from attractor.next_token.occurrences import contexts_in_portions
from attractor.next_token.vocabulary import with_frequent_tokens

_LARGEST_MATCHING = 4 * 10**7


@dataclass(frozen=True, eq=False)
class RealizablePart:
    """A realizable part of a corpus.

    Attributes:
        corpus: The part, over the tokens that it uses; its samples are contexts of their own.
        samples: Which samples of the whole corpus it consists of.
        share: Its share of the corpus, by weight.
        removed: The share of the corpus removed for each assumption, in this order.
    """

    corpus: Corpus
    samples: Int[np.ndarray, "n"]
    share: float
    removed: dict[str, float]


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
    agreeing = _without_conflicts(corpus, kept, explaining)
    kept = drop(kept, "orders without confused tokens", agreeing)
    samples = np.flatnonzero(kept)
    part, _ = with_frequent_tokens(samples_alone(corpus, samples, weights[samples]), None)
    return RealizablePart(part, samples, float(weights[samples].sum() / total), removed)


def _best_collocation(corpus: Corpus) -> Collocation:
    """The injective collocation whose pairs explain most samples."""
    size = corpus.vocabulary_size
    alone = corpus.first == corpus.positions
    pairs = np.unique(corpus.queries[alone] * size + corpus.labels[alone])
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
    for sample, place in contexts_in_portions(corpus):
        stated = corpus.tokens[place] * corpus.vocabulary_size + corpus.labels[sample]
        pair = np.minimum(np.searchsorted(pairs, stated), len(pairs) - 1)
        there = pairs[pair] == stated
        once = np.unique(sample[there] * len(pairs) + pair[there])
        sample, pair = np.divmod(once, len(pairs))
        found += np.bincount(pair, corpus.weights[sample], len(pairs))
    return found


def _without_conflicts(
    corpus: Corpus, kept: Bool[np.ndarray, "samples"], explaining: Int[np.ndarray, "samples"]
) -> Bool[np.ndarray, "samples"]:
    """Samples that agree with a choice of optimal tokens for each query."""
    good = np.ones(len(kept), dtype=bool)
    samples = np.flatnonzero(kept)
    samples = samples[np.argsort(corpus.queries[samples], kind="stable")]
    queries = corpus.queries[samples]
    for own in np.split(samples, np.flatnonzero(np.diff(queries)) + 1):
        optimal = _optimal_tokens(corpus, own, explaining)
        for sample in own.tolist():
            context = set(corpus.context(sample).tolist())
            good[sample] = len(context) == 1 or context & optimal == {int(explaining[sample])}
    return good


def _optimal_tokens(
    corpus: Corpus, samples: Int[np.ndarray, "n"], explaining: Int[np.ndarray, "samples"]
) -> set[int]:
    """Optimal tokens of one query, chosen so that many samples agree with them."""
    stated = [
        (int(explaining[s]), set(corpus.context(s).tolist()), float(corpus.weights[s]))
        for s in samples.tolist()
    ]
    stated = [(own, context, weight) for own, context, weight in stated if len(context) > 1]
    holding: dict[int, list[int]] = {}
    for place, (_, context, _) in enumerate(stated):
        for token in context:
            holding.setdefault(token, []).append(place)
    worth: dict[int, float] = {}
    for own, _, weight in stated:
        worth[own] = worth.get(own, 0.0) + weight
    optimal: set[int] = set()
    for token in sorted(worth, key=lambda token: (-worth[token], token)):
        gain = 0.0
        for place in holding[token]:
            own, context, weight = stated[place]
            if own == token and not context & optimal:
                gain += weight
            elif own != token and context & optimal == {own}:
                gain -= weight
        if gain > 0:
            optimal.add(token)
    return optimal
