"""Realizable corpora drawn from their orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from attractor.checks import check_count, check_flags
from attractor.errors import InvalidInputError
from attractor.next_token.corpus import Corpus
from attractor.next_token.generators.derangement import MOST_TOKENS, derangement
from attractor.precision import as_integers
from attractor.randomness import generator as generator_of


class Drawn(NamedTuple):
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
) -> Drawn:
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
        InvalidInputError: If the vocabulary is too small for the numbers asked for.
    """
    check_flags(complete=complete, uniform=uniform)
    _check_numbers("optimal", optimal)
    _check_numbers("non_optimal", non_optimal)
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
        best, others = _sides(query, vocabulary, optimal, non_optimal, generator)
        for winner in best:
            kept = others
            if not complete:
                kept = [t for t in others if t == query or generator.random() < 0.5]
            if not kept:
                left_out += 1
                continue
            contexts.append(_sentence(winner, kept, query, repetitions, generator))
            labels.append(int(follows[winner]))
    counts = None if uniform else generator.exponential(size=len(contexts))
    corpus = Corpus.from_samples(contexts, labels, range(vocabulary), counts=counts)
    return Drawn(corpus, redrawn, left_out)


def _sides(
    query: int,
    size: int,
    optimal: Sequence[int],
    non_optimal: Sequence[int],
    generator: np.random.Generator,
) -> tuple[list[int], list[int]]:
    """The optimal and the non-optimal tokens of a query."""
    others = [token for token in generator.permutation(size).tolist() if token != query]
    best, worse = int(generator.choice(optimal)), int(generator.choice(non_optimal))
    if generator.random() < 0.5:
        return [query], others[:worse]
    return others[:best], [query, *others[best : best + worse - 1]]


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


def _check_numbers(argument: str, numbers: Sequence[int]) -> Int[np.ndarray, "n"]:
    return as_integers(argument, numbers, ("n",), least=1, most=MOST_TOKENS)
