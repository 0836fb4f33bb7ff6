"""Corpora that the statements on next-token prediction are checked on."""

from __future__ import annotations

from functools import cache

import numpy as np

from attractor.corpora import Corpus
from attractor.corpora.embeddings import gaussian, one_hot
from attractor.corpora.files.corpus import CorpusCase
from attractor.corpora.generators import order_first_corpus, rolled_out_corpus


@cache
def grammar() -> CorpusCase:
    """Four sentences of subject, verb, object and period; every prefix is a sample.

    Source: *Non-asymptotic Convergence of Training Transformers for Next-token Prediction* (arXiv
    2409.17335), example of a realizable data set.
    """
    sentences = ["S V O P", "V O P", "O P P", "P S V"]
    return of_words(*sentences).replace(about="subject, verb, object, period")


@cache
def random_orders(seed: int, vocabulary: int = 20, *, complete: bool = True) -> CorpusCase:
    """Random orders with one or two optimal and one or two non-optimal tokens under a query.

    Args:
        seed: Names what is random.
        vocabulary: Number of tokens.
        complete: Whether every optimal token is compared with every non-optimal one; else there
            are two or three of each, and half of the relations are left out.
    """
    some = (1, 2) if complete else (2, 3)
    drawn = order_first_corpus(
        vocabulary, optimal=some, non_optimal=some, complete=complete, seed=seed
    )
    kind = "complete" if complete else "incomplete"
    return CorpusCase(drawn.corpus, about=f"random {kind} orders, {vocabulary} tokens, seed {seed}")


@cache
def rolled_out(seed: int, vocabulary: int = 20) -> CorpusCase:
    """Random sentences of four tokens, one for each first token; every prefix is a sample."""
    drawn = rolled_out_corpus(vocabulary, length=4, seed=seed)
    return CorpusCase(drawn.corpus, about=f"random sentences, {vocabulary} tokens, seed {seed}")


def realizable(seed: int) -> list[CorpusCase]:
    """The grammar, random orders and random sentences, which meet the usual assumptions."""
    return [grammar(), random_orders(seed), rolled_out(seed)]


@cache
def missing_relations() -> CorpusCase:
    """Two optimal tokens under ``q``, one of which is never compared with three others."""
    contexts = ["a c d e q", "b q"]
    alone = "abcdeq"
    corpus = Corpus.from_samples(
        [*map(str.split, contexts), *([token] for token in alone)],
        ["b", "c", *"bcdeqa"],
        list(alone),
    )
    return CorpusCase(corpus, about="relations missing under one query")


def outnumbered() -> CorpusCase:
    """A frequent context in which a token occurs twenty times and the optimal one once.

    The other tokens of that context gain on the one that is so frequent, and in the second context
    they take attention from its optimal token at first.
    """
    contexts = [[*"ac", *20 * "b", "q"], [*"dcq"], *"abcdq"]
    counts = np.array([0.98, 0.02, *5 * [0.001]])
    corpus = Corpus.from_samples(contexts, [*"ba", *"bcqad"], list("abcdq"), counts=counts)
    return CorpusCase(corpus, about="optimal token outnumbered")


def with_long_embeddings(case: CorpusCase, length: float) -> CorpusCase:
    """The case with orthogonal embeddings of a length."""
    table = length * one_hot(case.corpus.vocabulary_size)
    return case.replace(embeddings=table, about=f"{case.about}, embeddings of length {length:g}")


def of_words(*sentences: str) -> CorpusCase:
    """Sentences of words with spaces between them."""
    return CorpusCase(Corpus.from_sentences([sentence.split() for sentence in sentences]))


def with_gaussian_embeddings() -> CorpusCase:
    """The grammar with random vectors for its words."""
    return grammar().replace(embeddings=gaussian(4, 6))
