"""Corpora drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from attractor.corpora.corpus import Corpus
from attractor.support.checks import check_count, check_flags
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_integers
from attractor.support.randomness import generator as generator_of

MOST_TOKENS = 10**6
"""The largest vocabulary, and the longest sentence, that are drawn."""


def rolled_out_corpus(
    vocabulary: int = 20, *, length: int = 4, outnumbered: bool = False, seed: int = 0
) -> RandomCorpus:
    """A realizable corpus of one sentence for each first token, each prefix of which is a sample.

    The collocation is a random permutation without fixed points. A sentence goes on with what
    follows one of its tokens, drawn among those that contradict no relation so far: the token may
    not be non-optimal under the query, and no other token of the sentence may be optimal. A
    sentence that cannot go on ends early, and is counted.

    Args:
        vocabulary: Number V of tokens, and of sentences.
        length: Number of tokens of a sentence, the last label included.
        outnumbered: Whether an optimal token may occur less often than another of its context.
        seed: Names what is random.

    Raises:
        InvalidInputError: If the vocabulary has fewer than two tokens, or sentences fewer.
    """
    check_flags(outnumbered=outnumbered)
    vocabulary = check_count("vocabulary", vocabulary, 2, MOST_TOKENS)
    length = check_count("length", length, 2, MOST_TOKENS)
    generator = generator_of(seed, purpose="rolled-out corpus")
    follows, redrawn = derangement(vocabulary, generator)
    optimal: list[set[int]] = [set() for _ in range(vocabulary)]
    other: list[set[int]] = [set() for _ in range(vocabulary)]
    sentences, stuck = [], 0
    for start in generator.permutation(vocabulary).tolist():
        words = [start]
        while len(words) < length:
            query, seen = words[-1], sorted(set(words))
            most = max(words.count(token) for token in seen)
            allowed = [
                token
                for token in seen
                if len(seen) == 1  # which states no relation
                or (
                    token not in other[query]
                    and not (optimal[query] & set(seen)) - {token}
                    and (outnumbered or words.count(token) == most)
                )
            ]
            if not allowed:
                stuck += 1
                break
            winner = int(generator.choice(allowed))
            if len(seen) > 1:
                optimal[query].add(winner)
                other[query] |= set(seen) - {winner}
            words.append(int(follows[winner]))
        sentences.append(words)
    corpus = Corpus.from_sentences(sentences, range(vocabulary))
    return RandomCorpus(corpus, redrawn, stuck)


class RandomCorpus(NamedTuple):
    """A corpus drawn at random.

    Attributes:
        corpus: The corpus.
        redrawn: Collocations that were drawn again, because a token followed itself.
        left_out: Sentences that were left out, because they had a single token, or could not go on.
    """

    corpus: Corpus
    redrawn: int
    left_out: int


def order_first_corpus(
    vocabulary: int = 20,
    *,
    optimal: Sequence[int] = (1, 2),
    non_optimal: Sequence[int] = (1, 2),
    complete: bool = True,
    repetitions: int = 1,
    uniform: bool = True,
    seed: int = 0,
) -> RandomCorpus:
    """A realizable corpus whose orders are drawn first, and then sentences that state them.

    The collocation is a random permutation without fixed points. Each query is, with even odds, its
    own optimal token, or one of its non-optimal tokens; the others are drawn at random. Every
    optimal token of a query gives one sentence: the token and the non-optimal ones in random order,
    the query last. Besides, every token is a sentence of its own. Prefixes are no samples.

    Args:
        vocabulary: Number V of tokens.
        optimal: Numbers of optimal tokens to choose from; a query that is optimal is the only one.
        non_optimal: Numbers of non-optimal tokens to choose from.
        complete: Whether each sentence has all non-optimal tokens. If not, each but the query is
            left out with even odds, so that not every optimal token is compared with each of them.
        repetitions: How often a token may occur in a sentence, at most: the optimal one as often as
            drawn, no other more often.
        uniform: Whether all sentences are equally frequent; else their frequencies are drawn
            uniformly from the simplex.
        seed: Names what is random.

    Raises:
        InvalidInputError: If the vocabulary is too small for the numbers requested.
    """
    check_flags(complete=complete, uniform=uniform)
    for name, numbers in (("optimal", optimal), ("non_optimal", non_optimal)):
        as_integers(name, numbers, ("n",), least=1, most=MOST_TOKENS)
    repetitions = check_count("repetitions", repetitions, 1, MOST_TOKENS)
    vocabulary = check_count("vocabulary", vocabulary, 1, MOST_TOKENS)
    if vocabulary < max(optimal) + max(non_optimal):
        raise InvalidInputError(
            "vocabulary",
            f"it has {vocabulary} tokens",
            f"Give at least {max(optimal) + max(non_optimal)}: every query needs that many",
        )
    generator = generator_of(seed, purpose="order-first corpus")
    follows, redrawn = derangement(vocabulary, generator)
    contexts: list[list[int]] = [[token] for token in range(vocabulary)]
    labels = follows.tolist()
    left_out = 0
    for query in range(vocabulary):
        others = [token for token in generator.permutation(vocabulary).tolist() if token != query]
        best, worse = int(generator.choice(optimal)), int(generator.choice(non_optimal))
        if generator.random() < 0.5:  # the query is its own optimal token
            winners, losers = [query], others[:worse]
        else:
            winners, losers = others[:best], [query, *others[best : best + worse - 1]]
        for winner in winners:
            kept = losers
            if not complete:
                kept = [t for t in losers if t == query or generator.random() < 0.5]
            if not kept:
                left_out += 1
                continue
            contexts.append(_sentence(winner, kept, query, repetitions, generator))
            labels.append(int(follows[winner]))
    counts = None if uniform else generator.exponential(size=len(contexts))
    corpus = Corpus.from_samples(contexts, labels, range(vocabulary), counts=counts)
    return RandomCorpus(corpus, redrawn, left_out)


def _sentence(
    winner: int, others: list[int], query: int, repetitions: int, generator: np.random.Generator
) -> list[int]:
    """The tokens in random order, the query last."""
    most = int(generator.integers(1, repetitions + 1))
    words = [winner] * most
    for token in others:
        words += [token] * int(generator.integers(1, most + 1))
    words.remove(query)
    return [*np.asarray(words, dtype=int)[generator.permutation(len(words))].tolist(), query]


def derangement(size: int, generator: np.random.Generator) -> tuple[Int[np.ndarray, "V"], int]:
    """A uniformly random permutation without fixed points, and how many draws had one.

    Args:
        size: Number of tokens, at least two.
        generator: Of the draws.
    """
    redrawn = 0
    while ((drawn := generator.permutation(size)) == np.arange(size)).any():
        redrawn += 1
    return drawn, redrawn
