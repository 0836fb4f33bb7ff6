"""Random corpora whose labels conflict, or do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attractor.corpora.corpus import Corpus
from attractor.corpora.structures.orders import token_priority_graphs
from attractor.support.checks import check_count, check_flags
from attractor.support.errors import InvalidInputError
from attractor.support.randomness import generator

_DRAWS = 20_000
"""Draws of one corpus before it is taken not to exist."""


MOST = 10**5
"""The most that can be drawn of anything."""


@dataclass(frozen=True, eq=False, repr=False)
class ConflictingCorpora:
    """Random corpora, each with embeddings of its own.

    Attributes:
        corpora: The corpora.
        embeddings: The vector of every token, of unit length.
        redraws: Number of rejected draws of each corpus, before it had a cycle, or none.
    """

    corpora: tuple[Corpus, ...]
    embeddings: Float[np.ndarray, "instances K d"]
    redraws: Int[np.ndarray, "instances"]

    def __repr__(self) -> str:
        return f"ConflictingCorpora({len(self.corpora)} corpora, {self.redraws.sum()} redraws)"


def conflicting_corpora(
    instances: int,
    *,
    cyclic: bool = True,
    seed: int = 0,
    vocabulary: int = 6,
    dimension: int = 8,
    length: int = 4,
    samples: int = 6,
) -> ConflictingCorpora:
    """Random corpora of which each has a cycle in some token-priority graph, or none has.

    Embeddings are Gaussian, scaled to unit length. A context has no token twice. A label is uniform
    over the vocabulary; where the context lacks it, a random token of the context takes its place.
    The samples of a corpus, not its embeddings, are drawn anew until it has a cycle, or none.
    Source: the experiments of *Mechanics of Next Token Prediction with Self-Attention* (arXiv
    2403.08081).

    Args:
        instances: Number of corpora.
        cyclic: Whether each is to have a cycle, or to have none.
        seed: Names the random numbers, together with the number of the corpus.
        vocabulary: Number K of tokens.
        dimension: Dimension d of embeddings.
        length: Number of tokens in a context.
        samples: Number of samples in a corpus.

    Raises:
        InvalidInputError: If a size cannot be used, or no such corpus is found.
    """
    check_flags(cyclic=cyclic)
    sizes = {
        "instances": (instances, 1),
        "vocabulary": (vocabulary, 2),
        "dimension": (dimension, 1),
        "length": (length, 2),
        "samples": (samples, 1),
    }
    for name, (size, least) in sizes.items():
        check_count(name, size, least, MOST)
    if length > vocabulary:
        raise InvalidInputError(
            "length",
            f"{length} different tokens cannot be drawn from {vocabulary}",
            f"Give at most {vocabulary}",
        )
    names = tuple(map(str, range(vocabulary)))

    def draw(draws: np.random.Generator) -> tuple[Corpus, Float[np.ndarray, "K d"], int]:
        embeddings = draws.normal(size=(vocabulary, dimension))
        embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
        for redraws in range(_DRAWS):
            contexts = draws.random((samples, vocabulary)).argsort(1)[:, :length]
            labels = draws.integers(vocabulary, size=samples)
            absent = (contexts != labels[:, None]).all(1)
            instead = contexts[np.arange(samples), draws.integers(length, size=samples)]
            labels = np.where(absent, instead, labels)
            corpus = Corpus.from_samples(contexts.tolist(), labels.tolist(), names)
            if token_priority_graphs(corpus).acyclic != cyclic:
                return corpus, embeddings, redraws
        raise InvalidInputError(
            "samples",
            f"{_DRAWS:,} draws gave no corpus {'with' if cyclic else 'without'} a cycle",
            f"Give {'more' if cyclic else 'fewer'} samples",
        )

    purpose = "conflicting corpora"
    drawn = [draw(generator(seed, i, purpose=purpose)) for i in range(instances)]
    corpora, embeddings, redraws = zip(*drawn, strict=True)
    return ConflictingCorpora(corpora, np.stack(embeddings), np.array(redraws))
