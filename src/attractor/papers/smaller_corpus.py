"""The smallest corpus on which a claim still fails."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool

from attractor.errors import InvalidInputError
from attractor.next_token import Corpus
from attractor.papers.trial import Trial, drop

if TYPE_CHECKING:
    from attractor.papers.corpus_case import CorpusCase


def smaller_corpus(case: CorpusCase, trial: Trial) -> CorpusCase:
    """A case less what a counterexample does not need; itself where nothing can go.

    Sentences go first, in halves and then smaller parts, then words of the vocabulary, then single
    tokens, and in the end what sentences count, and embeddings.

    Args:
        case: The counterexample.
        trial: Examines candidates.
    """
    found, before = case, None
    while found is not before:  # a word less may make room for a sentence less
        before = found
        found = _fewer_sentences(found, trial)
        found = _fewer_words(found, trial)
        found = _fewer_tokens(found, trial)
    if (found.corpus.counts != 1).any():
        found = trial.smaller_of(found, _with(found, found.corpus.tokens, counts=False))
    if found.embeddings is not None:
        found = trial.smaller_of(found, found.replace(embeddings=None))
    return found


def _fewer_sentences(case: CorpusCase, trial: Trial) -> CorpusCase:
    spans = pairwise(case.corpus.starts.tolist())
    return _dropped(case, [[(place,) for place in range(*span)] for span in spans], trial)


def _fewer_tokens(case: CorpusCase, trial: Trial) -> CorpusCase:
    return _dropped(case, [[(place,)] for place in range(len(case.corpus.tokens))], trial)


def _dropped(case: CorpusCase, pieces: list[list[tuple[int, ...]]], trial: Trial) -> CorpusCase:
    tokens = case.corpus.tokens

    def built(kept: Bool[np.ndarray, "total"]) -> CorpusCase | None:
        return _with(case, np.where(kept, tokens, -1))

    everything = np.ones(len(tokens), dtype=bool)
    kept = drop(everything, pieces, lambda fewer: trial.fails(built(fewer)))
    found = None if kept.all() else built(kept)
    return case if found is None else found


def _fewer_words(case: CorpusCase, trial: Trial) -> CorpusCase:
    """The case less every word that can go, one after another."""
    for name in reversed(case.corpus.vocabulary):
        case = trial.smaller_of(case, _without_word(case, name))
    return case


def _without_word(case: CorpusCase, name: str) -> CorpusCase | None:
    """The case without a word; what was followed by it is followed by what follows it."""
    corpus = case.corpus
    word = corpus.vocabulary.index(name)
    tokens = corpus.tokens.copy()
    last = corpus.starts[1:] - 1
    ends = last[tokens[last] == word]
    tokens[tokens == word] = -1
    tokens[ends] = case.structure.collocation.next_token[word]
    tokens[tokens == word] = -1  # it followed itself
    return _with(case, tokens)


def _with(case: CorpusCase, tokens: np.ndarray, *, counts: bool = True) -> CorpusCase | None:
    """A case with other tokens in its sentences, -1 for none, and the words that are left.

    None where nothing follows any token.
    """
    corpus = case.corpus
    lengths = np.bincount(corpus.sentence_of[tokens >= 0], minlength=corpus.sentences)
    kept = (tokens >= 0) & (lengths > 1)[corpus.sentence_of]
    words, numbers = np.unique(tokens[kept], return_inverse=True)
    try:
        smaller = Corpus(
            numbers,
            np.cumsum([0, *lengths[lengths > 1]]),
            [corpus.vocabulary[word] for word in words],
            context_length=corpus.context_length,
            every_prefix=corpus.every_prefix,
            counts=corpus.counts[lengths > 1] if counts else None,
        )
    except InvalidInputError:
        return None
    table = case.embeddings
    return case.replace(corpus=smaller, embeddings=None if table is None else table[words])
